//! stub

pub struct Ear;
pub struct EarReport;
