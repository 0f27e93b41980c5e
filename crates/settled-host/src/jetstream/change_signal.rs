//! Wakes the daemon when the log has more.

use std::sync::{Mutex, PoisonError};

use spool::log::OnChange;

/// Wakes the daemon that waits for changes of the log.
#[derive(Default)]
pub(super) struct ChangeSignal(Mutex<Option<OnChange>>);

impl ChangeSignal {
    /// Sets the function that wakes the daemon.
    pub(super) fn set(&self, on_change: OnChange) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(on_change);
    }

    pub(super) fn wake(&self) {
        if let Some(wake) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            wake();
        }
    }
}
