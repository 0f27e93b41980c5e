//! The input of the rules of an event, and their two kinds of answers.

use chrono::{DateTime, Utc};
use message_schema::Code;
use message_schema::id::{AgentName, MessageId};
use pair_machine::PairStatus;
use policy::Policy;
use review_words::event::Which;
use review_words::key::ReviewKey;
use review_words::record::{DaemonMessage, ReviewStep, Says};
use review_words::task::Handoff;

use crate::parts::review::Review;
use crate::parts::state::State;

/// The input of the rules of an event.
pub(super) struct EventContext<'a> {
    pub(super) state: &'a State,
    pub(super) policy: &'a Policy,
    pub(super) now: DateTime<Utc>,
    pub(super) ids: &'a mut dyn FnMut() -> MessageId,
}

/// The effects of an event.
#[derive(Default)]
pub(super) struct Consequences {
    pub(super) steps: Vec<ReviewStep>,
    pub(super) messages: Vec<DaemonMessage>,
    pub(super) handoff: Option<Handoff>,
    pub(super) pair: Option<PairStatus>,
}

/// The reason an event does nothing.
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

    /// Declines the start of an agent's command if no budget is left for this day.
    pub(super) fn has_budget(&self, agent: &AgentName) -> Result<(), Declined> {
        let Some(used_up) = self.state.used_up(self.policy, agent, &[], self.now) else {
            return Ok(());
        };
        let until = used_up.until.format("%Y-%m-%dT%H:%M:%SZ");
        let why = format!("{agent} is not started before {until}: {used_up}");
        Err(Declined::new(Code::ProviderUnavailable, why))
    }

    /// Finds the only review that matches a person's name for it. It never guesses among several.
    pub(super) fn find(&self, which: &Which) -> Result<(&'a ReviewKey, &'a Review), Declined> {
        self.find_among(which, |key, review, reviewer| {
            key.reviewer == *reviewer || review.reviewer(key) == reviewer
        })
    }

    /// Finds the review whose reviewer is at work: the only match with an open request, or the only match at all. A
    /// replaced reviewer is no longer at work.
    pub(super) fn find_at_work(
        &self,
        which: &Which,
    ) -> Result<(&'a ReviewKey, &'a Review), Declined> {
        let is_current = |key: &ReviewKey, review: &Review, reviewer: &AgentName| {
            review.reviewer(key) == reviewer
        };
        let mut open = named(self.state, which, is_current);
        open.retain(|(_, review)| review.phase.invocation().is_some());
        match open.as_slice() {
            [only] => Ok(*only),
            [] | [_, _, ..] => self.find_among(which, is_current),
        }
    }

    fn find_among(
        &self,
        which: &Which,
        is_meant: impl Fn(&ReviewKey, &Review, &AgentName) -> bool,
    ) -> Result<(&'a ReviewKey, &'a Review), Declined> {
        let named = named(self.state, which, is_meant);
        match named.as_slice() {
            [] => Err(Declined::new(
                Code::NoOpenRequest,
                format!("pull request {} has no such review", which.pr),
            )),
            [only] => Ok(*only),
            several => {
                let names: Vec<_> = several.iter().map(|(key, _)| key.to_string()).collect();
                let why = format!(
                    "several reviews match: {}; name the reviewer or the repository",
                    names.join(", ")
                );
                Err(Declined::new(Code::ReviewAmbiguous, why))
            }
        }
    }
}

/// Returns the reviews of that name; `is_meant` decides about a named reviewer.
fn named<'a>(
    state: &'a State,
    which: &Which,
    is_meant: impl Fn(&ReviewKey, &Review, &AgentName) -> bool,
) -> Vec<(&'a ReviewKey, &'a Review)> {
    state
        .counted_reviews(which.repo.as_ref(), &which.pr)
        .into_iter()
        .filter(|(key, review)| {
            let reviewer = which.reviewer.as_ref();
            reviewer.is_none_or(|reviewer| is_meant(key, review, reviewer))
        })
        .collect()
}
