//! Wakes the daemon when the log has more.

use std::sync::{Mutex, PoisonError};

use spool::log::Ring;

/// Wakes the daemon.
#[derive(Default)]
pub(super) struct Bell(pub(super) Mutex<Option<Ring>>);

impl Bell {
    pub(super) fn ring(&self) {
        if let Some(ring) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            ring();
        }
    }
}
