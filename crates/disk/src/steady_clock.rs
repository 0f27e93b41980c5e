//! Reads the wall clock for the age of files and distrusts it while it disagrees with the monotonic clock: if an operator
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_is_believed_after_a_minute() {
        let mut clock = SteadyClock::default();
        for (mono, wall, read) in [
            (1_000, 500_000, 500_000),
            // It drifts, in either direction, and each reading counts from the one before.
            (2_000, 501_025, 501_025),
            (3_000, 502_000, 502_000),
            // It is set forward; the steady clock goes on.
            (4_000, 603_000, 503_000),
            (63_999, 662_999, 562_999),
            (64_000, 663_000, 663_000),
            // It is set back.
            (65_000, 100_000, 100_000),
            (66_000, 101_000, 101_000),
            // It is set right before the minute is over, and then forward, which starts the minute again.
            (67_000, 666_000, 666_000),
            (68_000, 667_026, 667_000),
            (126_999, 726_025, 725_999),
            (127_999, 727_025, 726_999),
            (128_000, 727_026, 727_026),
            (129_000, 728_026, 728_026),
        ] {
            let found = clock.read(Now { mono, wall });
            assert_eq!(found, Now { mono, wall: read }, "{mono}");
        }
    }
}
