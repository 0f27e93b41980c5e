//! The reviews, found by key, by pull request, or as the open ones between two agents, without
//! looking through all of them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};
use message_schema::id::{AgentName, PrNumber};

use crate::parts::review::Review;
use crate::words::folded::{Folded, json_of};
use crate::words::key::{ReviewKey, TaskId};

/// How many finished reviews stay whole: those that finished or changed last, which are asked for most.
const WHOLE_MAX: usize = 64;

/// Every review, and the indexes that follow from them. A key is kept once and shared.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reviews {
    by_key: BTreeMap<Arc<ReviewKey>, Kept>,
    folding: Folding,
    /// The finished reviews that are still whole, the last one at the end.
    finished: VecDeque<Arc<ReviewKey>>,
    /// The folded reviews that somebody asked for since the last release.
    asked_for: AskedFor,
    by_pr: BTreeMap<PrNumber, Vec<Arc<ReviewKey>>>,
    /// Reviews that an agent can move, by author and current reviewer.
    open: BTreeMap<(AgentName, AgentName), BTreeSet<Arc<ReviewKey>>>,
    /// When the daemon ends the wait of each review that is not final.
    deadlines: BTreeSet<(DateTime<Utc>, Arc<ReviewKey>)>,
    /// The reviews of the pull request that claims each task.
    claims: BTreeMap<TaskId, BTreeSet<Arc<ReviewKey>>>,
}

/// Whether finished reviews are folded: it costs microseconds each, and pays for a process that keeps them for long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Folding {
    #[default]
    AllButTheLast,
    Nothing,
}

/// A review as it is kept. Boxed: the leaves of a tree that grows at its end are half empty.
#[derive(Clone, Debug)]
enum Kept {
    Whole(Box<Review>),
    /// Finished, and not among the last that did.
    Folded(Box<Folded<Review>>),
}

impl Kept {
    fn phase(&self) -> &'static str {
        match self {
            Self::Whole(review) => review.phase.word(),
            Self::Folded(folded) => folded.word,
        }
    }

    fn open(&self) -> Option<&Review> {
        match self {
            Self::Whole(review) => (!review.phase.is_final()).then_some(review),
            Self::Folded(_) => None,
        }
    }

    /// The review, to be changed.
    fn whole(&mut self) -> &mut Review {
        if let Self::Folded(folded) = self {
            *self = Self::Whole(Box::new(folded.unfold()));
        }
        match self {
            Self::Whole(review) => review,
            Self::Folded(_) => unreachable!("it was unfolded"),
        }
    }
}

/// Folded reviews that are also kept whole. A copy of the reviews has none.
#[derive(Debug, Default)]
struct AskedFor(Mutex<Vec<Arc<ReviewKey>>>);

impl Clone for AskedFor {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// Which of two equal reviews is folded depends on what was asked before, and nothing else does.
impl PartialEq for Kept {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Folded(one), Self::Folded(other)) => one == other,
            (Self::Whole(one), Self::Whole(other)) => one == other,
            (Self::Whole(whole), Self::Folded(folded))
            | (Self::Folded(folded), Self::Whole(whole)) => folded.unfold() == **whole,
        }
    }
}

impl PartialEq for Reviews {
    fn eq(&self, other: &Self) -> bool {
        let Self {
            by_key,
            folding: _,
            finished: _,
            asked_for: _,
            by_pr,
            open,
            deadlines,
            claims,
        } = self;
        (by_key, by_pr, open) == (&other.by_key, &other.by_pr, &other.open)
            && (deadlines, claims) == (&other.deadlines, &other.claims)
    }
}

impl Reviews {
    pub(crate) fn new(folding: Folding) -> Self {
        Self {
            folding,
            ..Self::default()
        }
    }

    pub(crate) fn folding(&self) -> Folding {
        self.folding
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&ReviewKey, &Review)> {
        self.iter_where(|_| true)
    }

    /// The reviews whose keys are wanted; the others stay folded.
    pub(crate) fn iter_where(
        &self,
        is_wanted: impl Fn(&ReviewKey) -> bool,
    ) -> impl Iterator<Item = (&ReviewKey, &Review)> {
        let wanted = self.by_key.iter().filter(move |(key, _)| is_wanted(key));
        wanted.map(|(key, kept)| (&**key, self.look(key, kept)))
    }

    /// The reviews as JSON; none is kept whole for it.
    pub(crate) fn iter_json(&self) -> impl Iterator<Item = (&ReviewKey, String)> {
        let json = |kept: &Kept| match kept {
            Kept::Whole(review) => json_of(review),
            Kept::Folded(folded) => folded.json(),
        };
        self.by_key
            .iter()
            .map(move |(key, kept)| (&**key, json(kept)))
    }

