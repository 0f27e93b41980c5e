//! The time, handed in by the caller: no clock is read here, so a test sets the time.

use crate::Stat;

/// A change this far in the future, in milliseconds, shows that the clock was set back.
const CLOCK_BACK_MS: i64 = 3_600_000;

/// The time, as the caller's clocks show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// A clock that never goes back, in milliseconds.
    pub mono: u64,
    /// Milliseconds since 1970, UTC.
    pub wall: i64,
}

impl Now {
    /// Returns how many milliseconds ago a file was last changed; 0 if that is in the future.
    pub fn age_ms(self, file: &Stat) -> u64 {
        u64::try_from(self.wall.saturating_sub(self.last_change_ms(file))).unwrap_or(0)
    }

    /// Returns the time of a file's last change, in milliseconds since 1970, UTC. A writer can set the time of the content,
    /// but not that of the last change to anything about the file.
    pub fn last_change_ms(self, file: &Stat) -> i64 {
        let (written, changed) = (file.mtime_ns / 1_000_000, file.ctime_ns / 1_000_000);
        match changed.saturating_sub(self.wall) {
            ahead if ahead > CLOCK_BACK_MS => written,
            _ => written.max(changed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileKind;

    #[test]
    fn an_age_counts_from_the_last_change_unless_the_clock_was_set_back_since() {
        const MINUTE: i64 = 60_000;
        let now = Now {
            mono: 0,
            wall: 100 * MINUTE,
        };
        for (written, changed, age) in [
            (90, 90, 10),
            (90, 95, 5),
            // A writer can set the time of the content.
            (1, 95, 5),
            (95, 1, 5),
            (101, 95, 0),
            (90, 101, 0),
            (90, 160, 0),
            (90, 161, 10),
            (100, 100, 0),
        ] {
            let nanoseconds = |minutes: i64| minutes * MINUTE * 1_000_000;
            let file = Stat {
                kind: FileKind::File,
                dev: 1,
                ino: 1,
                uid: 1,
                links: 1,
                size: 1,
                mtime_ns: nanoseconds(written),
                ctime_ns: nanoseconds(changed),
            };
            let found = now.age_ms(&file);
            assert_eq!(found, age * 60_000, "{written}, {changed}");
        }
    }
}
