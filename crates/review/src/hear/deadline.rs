//! A deadline has come: the daemon ends the wait, and a person decides.

use chrono::{DateTime, Utc};
use message_schema::Code;
use message_schema::id::MessageId;

use super::{Answer, No, Room, Told, hear as hear_event};
use crate::deadline::Deadline;
use crate::event::Event;
use crate::key::ReviewKey;
use crate::phase::{EscalationReason, Phase};
use crate::policy::Policy;
use crate::record::{Record, Says, Step};
use crate::state::State;

/// The record of the earliest deadline that has come, if one has. Called again after `apply` until
/// none is left; whatever lies finished in an outbox has to be judged before.
pub fn due(
    state: &State,
    policy: &Policy,
    now: DateTime<Utc>,
    ids: &mut dyn FnMut() -> MessageId,
) -> Option<Record> {
    let (at, key) = state.next_deadline()?;
    let (_, which) = state.review(key)?.deadline()?;
    let event = Event::Deadline {
        review: key.clone(),
        which,
    };
    (at <= now).then(|| {
        hear_event(
            state,
            policy,
            Told {
                order: None,
                event: &event,
            },
            now,
            ids,
        )
    })
}

pub(super) fn hear(room: &mut Room<'_>, key: &ReviewKey, which: Deadline) -> Result<Answer, No> {
    let review = room
        .state
        .review(key)
        .filter(|review| match review.deadline() {
            Some((at, armed)) => armed == which && at <= room.now,
            None => false,
        });
    let Some(review) = review else {
        return Err(No::new(
            Code::ReviewClosed,
            "the review waits for no such deadline",
        ));
    };
    let reason = match which {
        Deadline::PickUp => EscalationReason::ReviewerTimeout,
        Deadline::Runtime => EscalationReason::ReviewerBudgetExceeded,
        Deadline::Author => EscalationReason::AuthorTimeout,
    };
    let letters = match which {
        Deadline::Runtime => {
            let says = Says::BudgetSpent {
                review: key.clone(),
                round: review.round,
            };
            vec![room.letter(&key.author, says)]
        }
        Deadline::PickUp | Deadline::Author => {
            let says = Says::Escalated {
                review: key.clone(),
                reason: reason.clone(),
            };
            vec![
                room.letter(&key.author, says.clone()),
                room.letter(&key.reviewer, says),
            ]
        }
    };
    let step = Step::to(key, review.round, Phase::Escalated(reason));
    Ok(Answer {
        steps: vec![step],
        letters,
        ..Answer::default()
    })
}
