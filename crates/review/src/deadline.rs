//! The deadlines the daemon owns: every phase that is not final has exactly one.

use chrono::{DateTime, TimeDelta, Utc};
use message_schema::envelope::Priority;
use serde::{Deserialize, Serialize};

use crate::phase::Phase;
use crate::state::Review;

/// What a review waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deadline {
    /// The reviewer is to take the request.
    PickUp,
    /// The reviewer is to answer within its runtime.
    Runtime,
    /// The author is to move.
    Author,
}

impl Deadline {
    /// The word on the screen and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::PickUp => "pick_up",
            Self::Runtime => "runtime",
            Self::Author => "author",
        }
    }
}

/// How long an agent may take to move, by the priority of the round's request: P0 2 hours,
/// P1 24 hours, P2 48 hours, P3 7 days.
pub fn patience(priority: Priority) -> TimeDelta {
    match priority {
        Priority::P0 => TimeDelta::hours(2),
        Priority::P1 => TimeDelta::hours(24),
        Priority::P2 => TimeDelta::hours(48),
        Priority::P3 => TimeDelta::days(7),
    }
}

impl Review {
    /// When the daemon ends the wait, and what it waits for; `None` in a final phase.
    pub fn deadline(&self) -> Option<(DateTime<Utc>, Deadline)> {
        match &self.phase {
            Phase::Awaiting { due } | Phase::Fixing { due } | Phase::Addressed { due, .. } => {
                Some((*due, Deadline::Author))
            }
            Phase::Reviewing(invocation) => Some(match invocation.taken_at {
                None => (invocation.pick_up_by, Deadline::PickUp),
                Some(taken) => {
                    let runtime = TimeDelta::seconds(invocation.runtime_s.get().into());
                    (taken + runtime, Deadline::Runtime)
                }
            }),
            Phase::Approved(_) | Phase::Escalated(_) | Phase::Closed(_) => None,
        }
    }
}
