//! Every integration test, in one binary: each further binary would link everything again.

mod acting;
mod brain_http;
mod configuring;
mod conversing;
mod demo_day;
mod detecting;
mod enduring;
mod embedding_pictures;
mod fetching;
mod hearing;
mod living;
mod local_server;
mod offline_brain;
mod remembering;
mod scripted_server;
mod seeing_again;
mod seeing;
mod simulating;
mod speaking;
mod weights;
