//! The deadlines the daemon owns: every phase that is not final has exactly one.

use chrono::TimeDelta;
use message_schema::envelope::Priority;
use serde::{Deserialize, Serialize};

/// The move that a review waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deadline {
    /// The reviewer must take the request.
    PickUp,
    /// The reviewer must answer within its runtime.
    Runtime,
    /// The author must move.
    Author,
}

impl Deadline {
    /// Returns the word on the screen and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::PickUp => "pick_up",
            Self::Runtime => "runtime",
            Self::Author => "author",
        }
    }
}

/// Returns the time an agent has to move, by the priority of the round's request: P0 2 hours, P1 24 hours, P2 48 hours,
/// P3 7 days.
pub fn patience(priority: Priority) -> TimeDelta {
    match priority {
        Priority::P0 => TimeDelta::hours(2),
        Priority::P1 => TimeDelta::hours(24),
        Priority::P2 => TimeDelta::hours(48),
        Priority::P3 => TimeDelta::days(7),
    }
}
