//! A pair of commands beside the reviews between its two agents. The ledger's records of a review outweigh the signals
//! of both commands.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use pair_machine::{PairSetup, PairStatus};
use review_words::key::ReviewKey;
use review_words::phase::Side;
use serde::{Deserialize, Serialize};

use crate::parts::review::Review;

/// A pair that runs or can be resumed; a finished one is in the ledger only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenPair {
    /// Its setup.
    pub setup: PairSetup,
    /// The time it was opened.
    pub opened_at: DateTime<Utc>,
    /// Its state.
    #[serde(rename = "standing")]
    pub status: PairStatus,
    /// The reviews between the two that its author has requested since then.
    #[serde(skip_serializing_if = "BTreeSet::is_empty", default)]
    pub asked_for: BTreeSet<ReviewKey>,
}

impl OpenPair {
    /// True if the pair answers for that review: the review is between its two agents and of the pull request that the
    /// setup names; without such a name, the author requested it while the pair ran.
    pub fn is_own(&self, key: &ReviewKey) -> bool {
        self.is_theirs(key)
            && match &self.setup.pr {
                Some(pr) => pr.to_canonical() == key.pr,
                None => self.asked_for.contains(key),
            }
    }

    /// True if all its own reviews have ended, and a named pull request has one. A signal of the reviewer alone approves
    /// nothing.
    pub(crate) fn is_approved<'a>(
        &self,
        own: impl Iterator<Item = (&'a ReviewKey, &'a Review)>,
    ) -> bool {
        let mut own = own.peekable();
        // A named pull request must be reviewed before the pair is over.
        let is_missing = own.peek().is_none() && self.setup.pr.is_some();
        !is_missing && own.all(|(_, review)| review.phase.is_final())
    }

    /// True if one of its own reviews waited for the author through the author's whole turn, so it waits on threads
    /// nobody answers.
    pub(crate) fn is_unanswered<'a>(
        &self,
        mut own: impl Iterator<Item = (&'a ReviewKey, &'a Review)>,
    ) -> bool {
        own.any(|(_, review)| {
            let is_authors = !review.phase.is_final() && review.mover() == Side::Author;
            let worked_at = self.status.worked_at;
            is_authors && worked_at.is_some_and(|at| review.since < at)
        })
    }

    /// True if the review is between the pair's two agents.
    pub(crate) fn is_theirs(&self, key: &ReviewKey) -> bool {
        key.author == self.setup.author.agent
            && self
                .setup
                .reviewer
                .as_ref()
                .is_some_and(|it| it.agent == key.reviewer)
    }
}
