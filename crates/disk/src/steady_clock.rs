//! Reads the wall clock for the age of files and distrusts it while it disagrees with the monotonic clock: if somebody
//! sets it while a writer is at work, a file written a moment ago looks an hour old.

use crate::Now;

/// The most milliseconds by which the two clocks may drift apart between two readings.
const DRIFT_MS: i64 = 25;

/// This long after the wall clock was set, in milliseconds, every writer of that time has written more or is gone.
const DOUBT_MS: u64 = 60_000;

/// The wall clock, extrapolated from its last reading.
#[derive(Debug, Default)]
pub struct SteadyClock {
    last: Option<Now>,
    /// Since when the wall clock has been distrusted, on the monotonic clock.
    doubted: Option<u64>,
}

impl SteadyClock {
    /// Returns the reading with the earlier of two wall clocks: the one read now and the one extrapolated from before.
    /// So no file looks older than it is, whether the clock was set forward or back.
    pub fn read(&mut self, now: Now) -> Now {
        let Some(last) = self.last else {
            self.last = Some(now);
            return now;
        };
        let passed = i64::try_from(now.mono.saturating_sub(last.mono)).unwrap_or(i64::MAX);
        let steady = last.wall.saturating_add(passed);
        if now.wall.abs_diff(steady) <= DRIFT_MS.unsigned_abs() {
            (self.last, self.doubted) = (Some(now), None);
            return now;
        }
        let since = *self.doubted.get_or_insert(now.mono);
        if now.mono.saturating_sub(since) >= DOUBT_MS {
            (self.last, self.doubted) = (Some(now), None);
            return now;
        }
        Now {
            wall: now.wall.min(steady),
            ..now
        }
    }
}
