//! A pair of commands beside the reviews between its two agents: the ledger's word on a review
//! counts for more than what either command says.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::parts::review::Review;
use crate::words::key::ReviewKey;
use crate::words::phase::{Phase, Side};
use pair_machine::{PairSetup, PairStanding};

/// A pair that goes on or may go on: one that is over for good is in the ledger only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenPair {
    /// How it was set up.
    pub setup: PairSetup,
    /// When.
    pub opened_at: DateTime<Utc>,
    /// Where it stands.
    pub standing: PairStanding,
    /// The reviews between the two that its author asked for since then.
    #[serde(skip_serializing_if = "BTreeSet::is_empty", default)]
    pub asked_for: BTreeSet<ReviewKey>,
}

impl OpenPair {
    /// Whether it answers for that review: one between the two, of the pull request that was named, else one that its
    /// author asked for while the pair went on.
    pub fn is_own(&self, key: &ReviewKey) -> bool {
        self.is_theirs(key)
            && match &self.setup.pr {
                Some(pr) => pr.to_canonical() == key.pr,
                None => self.asked_for.contains(key),
            }
    }

    /// Whether its review is with a person, or came to one: a person's decision is no longer the pair's.
    pub(crate) fn is_left_to_a_person<'a>(
        &self,
        mut reviews: impl Iterator<Item = (&'a ReviewKey, &'a Review)>,
    ) -> bool {
        reviews.any(|(key, review)| self.is_own(key) && matches!(review.phase, Phase::Escalated(_)))
    }

    /// Its reviews in which the reviewer has an answer to give.
    pub(crate) fn asked<'a>(
        &self,
        reviews: impl Iterator<Item = (&'a ReviewKey, &'a Review)>,
    ) -> impl Iterator<Item = (&'a ReviewKey, &'a Review)> {
        reviews.filter(|(key, review)| review.phase.invocation().is_some() && self.is_own(key))
    }

    /// Whether the gate has approved all it answers for: a word of the reviewer approves nothing else.
    pub(crate) fn is_approved<'a>(
        &self,
        reviews: impl Iterator<Item = (&'a ReviewKey, &'a Review)>,
    ) -> bool {
        let mut own = reviews.filter(|(key, _)| self.is_own(key)).peekable();
        // A pull request that was named is reviewed before the pair is over.
        let is_missing = own.peek().is_none() && self.setup.pr.is_some();
        !is_missing && own.all(|(_, review)| review.phase.is_final())
    }

    /// Whether its review waited for the author through the author's whole turn: it waits on threads nobody answers.
    pub(crate) fn is_unanswered<'a>(
        &self,
        mut reviews: impl Iterator<Item = (&'a ReviewKey, &'a Review)>,
    ) -> bool {
        reviews.any(|(key, review)| {
            let is_authors = !review.phase.is_final() && review.mover() == Side::Author;
            let worked_at = self.standing.worked_at;
            is_authors && self.is_own(key) && worked_at.is_some_and(|at| review.since < at)
        })
    }

    /// Whether that is a review between the two.
    pub(crate) fn is_theirs(&self, key: &ReviewKey) -> bool {
        key.author == self.setup.author.agent
            && self
                .setup
                .reviewer
                .as_ref()
                .is_some_and(|it| it.agent == key.reviewer)
    }
}