    /// The reviews that are not final.
    pub(crate) fn iter_open(&self) -> impl Iterator<Item = (&ReviewKey, &Review)> {
        self.by_key
            .iter()
            .filter_map(|(key, kept)| Some((&**key, kept.open()?)))
    }

    /// The word for the phase of each review.
    pub(crate) fn phases(&self) -> impl Iterator<Item = &'static str> {
        self.by_key.values().map(Kept::phase)
    }

    /// Gives back the memory of finished reviews that were asked for.
    pub(crate) fn release(&mut self) {
        let AskedFor(keys) = std::mem::take(&mut self.asked_for);
        for key in keys.into_inner().unwrap_or_else(PoisonError::into_inner) {
            match self.by_key.get_mut(&key) {
                Some(Kept::Folded(folded)) => folded.release(),
                Some(Kept::Whole(_)) | None => {}
            }
        }
    }

    fn look<'a>(&'a self, key: &Arc<ReviewKey>, kept: &'a Kept) -> &'a Review {
        match kept {
            Kept::Whole(review) => review,
            Kept::Folded(folded) => {
                if folded.is_folded() {
                    let AskedFor(keys) = &self.asked_for;
                    let mut keys = keys.lock().unwrap_or_else(PoisonError::into_inner);
                    keys.push(Arc::clone(key));
                }
                folded.whole()
            }
        }
    }

    /// The key as it is kept, to be shared.
    pub(crate) fn shared(&self, key: &ReviewKey) -> Option<Arc<ReviewKey>> {
        self.by_key
            .get_key_value(key)
            .map(|(key, _)| Arc::clone(key))
    }

    pub(crate) fn get(&self, key: &ReviewKey) -> Option<&Review> {
        let (key, kept) = self.by_key.get_key_value(key)?;
        Some(self.look(key, kept))
    }

    /// The reviews of a pull request number, whatever the repository.
    pub(crate) fn of_number<'a>(
        &'a self,
        pr: &PrNumber,
    ) -> impl Iterator<Item = (&'a ReviewKey, &'a Review)> + use<'a> {
        let keys = self.by_pr.get(&pr.to_canonical()).into_iter().flatten();
        keys.filter_map(|key| self.by_key.get_key_value(key))
            .map(|(key, kept)| (&**key, self.look(key, kept)))
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
        let Some(review) = self.by_key.get_mut(&known).map(Kept::whole) else {
            return;
        };
        let before = review.deadline();
        let (was_open, claimed) = (open_with(&known, review), review.fixes.clone());
        change(review);
        let (after, is_open) = (review.deadline(), open_with(&known, review));
        let claims = review.fixes.clone();
        if is_open.is_none() {
            self.fold_later(&known);
        }
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
        let is_final = review.phase.is_final();
        self.by_key
            .insert(Arc::clone(&key), Kept::Whole(Box::new(review)));
        if is_final {
            self.fold_later(&key);
        }
        key
    }

    /// Keeps a finished review whole for now, and folds the one that has been so for longest.
    fn fold_later(&mut self, key: &Arc<ReviewKey>) {
        match self.folding {
            Folding::AllButTheLast => self.finished.push_back(Arc::clone(key)),
            Folding::Nothing => return,
        }
        if self.finished.len() <= WHOLE_MAX {
            return;
        }
        // It may be open again, or undone.
        if let Some(oldest) = self.finished.pop_front()
            && let Some(kept) = self.by_key.get_mut(&oldest)
            && let Kept::Whole(review) = kept
            && review.phase.is_final()
        {
            *kept = Kept::Folded(Box::new(folded(review)));
        }
    }

    /// Makes a review what it was before, or unknown if it was not there, and keeps the indexes true.
    pub(crate) fn put_back(&mut self, key: &ReviewKey, before: Option<Review>) {
        if let Some(before) = before {
            return self.change(key, None, |review| *review = before);
        }
        let Some((key, mut kept)) = self.by_key.remove_entry(key) else {
            return;
        };
        let review = kept.whole();
        self.keep_deadline(&key, review.deadline().map(|(at, _)| at), None);
        self.keep_open(&key, open_with(&key, review), None);
        self.keep_claim(&key, review.fixes.take(), None);
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

fn folded(review: &Review) -> Folded<Review> {
    Folded::of(review, review.phase.word())
}

#[cfg(test)]
mod tests {
    use super::folded;

    #[test]
    fn a_review_of_two_rounds_with_two_findings_folds_to_500_bytes() {
        let review = include_str!("../../tests/approved.json");
        let review = serde_json::from_str(review).expect("a review");
        let folded = folded(&review);
        let bytes = folded.bytes();
        assert!(bytes <= 500, "{bytes} bytes");
        assert_eq!(*folded.whole(), review);
    }
}
