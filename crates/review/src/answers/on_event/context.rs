//! What the rules of an event look at, and the two ways in which they answer.

use chrono::{DateTime, Utc};
use message_schema::Code;
use message_schema::id::{AgentName, MessageId};

use crate::parts::review::Review;
use crate::parts::state::State;
use crate::words::event::Which;
use crate::words::key::ReviewKey;
use crate::words::record::{DaemonMessage, ReviewStep, Says};
use crate::words::task::Handoff;
use pair_machine::PairStanding;
use policy::Policy;

/// What the rules look at.
pub(super) struct EventContext<'a> {
    pub(super) state: &'a State,
    pub(super) policy: &'a Policy,
    pub(super) now: DateTime<Utc>,
    pub(super) ids: &'a mut dyn FnMut() -> MessageId,
}

/// What an event does.
#[derive(Default)]
pub(super) struct Consequences {
    pub(super) steps: Vec<ReviewStep>,
    pub(super) letters: Vec<DaemonMessage>,
    pub(super) handoff: Option<Handoff>,
    pub(super) pair: Option<PairStanding>,
}

/// Why an event does nothing.
pub(super) struct Declined {
    pub(super) code: Code,
    pub(super) why: String,
}

impl Declined {
    pub(super) fn new(code: Code, why: impl Into<String>) -> Self {
        Self {
            code,
            why: why.into(),
        }
    }
}

impl<'a> EventContext<'a> {
    pub(super) fn message(&mut self, to: &AgentName, says: Says) -> DaemonMessage {
        DaemonMessage {
            id: (self.ids)(),
            to: to.clone(),
            says,
        }
    }

    /// The review a person means: the only one of the name. Which of several is never guessed.
    pub(super) fn find(&self, which: &Which) -> Result<(&'a ReviewKey, &'a Review), Declined> {
        self.find_among(which, |_| true)
    }

    /// The review whose reviewer is at work: the only one of the name with an open request, or the
    /// only one at all.
    pub(super) fn find_at_work(
        &self,
        which: &Which,
    ) -> Result<(&'a ReviewKey, &'a Review), Declined> {
        self.find_among(which, |review| review.phase.invocation().is_some())
            .or_else(|_| self.find(which))
    }

    fn find_among(
        &self,
        which: &Which,
        admits: impl Fn(&Review) -> bool,
    ) -> Result<(&'a ReviewKey, &'a Review), Declined> {
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
            [] => Err(Declined::new(
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
                Err(Declined::new(Code::ReviewAmbiguous, why))
            }
        }
    }
}
