//! The reviews, found by key, by pull request, or as the open ones between two agents, without
//! looking through all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use message_schema::id::{AgentName, PrNumber};

use crate::parts::review::Review;
use crate::words::key::{ReviewKey, TaskId};

/// Every review, and the indexes that follow from them. A key is kept once and shared.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Reviews {
    /// Boxed: most are final and stay for ever, and the leaves of a tree that grows at its end are half empty.
    by_key: BTreeMap<Arc<ReviewKey>, Box<Review>>,
    by_pr: BTreeMap<PrNumber, Vec<Arc<ReviewKey>>>,
    /// Reviews that an agent can move, by author and current reviewer.
    open: BTreeMap<(AgentName, AgentName), BTreeSet<Arc<ReviewKey>>>,
    /// When the daemon ends the wait of each review that is not final.
    deadlines: BTreeSet<(DateTime<Utc>, Arc<ReviewKey>)>,
    /// The reviews of the pull request that claims each task.
    claims: BTreeMap<TaskId, BTreeSet<Arc<ReviewKey>>>,
}

impl Reviews {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&ReviewKey, &Review)> {
        self.by_key.iter().map(|(key, review)| (&**key, &**review))
    }

    /// The key as it is kept, to be shared.
    pub(crate) fn shared(&self, key: &ReviewKey) -> Option<Arc<ReviewKey>> {
        self.by_key
            .get_key_value(key)
            .map(|(key, _)| Arc::clone(key))
    }

    pub(crate) fn get(&self, key: &ReviewKey) -> Option<&Review> {
        self.by_key.get(key).map(|review| &**review)
    }

    /// The reviews of a pull request number, whatever the repository.
    pub(crate) fn of_number<'a>(
        &'a self,
        pr: &PrNumber,
    ) -> impl Iterator<Item = (&'a ReviewKey, &'a Review)> + use<'a> {
        let keys = self.by_pr.get(&pr.to_canonical()).into_iter().flatten();
        keys.filter_map(|key| self.by_key.get_key_value(key))
            .map(|(key, review)| (&**key, &**review))
    }

    /// The reviews between two agents that are not final.
    pub(crate) fn open_between(
        &self,
        author: &AgentName,
        reviewer: &AgentName,
    ) -> impl ExactSizeIterator<Item = &ReviewKey> {
        static NONE: BTreeSet<Arc<ReviewKey>> = BTreeSet::new();
        self.open
            .get(&(author.clone(), reviewer.clone()))
            .unwrap_or(&NONE)
            .iter()
            .map(|key| &**key)
    }

    pub(crate) fn next_deadline(&self) -> Option<(DateTime<Utc>, &ReviewKey)> {
        self.deadlines.first().map(|(at, key)| (*at, &**key))
    }

    /// A review of the pull request that claims the task.
    pub(crate) fn claim(&self, task: &TaskId) -> Option<&ReviewKey> {
        self.claims.get(task)?.first().map(|key| &**key)
    }

    /// Changes a review, making it first if `make` gives one, and keeps the indexes true.
    pub(crate) fn change(
        &mut self,
        key: &ReviewKey,
        make: Option<Review>,
        change: impl FnOnce(&mut Review),
    ) {
        let known = match (self.shared(key), make) {
            (Some(known), _) => known,
            (None, Some(review)) => self.open_new(key, review),
            (None, None) => return,
        };
        let Some(review) = self.by_key.get_mut(&known) else {
            return;
        };
        let before = review.deadline();
        let (was_open, claimed) = (open_with(&known, review), review.fixes.clone());
        change(review);
        let (after, is_open) = (review.deadline(), open_with(&known, review));
        let claims = review.fixes.clone();
        if claimed != claims {
            self.keep_claim(&known, claimed, claims);
        }
        if before != after {
            self.keep_deadline(&known, before.map(|(at, _)| at), after.map(|(at, _)| at));
        }
        if was_open != is_open {
            self.keep_open(&known, was_open, is_open);
        }
    }

    /// Adds a review, and what follows from it to the indexes.
    pub(crate) fn open_new(&mut self, key: &ReviewKey, review: Review) -> Arc<ReviewKey> {
        let key = Arc::new(key.clone());
        let of_pr = self.by_pr.entry(key.pr.clone()).or_default();
        // Nearly always the only one.
        of_pr.reserve_exact(1);
        of_pr.push(Arc::clone(&key));
        of_pr.sort_unstable();
        self.keep_deadline(&key, None, review.deadline().map(|(at, _)| at));
        self.keep_open(&key, None, open_with(&key, &review));
        self.keep_claim(&key, None, review.fixes.clone());
        self.by_key.insert(Arc::clone(&key), Box::new(review));
        key
    }

    /// Makes a review what it was before, or unknown if it was not there, and keeps the indexes true.
    pub(crate) fn put_back(&mut self, key: &ReviewKey, before: Option<Review>) {
        if let Some(before) = before {
            return self.change(key, None, |review| *review = before);
        }
        let Some((key, review)) = self.by_key.remove_entry(key) else {
            return;
        };
        self.keep_deadline(&key, review.deadline().map(|(at, _)| at), None);
        self.keep_open(&key, open_with(&key, &review), None);
        self.keep_claim(&key, review.fixes, None);
        if let Some(of_pr) = self.by_pr.get_mut(&key.pr) {
            of_pr.retain(|known| *known != key);
            if of_pr.is_empty() {
                self.by_pr.remove(&key.pr);
            }
        }
    }

    fn keep_deadline(
        &mut self,
        key: &Arc<ReviewKey>,
        before: Option<DateTime<Utc>>,
        after: Option<DateTime<Utc>>,
    ) {
        if let Some(at) = before {
            self.deadlines.remove(&(at, Arc::clone(key)));
        }
        self.deadlines.extend(after.map(|at| (at, Arc::clone(key))));
    }

    fn keep_claim(&mut self, key: &Arc<ReviewKey>, before: Option<TaskId>, after: Option<TaskId>) {
        if let Some(task) = before
            && let Some(of_task) = self.claims.get_mut(&task)
        {
            of_task.remove(key);
            if of_task.is_empty() {
                self.claims.remove(&task);
            }
        }
        if let Some(task) = after {
            self.claims.entry(task).or_default().insert(Arc::clone(key));
        }
    }

    fn keep_open(
        &mut self,
        key: &Arc<ReviewKey>,
        before: Option<(AgentName, AgentName)>,
        after: Option<(AgentName, AgentName)>,
    ) {
        if let Some(pair) = before
            && let Some(open) = self.open.get_mut(&pair)
        {
            open.remove(key);
            // A pair without an open review is as one that never had any.
            if open.is_empty() {
                self.open.remove(&pair);
            }
        }
        if let Some(pair) = after {
            self.open.entry(pair).or_default().insert(Arc::clone(key));
        }
    }
}

/// The author and the current reviewer, while an agent can move the review.
fn open_with(key: &ReviewKey, review: &Review) -> Option<(AgentName, AgentName)> {
    let pair = || (key.author.clone(), review.reviewer(key).clone());
    (!review.phase.is_final()).then(pair)
}
