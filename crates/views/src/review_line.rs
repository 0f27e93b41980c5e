//! A review on one line, for one of its two agents.

use chrono::{DateTime, Utc};
use mailbox::my_reviews::MyReview;
use message_schema::line::escaped;
use screen::{ago, ahead};

/// Formats a review on one line.
pub fn line(mine: &MyReview, now: DateTime<Utc>) -> String {
    let MyReview {
        review,
        phase,
        round,
        rounds,
        since,
        ..
    } = mine;
    let due = match (mine.waits_for, mine.due_at) {
        (Some(which), Some(at)) => format!(", {} due {}", which.replace('_', "-"), ahead(at - now)),
        (Some(_), None) | (None, Some(_) | None) => String::new(),
    };
    escaped(&format!(
        "  {review}: {phase}, round {round} of {rounds}, {}{due}",
        ago(now - *since)
    ))
}
