//! A reading of the clocks, as it is handed in.

use chrono::{DateTime, Utc};
use spool::Now;

/// One reading of both clocks.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Milliseconds since the clock was started; never goes back.
    pub mono: u64,
    /// The time of day, cut to the millisecond, as the ledger keeps it.
    pub utc: DateTime<Utc>,
}

impl Moment {
    /// The reading as the spool wants it.
    pub fn spool(&self) -> Now {
        Now {
            mono: self.mono,
            wall: self.utc.timestamp_millis(),
        }
    }
}
