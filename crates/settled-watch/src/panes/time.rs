//! Instants in words.

use chrono::{DateTime, Utc};
use cockpit::Urgency;
use screen::{ago, ahead};

use crate::ink::Ink;

/// The time of day for an instant of today, and the day for any other.
pub(super) fn clock(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    if at.date_naive() == now.date_naive() {
        at.format("%H:%M").to_string()
    } else {
        at.format("%m-%d %H:%M").to_string()
    }
}

/// The time left of a wait of `wait_s` seconds, or the time since its start if it has no deadline.
pub(super) fn left(
    due: Option<DateTime<Utc>>,
    wait_s: Option<u64>,
    since: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
) -> (Ink, String) {
    let Some(due) = due else {
        let text = since.map_or_else(String::new, |since| ago(now - since));
        return (Ink::Plain, text);
    };
    let span = workspace::clock::span;
    match Urgency::of(due, wait_s, now) {
        Urgency::Calm => (Ink::Plain, format!("due {}", ahead(due - now))),
        Urgency::Soon => (Ink::Alarm, format!("ONLY {} left", span(due - now))),
        Urgency::Over => (Ink::Alarm, format!("OVERDUE {}", span(now - due))),
    }
}
