//! The eye, shared: the seeing thread glances with it, the `camera` tool looks with it, one at a time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use super::Detection;
use super::eye::{Eye, EyeError, EyeReport, Glance, Seen};
use crate::remember::embed::Identity;
use crate::robot::{Direction, Picture};

/// A handle on the one eye. Calls block while another one looks, which is tenths of a second.
#[derive(Clone)]
pub struct Sight(Arc<Mutex<Eye>>);

impl Sight {
    #[must_use]
    pub fn new(eye: Eye) -> Self {
        Self(Arc::new(Mutex::new(eye)))
    }

    /// [`Eye::glance`].
    ///
    /// # Errors
    /// [`EyeError`].
    pub fn glance(&self, picture: &Picture, head_moving: bool, now: Timestamp) -> Result<Glance, EyeError> {
        self.eye().glance(picture, head_moving, now)
    }

    /// [`Eye::look`].
    ///
    /// # Errors
    /// [`EyeError`].
    pub fn look(&self, picture: &Picture, now: Timestamp) -> Result<Seen, EyeError> {
        self.eye().look(picture, now)
    }

    /// [`Eye::is_known`].
    pub fn is_known(&self, looked: Direction, stored: &[Detection]) {
        self.eye().is_known(looked, stored);
    }

    /// [`Eye::report`].
    #[must_use]
    pub fn report(&self) -> EyeReport {
        self.eye().report()
    }

    /// [`Eye::face_identity`].
    #[must_use]
    pub fn face_identity(&self) -> Option<Identity> {
        self.eye().face_identity().cloned()
    }

    /// A glance that panicked left a picture behind, which the next one replaces.
    fn eye(&self) -> MutexGuard<'_, Eye> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
