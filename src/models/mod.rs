//! Every weight file: where it comes from, its hash, where it is kept, how it is loaded.
