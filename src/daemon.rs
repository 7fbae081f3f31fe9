//! The running service: its actors, their channels, and its safe end.
