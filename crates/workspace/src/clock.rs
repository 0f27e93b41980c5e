//! Reads the clock for every time that goes into a record; no other module does. Others read it to wait and to measure.

use std::time::{Duration, Instant, SystemTime};

use chrono::{DateTime, TimeDelta, Utc};
use message_schema::id::{AgentName, MessageId};
use spool::Now;

/// The first time of the clock: 0001-01-01T00:00:00Z in milliseconds since 1970.
const FIRST_MILLIS: i64 = -62_135_596_800_000;

/// The last time of the clock: 9999-01-01T00:00:00Z in milliseconds since 1970.
const LAST_MILLIS: i64 = 253_370_764_800_000;

/// A monotonic clock, read together with the wall clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
}

/// A reading of both clocks.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Milliseconds since the clock was started; monotonic.
    pub mono: u64,
    /// The wall-clock time, truncated to milliseconds as in the ledger.
    pub utc: DateTime<Utc>,
}

impl Clock {
    /// Starts the clock.
    pub fn start() -> Self {
        Self {
            start: Instant::now(),
        }
    }

    /// The time since the clock was started.
    pub fn passed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Reads both clocks.
    pub fn read(&self) -> Moment {
        let passed = self.start.elapsed().as_millis();
        Moment {
            mono: u64::try_from(passed).unwrap_or(u64::MAX),
            utc: now(),
        }
    }
}

impl Moment {
    /// The reading in the form that the spool uses.
    pub fn spool(&self) -> Now {
        Now {
            mono: self.mono,
            wall: self.utc.timestamp_millis(),
        }
    }
}

