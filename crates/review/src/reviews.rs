//! The reviews, found by key, by pull request, or as the open ones between two agents, without
//! looking through all of them.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use message_schema::id::{AgentName, PrNumber};

use crate::key::ReviewKey;
use crate::state::Review;

/// Every review, and the indexes that follow from them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Reviews {
    by_key: BTreeMap<ReviewKey, Review>,
    by_pr: BTreeMap<PrNumber, BTreeSet<ReviewKey>>,
    /// Reviews that an agent can move, by author and reviewer.
    open: BTreeMap<(AgentName, AgentName), BTreeSet<ReviewKey>>,
    /// When the daemon ends the wait of each review that is not final.
    deadlines: BTreeSet<(DateTime<Utc>, ReviewKey)>,
}

impl Reviews {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&ReviewKey, &Review)> {
        self.by_key.iter()
    }

    pub(crate) fn get(&self, key: &ReviewKey) -> Option<&Review> {
        self.by_key.get(key)
    }

    /// The reviews of a pull request number, whatever the repository.
    pub(crate) fn of_number<'a>(
        &'a self,
        pr: &PrNumber,
    ) -> impl Iterator<Item = (&'a ReviewKey, &'a Review)> + use<'a> {
        let keys = self.by_pr.get(&pr.to_canonical()).into_iter().flatten();
        keys.filter_map(|key| self.by_key.get_key_value(key))
    }

    /// The reviews between two agents that are not final.
    pub(crate) fn open_between(
        &self,
        author: &AgentName,
        reviewer: &AgentName,
    ) -> impl ExactSizeIterator<Item = &ReviewKey> {
        static NONE: BTreeSet<ReviewKey> = BTreeSet::new();
        self.open.get(&(author.clone(), reviewer.clone())).unwrap_or(&NONE).iter()
    }

    pub(crate) fn next_deadline(&self) -> Option<(DateTime<Utc>, &ReviewKey)> {
        self.deadlines.first().map(|(at, key)| (*at, key))
    }

    /// Changes a review, making it first if `make` gives one, and keeps the indexes true.
    pub(crate) fn change(&mut self, key: &ReviewKey, make: Option<Review>, change: impl FnOnce(&mut Review)) {
        if let Some(review) = make
            && !self.by_key.contains_key(key)
        {
            self.by_pr.entry(key.pr.clone()).or_default().insert(key.clone());
            self.by_key.insert(key.clone(), review);
        }
        let Some(review) = self.by_key.get_mut(key) else { return };
        if let Some((at, _)) = review.deadline() {
            self.deadlines.remove(&(at, key.clone()));
        }
        change(review);
        if let Some((at, _)) = review.deadline() {
            self.deadlines.insert((at, key.clone()));
        }
        let pair = (key.author.clone(), key.reviewer.clone());
        if !review.phase.is_final() {
            self.open.entry(pair).or_default().insert(key.clone());
        } else if let Some(open) = self.open.get_mut(&pair) {
            open.remove(key);
        }
    }
}
