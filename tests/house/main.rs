//! Every integration test, in one binary: each further binary would link everything again.

mod brain_http;
mod scripted_server;
