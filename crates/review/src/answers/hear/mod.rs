//! What an event does: a person's decision, a pull request that moves, a reviewer that takes its
//! request or counts its turns, a deadline that has come. Looks and answers, changes nothing.

mod context;
mod deadline;
mod pair;
mod person;
mod pull;
mod reviewer;

use chrono::{DateTime, Utc};
use message_schema::id::MessageId;

use self::context::{Answer, No, Room};
use crate::parts::state::State;
use crate::words::event::Event;
use crate::words::policy::Policy;
use crate::words::record::{Happened, Record};

/// An event as the daemon is told of it.
#[derive(Clone, Copy, Debug)]
pub struct Told<'a> {
    /// The id it was asked under, by a person or a runner.
    pub order: Option<&'a MessageId>,
    /// What happened.
    pub event: &'a Event,
}

/// What an event does to the reviews it concerns, or why it does nothing. `ids` gives a fresh
/// message id for each letter the daemon writes about it.
pub fn hear(
    state: &State,
    policy: &Policy,
    told: Told<'_>,
    now: DateTime<Utc>,
    ids: &mut dyn FnMut() -> MessageId,
) -> Record {
    let mut room = Room {
        state,
        policy,
        now,
        ids,
    };
    let answer = match told.event {
        Event::Deadline { review, which } => deadline::hear(&mut room, review, *which),
        Event::Taken(which) => reviewer::taken(&mut room, which),
        Event::Turns { which, count } => reviewer::turns(&mut room, which, *count),
        Event::Started(which) => reviewer::started(&mut room, which),
        Event::Failed { which, .. } => reviewer::failed(&mut room, which),
        Event::Pull(pull) => pull::hear(&mut room, pull),
        Event::Person(decision) => person::hear(&mut room, decision),
        Event::Pair(news) => pair::hear(&mut room, news),
    };
    let (event, order) = (told.event.clone(), told.order.cloned());
    match answer {
        Ok(Answer {
            steps,
            letters,
            handoff,
            pair,
        }) => Record::Happened(Box::new(Happened {
            event,
            order,
            steps,
            letters,
            handoff,
            pair,
        })),
        Err(No { code, why }) => Record::Declined {
            event,
            order,
            code,
            why,
        },
    }
}

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
        hear(
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
