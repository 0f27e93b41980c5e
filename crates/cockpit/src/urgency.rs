//! The urgency of a deadline, so that minutes look different from a day on every screen.

use chrono::{DateTime, TimeDelta, Utc};

/// A wait is urgent when no more than this is left, however short the whole wait is.
const LAST_MINUTES: TimeDelta = TimeDelta::minutes(5);

/// A wait is also urgent when no more than this fraction is left: two hours of a day.
const LAST_PART: u64 = 12;

/// The urgency of a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// It is far away.
    Calm,
    /// Little is left.
    Soon,
    /// It has passed.
    Over,
}

impl Urgency {
    /// Returns the urgency of a deadline that ends a wait of `wait_s` seconds.
    pub fn of(due: DateTime<Utc>, wait_s: Option<u64>, now: DateTime<Utc>) -> Self {
        let left = due - now;
        let part = i64::try_from(wait_s.unwrap_or(0) / LAST_PART).unwrap_or(i64::MAX);
        if left <= TimeDelta::zero() {
            Self::Over
        } else if left <= LAST_MINUTES || left.num_seconds() <= part {
            Self::Soon
        } else {
            Self::Calm
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_minutes_and_the_last_hours_of_a_day_are_urgent() {
        let now = DateTime::UNIX_EPOCH;
        let of = |left_s, wait_s| Urgency::of(now + TimeDelta::seconds(left_s), Some(wait_s), now);
        let day = 24 * 3_600;
        assert_eq!(of(23 * 3_600, day), Urgency::Calm);
        assert_eq!(of(2 * 3_600, day), Urgency::Soon);
        assert_eq!(of(9 * 60, 600), Urgency::Calm);
        assert_eq!(of(4 * 60, 600), Urgency::Soon);
        assert_eq!(of(0, 600), Urgency::Over);
    }
}
