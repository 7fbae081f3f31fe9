//! When faces are looked for, and which of them are embedded.

/// Everything that is known of the faces in view.
pub struct Watch;
