//! Every integration test, in one binary: each further binary would link everything again.

mod fetching;
mod local_server;
mod offline_brain;
mod acting;
mod configuring;
mod brain_http;
mod scripted_server;
mod simulating;
mod speaking;
