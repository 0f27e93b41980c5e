//! What an event does: a person's decision, a pull request that moves, a reviewer that takes its
//! request or counts its turns, a deadline that has come. Looks and answers, changes nothing.

mod deadline;
mod pair;
mod person;
mod pull;
mod reviewer;

use chrono::{DateTime, Utc};
use message_schema::Code;
use message_schema::id::MessageId;

use crate::event::{Event, Which};
use crate::key::ReviewKey;
use crate::policy::Policy;
use crate::record::{Happened, Letter, Record, Says, Step};
use crate::state::{Review, State};

pub use self::deadline::due;

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

/// What the rules look at.
struct Room<'a> {
    state: &'a State,
    policy: &'a Policy,
    now: DateTime<Utc>,
    ids: &'a mut dyn FnMut() -> MessageId,
}

/// What an event does.
#[derive(Default)]
struct Answer {
    steps: Vec<Step>,
    letters: Vec<Letter>,
    handoff: Option<crate::handoff::Handoff>,
    pair: Option<crate::pairs::PairStanding>,
}

/// Why an event does nothing.
struct No {
    code: Code,
    why: String,
}

impl No {
    fn new(code: Code, why: impl Into<String>) -> Self {
        Self {
            code,
            why: why.into(),
        }
    }
}

impl<'a> Room<'a> {
    fn letter(&mut self, to: &message_schema::id::AgentName, says: Says) -> Letter {
        Letter {
            id: (self.ids)(),
            to: to.clone(),
            says,
        }
    }

    /// The review a person means: the only one of the name. Which of several is never guessed.
    fn find(&self, which: &Which) -> Result<(&'a ReviewKey, &'a Review), No> {
        self.find_among(which, |_| true)
    }

    /// The review whose reviewer is at work: the only one of the name with an open request, or the
    /// only one at all.
    fn find_at_work(&self, which: &Which) -> Result<(&'a ReviewKey, &'a Review), No> {
        self.find_among(which, |review| review.phase.invocation().is_some())
            .or_else(|_| self.find(which))
    }

    fn find_among(
        &self,
        which: &Which,
        admits: impl Fn(&Review) -> bool,
    ) -> Result<(&'a ReviewKey, &'a Review), No> {
        let state = self.state;
        let named = state
            .of_pr(which.repo.as_ref(), &which.pr)
            .filter(|(key, _)| {
                which
                    .reviewer
                    .as_ref()
                    .is_none_or(|reviewer| key.reviewer == *reviewer)
            })
            .filter(|(_, review)| admits(review));
        let named: Vec<_> = named.collect();
        match named.as_slice() {
            [] => Err(No::new(
                Code::NoOpenRequest,
                format!("pull request {} has no such review", which.pr),
            )),
            [only] => Ok(*only),
            several => {
                let names: Vec<_> = several.iter().map(|(key, _)| key.to_string()).collect();
                let why = format!(
                    "which review is meant: {}? name the reviewer or the repository",
                    names.join(", ")
                );
                Err(No::new(Code::ReviewAmbiguous, why))
            }
        }
    }
}