/// Formats a duration with one number and one unit: `90 s`, `12 min`, `3 h`, `2 d`.
pub fn span(length: TimeDelta) -> String {
    match length.num_seconds() {
        seconds @ ..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds @ 7200..172_800 => format!("{} h", seconds / 3600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

/// The time since boot, by the clock that supervisors use.
pub fn since_boot() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let part = |number: i64| u64::try_from(number).unwrap_or(0);
    Duration::from_secs(part(now.tv_sec)) + Duration::from_nanos(part(now.tv_nsec))
}

/// The wall-clock time, truncated to milliseconds. A clock that was never set may be before 1970.
pub fn now() -> DateTime<Utc> {
    of_clock(SystemTime::now())
}

/// Limits a clock that is set wrongly to the years that a record can hold, each of four digits: a start could not read
/// any other, and the conversions of `chrono` panic on some. A deadline weeks later still has a year of four digits.
fn of_clock(time: SystemTime) -> DateTime<Utc> {
    let millis = match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
        // Rounded down like the times after 1970.
        Err(before) => {
            i64::try_from(before.duration().as_nanos().div_ceil(1_000_000)).map_or(i64::MIN, |n| -n)
        }
    };
    let limited = millis.clamp(FIRST_MILLIS, LAST_MILLIS);
    DateTime::from_timestamp_millis(limited).expect("the years 1 to 9999 are few for chrono")
}

/// Makes an id for a message of the daemon.
pub fn new_message_id() -> MessageId {
    let ulid = ulid::Ulid::generate();
    MessageId::new(format!("settled-{ulid}")).expect("a ULID is within the alphabet of message ids")
}

/// Makes an id for an order.
pub fn new_order_id() -> MessageId {
    let ulid = ulid::Ulid::generate();
    MessageId::new(format!("order-{ulid}")).expect("a ULID is within the alphabet of message ids")
}

/// Makes an id for a message that an agent writes with a command: readable, sorted by time, and unique.
pub fn new_id_of(agent: &AgentName, at: DateTime<Utc>) -> MessageId {
    let chance = new_name().split_off(18);
    MessageId::new(format!(
        "{}-{agent}-{chance}",
        at.format("%Y%m%dT%H%M%S%3fZ")
    ))
    .expect(
        "an instant, an agent's name and a part of a ULID are within the alphabet of message ids",
    )
}

/// Makes a unique name of 26 letters and digits.
pub fn new_name() -> String {
    ulid::Ulid::generate().to_string().to_lowercase()
}

#[cfg(test)]
mod tests {
    use chrono::SubsecRound as _;

    use super::*;

    /// Waits until the clock has moved, and returns by how much.
    fn a_moment() -> Duration {
        let start = Instant::now();
        loop {
            let passed = start.elapsed();
            if passed > Duration::from_micros(1) {
                return passed;
            }
        }
    }

    #[test]
    fn a_clock_that_is_set_wrongly_stays_within_years_of_four_digits() {
        let epoch = SystemTime::UNIX_EPOCH;
        let day = |days: u64| Duration::from_secs(86_400 * days);
        let said = |time| of_clock(time).to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
        for (time, expected) in [
            (
                Some(epoch + Duration::from_micros(1_999)),
                "1970-01-01T00:00:00.001Z",
            ),
            (
                Some(epoch - Duration::from_micros(1_001)),
                "1969-12-31T23:59:59.998Z",
            ),
            (Some(epoch + day(2_932_531)), "9998-12-31T00:00:00.000Z"),
            (Some(epoch + day(2_932_897)), "9999-01-01T00:00:00.000Z"),
            (epoch.checked_add(day(1 << 44)), "9999-01-01T00:00:00.000Z"),
            (epoch.checked_sub(day(719_162)), "0001-01-01T00:00:00.000Z"),
            (epoch.checked_sub(day(1 << 44)), "0001-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(said(time.expect("the system holds such times")), expected);
        }
    }

    #[test]
    fn a_length_of_time_has_one_number_and_one_unit() {
        let (minute, hour, day) = (60, 3_600, 86_400);
        for (seconds, said) in [
            (0, "0 s"),
            (119, "119 s"),
            (2 * minute, "2 min"),
            (2 * hour - 1, "119 min"),
            (2 * hour, "2 h"),
            (2 * day - 1, "47 h"),
            (2 * day, "2 d"),
            (10 * day + hour, "10 d"),
        ] {
            assert_eq!(span(TimeDelta::seconds(seconds)), said);
        }
    }

    #[test]
    fn the_clocks_of_waiting_and_measuring_go_forward() {
        let (clock, booted) = (Clock::start(), since_boot());
        let passed = a_moment();
        assert!(clock.passed() >= passed);
        assert!(since_boot() > booted);
        assert!(clock.read().utc > DateTime::UNIX_EPOCH);
    }

    #[test]
    fn the_time_of_a_record_is_the_time_of_day_in_whole_milliseconds() {
        let before = SystemTime::now();
        let read = now();
        let [before, after] = [before, SystemTime::now()].map(DateTime::<Utc>::from);
        assert!(before - TimeDelta::milliseconds(1) < read && read <= after);
        assert_eq!(read, read.trunc_subsecs(3));
        let moment = Moment {
            mono: 7,
            utc: DateTime::UNIX_EPOCH + TimeDelta::seconds(2),
        };
        let Now { mono, wall } = moment.spool();
        assert_eq!((mono, wall), (7, 2_000));
    }

    #[test]
    fn every_id_and_every_name_is_new() {
        let agent: AgentName = "claude".parse().expect("a name");
        let id_of = || new_id_of(&agent, DateTime::UNIX_EPOCH).to_string();
        for (make, beginning, length) in [
            (
                &(|| new_message_id().to_string()) as &dyn Fn() -> String,
                "settled-",
                34,
            ),
            (&|| new_order_id().to_string(), "order-", 32),
            (&id_of, "19700101T000000000Z-claude-", 35),
            (&new_name, "0", 26),
        ] {
            let (one, other) = (make(), make());
            assert_ne!(one, other);
            assert!(one.starts_with(beginning) && one.len() == length, "{one}");
        }
    }
}
