//! A pair of commands beside the reviews between its two agents: the ledger's word on a review
//! counts for more than what either command says.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::parts::review::Review;
use crate::words::key::ReviewKey;
use crate::words::pair::record::{PairSetup, PairStanding};
use crate::words::phase::Phase;

/// A pair that goes on or may go on: one that is over for good is in the ledger only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenPair {
    /// How it was set up.
    pub setup: PairSetup,
    /// When.
    pub opened_at: DateTime<Utc>,
    /// Where it stands.
    pub standing: PairStanding,
}

impl OpenPair {
    /// Whether a review between the two came to a person while the pair went on.
    pub(crate) fn is_left_to_a_person<'a>(
        &self,
        mut reviews: impl Iterator<Item = (&'a ReviewKey, &'a Review)>,
    ) -> bool {
        reviews.any(|(key, review)| {
            let is_new = review.since >= self.opened_at;
            is_new && self.is_theirs(key) && matches!(review.phase, Phase::Escalated(_))
        })
    }

    /// The reviews in which the author asked for an answer while the pair went on, and has none.
    pub(crate) fn asked<'a>(
        &self,
        reviews: impl Iterator<Item = (&'a ReviewKey, &'a Review)>,
    ) -> impl Iterator<Item = (&'a ReviewKey, &'a Review)> {
        reviews.filter(|(key, review)| {
            let is_open = review.since >= self.opened_at && review.phase.invocation().is_some();
            is_open && self.is_theirs(key)
        })
    }

    /// Whether a review between the two goes on: a word of the reviewer approves nothing that the gate has not.
    pub(crate) fn has_open_review<'a>(
        &self,
        mut reviews: impl Iterator<Item = (&'a ReviewKey, &'a Review)>,
    ) -> bool {
        reviews.any(|(key, review)| self.is_theirs(key) && !review.phase.is_final())
    }

    /// Whether that is a review between the two.
    fn is_theirs(&self, key: &ReviewKey) -> bool {
        key.author == self.setup.author.agent
            && self
                .setup
                .reviewer
                .as_ref()
                .is_some_and(|it| it.agent == key.reviewer)
    }
}
