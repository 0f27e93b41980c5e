//! Reads the clock for every time that goes into a record; no other module does. Others read it to wait and to measure.

use std::time::{Duration, Instant, SystemTime};

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use message_schema::id::{AgentName, MessageId};
use spool::Now;

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
    // `Utc::now` panics before 1970.
    DateTime::from(SystemTime::now()).trunc_subsecs(3)
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
