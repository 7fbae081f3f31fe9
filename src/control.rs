//! The Unix socket on which commands ask the running service.
