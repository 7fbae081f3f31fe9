//! How each part is, in one sentence each, for the log, `doctor` and the control socket.
//!
//! Each part writes its own line; nobody decides anything by it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

/// One part's state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartHealth {
    pub part: String,
    pub works: bool,
    /// What is so, or what to do.
    pub what: String,
}

/// The states of all parts.
#[derive(Debug, Default)]
pub struct Health {
    parts: Mutex<BTreeMap<&'static str, (bool, String)>>,
}

impl Health {
    /// Writes a part's line; a change goes to the log.
    pub fn set(&self, part: &'static str, works: bool, what: impl Into<String>) {
        let what = what.into();
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let before = parts.insert(part, (works, what.clone()));
        if before.is_none_or(|(worked, _)| worked != works) {
            if works {
                tracing::info!(part, "{what}");
            } else {
                tracing::warn!(part, "{what}");
            }
        }
    }

    /// All parts, by name.
    #[must_use]
    pub fn parts(&self) -> Vec<PartHealth> {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts
            .iter()
            .map(|(part, (works, what))| PartHealth { part: (*part).into(), works: *works, what: what.clone() })
            .collect()
    }
}
