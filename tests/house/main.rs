//! Every integration test, in one binary: each further binary would link everything again.

// A test fails by panicking, and says why it was skipped.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

mod acting;
mod brain_http;
mod calibrating;
mod configuring;
mod conversing;
mod demo_day;
mod detecting;
mod embedding_pictures;
mod enduring;
mod evaluating;
mod faces;
mod faces_quality;
mod fetching;
mod hearing;
mod hybrid;
mod interrupting;
mod knowledge;
mod knowledge_gate;
mod knowledge_pulling;
mod knowledge_refused;
mod living;
mod local_server;
mod looking;
mod offline_brain;
mod packaging;
mod people;
mod people_forget;
mod reloading;
mod remembering;
mod scripted_server;
mod sdk;
mod seeing;
mod seeing_again;
mod simulating;
mod speaking;
mod visits;
mod weights;
