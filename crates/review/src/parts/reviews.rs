//! The reviews, indexed by key, by pull request, and by the two agents of an open one. Reviews that nobody has anything
//! to do about are rows in a table, except for the last few.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};
use message_schema::id::{AgentName, PrNumber};

use crate::parts::loaded::LoadedReviews;
use crate::parts::review::Review;
use crate::words::folded::{Folded, fold, unfold};
use crate::words::key::{ReviewKey, TaskId};
use crate::words::table::{RowKey, Table};

/// The most reviews at rest that stay current: those that came to rest or changed last, which are read most often.
const AT_REST_MAX: usize = 64;

/// The most reviews waiting for a person that stay unpacked, the last ones; the others are folded.
const WHOLE_MAX: usize = 64;

/// The most of them that stay unpacked where nobody calls [`Reviews::release`]. To pack one takes longer than to read it, and
/// a command that reads a ledger once gains nothing by it, so these are more.
const UNRELEASED_WHOLE_MAX: usize = 1024;

/// All reviews, and the indexes over them. Each key is stored once and shared.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reviews {
    /// The reviews that somebody has something to do about, and the last that came to rest.
    current: BTreeMap<Arc<ReviewKey>, Kept>,
    /// The current reviews at rest, the last one at the end.
    at_rest: VecDeque<Arc<ReviewKey>>,
    /// The current reviews that no agent can move and that are not at rest, as far as they are unpacked, the last one
    /// at the end.
    finished: VecDeque<Arc<ReviewKey>>,
    /// The folded reviews that a caller has read since the last release.
    asked_for: AskedFor,
    /// All other reviews, each with its key; and earlier rows of reviews that are current again.
    pub(crate) rows: Table<b'r'>,
    /// The number of reviews in rows, by phase.
    row_counts: BTreeMap<String, u64>,
    /// The reviews in rows that a caller has read since the last release.
    loaded: LoadedReviews,
    /// The current reviews by their number.
    by_pr: BTreeMap<PrNumber, Vec<Arc<ReviewKey>>>,
    /// Reviews that an agent can move, by author and current reviewer.
    open: BTreeMap<(AgentName, AgentName), BTreeSet<Arc<ReviewKey>>>,
    /// The next deadline of each review that is not final.
    deadlines: BTreeSet<(DateTime<Utc>, Arc<ReviewKey>)>,
    /// The reviews of the pull request that claims each task.
    claims: BTreeMap<TaskId, BTreeSet<Arc<ReviewKey>>>,
}

/// A current review in memory. Boxed, because the leaves of a tree that grows at its end are half empty.
#[derive(Clone, Debug)]
enum Kept {
    Whole(Box<Review>),
    /// Waits for a person, and is not among the last that began to.
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

    /// Returns the review for a change; unpacks a folded one.
    fn whole(&mut self) -> &mut Review {
        if let Self::Folded(folded) = self {
            *self = Self::Whole(Box::new(folded.unfold()));
        }
        match self {
            Self::Whole(review) => review,
            Self::Folded(_) => unreachable!("it was unfolded"),
        }
    }

    fn into_whole(self) -> Box<Review> {
        match self {
            Self::Whole(review) => review,
            Self::Folded(folded) => Box::new(folded.unfold()),
        }
    }
}

/// The row of a review.
fn row_of(key: &ReviewKey) -> RowKey {
    let own = serde_json::to_vec(key).expect("a key as JSON");
    Table::<b'r'>::key_in(key.pr.as_str().as_bytes(), &own)
}

/// The side that has something to do about a review.
#[derive(Clone, Copy)]
enum Busy {
    Agent,
    Person,
    Nobody,
}

impl Busy {
    fn of(review: &Review) -> Self {
        match (review.phase.is_final(), review.is_at_rest()) {
            (_, true) => Self::Nobody,
            (true, false) => Self::Person,
            (false, false) => Self::Agent,
        }
    }
}

/// Equality does not depend on which review is folded: only earlier reads decide that.
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

/// Folded reviews that are also unpacked. A clone of the reviews has none.
#[derive(Debug, Default)]
struct AskedFor(Mutex<Vec<Arc<ReviewKey>>>);

impl Clone for AskedFor {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// Equality does not depend on which reviews are rows: only earlier undos decide that.
impl PartialEq for Reviews {
    fn eq(&self, other: &Self) -> bool {
        let Self {
            current,
            at_rest: _,
            finished: _,
            asked_for: _,
            rows,
            row_counts: _,
            loaded: _,
            by_pr: _,
            open,
            deadlines,
            claims,
        } = self;
        let indexes = (open, deadlines, claims);
        let is_same = (current, rows) == (&other.current, &other.rows);
        indexes == (&other.open, &other.deadlines, &other.claims)
            && (is_same || self.iter().eq(other.iter()))
    }
}

impl Reviews {
    /// All reviews, ordered by key.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&ReviewKey, &Review)> {
        let all = self.loaded.all(|| {
            let rows = self.rows.all();
            let mut rest = self.others(rows.into_values());
            rest.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
            rest
        });
        let mut rows = all.iter().map(|(key, review)| (&**key, review)).peekable();
        let mut current = self.iter_current().peekable();
        std::iter::from_fn(move || match (rows.peek(), current.peek()) {
            (Some((row, _)), Some((now, _))) if row < now => rows.next(),
            (Some(_), None) => rows.next(),
            (Some(_) | None, _) => current.next(),
        })
    }

    /// The reviews that somebody has something to do about, and the last that came to rest, ordered by key.
    pub(crate) fn iter_current(&self) -> impl Iterator<Item = (&ReviewKey, &Review)> {
        let current = self.current.iter();
        current.map(|(key, kept)| (&**key, self.look(key, kept)))
    }

    /// The current reviews in the order a snapshot needs: those at rest come last, in the order in which they came to
    /// rest.
    ///
    /// A folded review is unfolded for the caller alone: a snapshot passes over all of them, one at a time.
    pub(crate) fn iter_restorable(&self) -> impl Iterator<Item = (&ReviewKey, Cow<'_, Review>)> {
        let last = self.at_rest.iter().filter_map(|key| self.entry(key));
        let current = self.current.iter().map(|(key, kept)| {
            let review = match kept {
                Kept::Whole(review) => Cow::Borrowed(&**review),
                Kept::Folded(folded) => Cow::Owned(folded.unfold()),
            };
            (&**key, review)
        });
        current
            .filter(|(_, review)| !review.is_at_rest())
            .chain(last.map(|(key, review)| (key, Cow::Borrowed(review))))
    }

    /// The reviews that are not final.
    pub(crate) fn iter_open(&self) -> impl Iterator<Item = (&ReviewKey, &Review)> {
        let current = self.current.iter();
        current.filter_map(|(key, kept)| Some((&**key, kept.open()?)))
    }

    /// Counts the reviews in each phase, by its word.
    pub(crate) fn phases(&self) -> BTreeMap<String, u64> {
        let mut phases = self.row_counts.clone();
        for kept in self.current.values() {
            *phases.entry(kept.phase().to_owned()).or_default() += 1;
        }
        phases
    }

    /// The number of reviews in rows, by phase.
    pub(crate) fn row_counts(&self) -> &BTreeMap<String, u64> {
        &self.row_counts
    }

    /// Sets the counts from a snapshot.
    pub(crate) fn restore_row_counts(&mut self, counts: BTreeMap<String, u64>) {
        self.row_counts = counts;
    }

    /// Frees the memory of rows and folded reviews that callers have read, and folds the reviews that wait for a
    /// person, except the last ones. The caller does this now and then, so that a process that reads once and ends
    /// folds nothing, or only what is above [`UNRELEASED_WHOLE_MAX`].
    pub(crate) fn release(&mut self) {
        self.loaded.clear();
        let AskedFor(keys) = std::mem::take(&mut self.asked_for);
        for key in keys.into_inner().unwrap_or_else(PoisonError::into_inner) {
            match self.current.get_mut(&key) {
                Some(Kept::Folded(folded)) => folded.release(),
                Some(Kept::Whole(_)) | None => {}
            }
        }
        self.fold_waiting();
    }

    fn fold_waiting(&mut self) {
        let more = self.finished.len().saturating_sub(WHOLE_MAX);
        for key in self.finished.drain(..more) {
            // It may have moved on, or be undone.
            if let Some(kept) = self.current.get_mut(&key)
                && let Kept::Whole(review) = kept
                && review.phase.is_final()
            {
                *kept = Kept::Folded(Box::new(Folded::of(review, review.phase.word())));
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

    /// Returns the reviews of these rows that are not current.
    fn others(&self, rows: impl Iterator<Item = Vec<u8>>) -> Vec<(Arc<ReviewKey>, Review)> {
        rows.map(|row| unfold::<(ReviewKey, Review)>(&row).expect("what was folded unfolds"))
            .filter(|(key, _)| !self.current.contains_key(key))
            .map(|(key, review)| (Arc::new(key), review))
            .collect()
    }

    /// The reviews of a number that are in rows, ordered by key.
    fn rows_of(&self, pr: &PrNumber) -> &[(Arc<ReviewKey>, Review)] {
        self.loaded.of_number(pr, || {
            let rows = self.rows.group(pr.as_str().as_bytes());
            let mut rows = self.others(rows.into_iter());
            rows.retain(|(key, _)| key.pr == *pr);
            rows.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
            rows
        })
    }

    /// A review with its stored key.
    pub(crate) fn entry(&self, key: &ReviewKey) -> Option<(&ReviewKey, &Review)> {
        if let Some((key, kept)) = self.current.get_key_value(key) {
            return Some((key, self.look(key, kept)));
        }
        let rows = self.rows_of(&key.pr);
        let at = rows
            .binary_search_by(|(known, _)| (**known).cmp(key))
            .ok()?;
        Some((&rows[at].0, &rows[at].1))
    }

    pub(crate) fn get(&self, key: &ReviewKey) -> Option<&Review> {
        Some(self.entry(key)?.1)
    }

    /// The reviews of a pull request number, whatever the repository, ordered by key.
    pub(crate) fn of_number<'a>(
        &'a self,
        pr: &PrNumber,
    ) -> impl Iterator<Item = (&'a ReviewKey, &'a Review)> + use<'a> {
        let pr = pr.to_canonical();
        let keys = self.by_pr.get(&pr).into_iter().flatten();
        let current = keys.filter_map(|key| self.current.get_key_value(key));
        let rows = self.rows_of(&pr).iter();
        let mut reviews: Vec<(&ReviewKey, &Review)> = current
            .map(|(key, kept)| (&**key, self.look(key, kept)))
            .chain(rows.map(|(key, review)| (&**key, review)))
            .collect();
        reviews.sort_unstable_by_key(|(key, _)| *key);
        reviews.into_iter()
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

    /// Changes a review, adding it first if it is new and `make` has one, and updates the indexes.
    pub(crate) fn change(
        &mut self,
        key: &ReviewKey,
        make: Option<Review>,
        change: impl FnOnce(&mut Review),
    ) {
        let known = match (self.made_current(key), make) {
            (Some(known), _) => known,
            (None, Some(review)) => self.open_new(key, review),
            (None, None) => return,
        };
        let kept = self.current.get_mut(&known).expect("it is current");
        let review = kept.whole();
        let (before, was_busy) = (review.deadline(), Busy::of(review));
        let (was_open, claimed) = (open_with(&known, review), review.fixes.clone());
        change(review);
        let (after, is_open) = (review.deadline(), open_with(&known, review));
        let claims = review.fixes.clone();
        let busy = Busy::of(review);
        if claimed != claims {
            self.keep_claim(&known, claimed, claims);
        }
        if before != after {
            self.keep_deadline(&known, before.map(|(at, _)| at), after.map(|(at, _)| at));
        }
        if was_open != is_open {
            self.keep_open(&known, was_open, is_open);
        }
        if matches!(was_busy, Busy::Nobody) {
            self.at_rest.retain(|other| !Arc::ptr_eq(other, &known));
        }
        self.keep_at_rest(&known, busy);
    }

    /// Makes a known review current and returns its stored key.
    fn made_current(&mut self, key: &ReviewKey) -> Option<Arc<ReviewKey>> {
        if let Some((known, _)) = self.current.get_key_value(key) {
            return Some(Arc::clone(known));
        }
        let review = self.get(key)?.clone();
        self.count_row(&review, |count| count.saturating_sub(1));
        self.loaded.clear();
        Some(self.open_new(key, review))
    }

    fn count_row(&mut self, review: &Review, change: impl FnOnce(u64) -> u64) {
        let word = review.phase.word();
        let count = self.row_counts.entry(word.to_owned()).or_default();
        *count = change(*count);
        if *count == 0 {
            self.row_counts.remove(word);
        }
    }

    /// Adds a review and its index entries.
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
        let busy = Busy::of(&review);
        let kept = Kept::Whole(Box::new(review));
        self.current.insert(Arc::clone(&key), kept);
        self.keep_at_rest(&key, busy);
        key
    }

    /// Records whether a review that is not among those at rest came to rest; the one that has been at rest longest
    /// becomes a row.
    fn keep_at_rest(&mut self, key: &Arc<ReviewKey>, busy: Busy) {
        match busy {
            Busy::Agent => return,
            Busy::Person
                if self
                    .finished
                    .back()
                    .is_some_and(|last| Arc::ptr_eq(last, key)) =>
            {
                return;
            }
            Busy::Person => {
                self.finished.push_back(Arc::clone(key));
                if self.finished.len() > UNRELEASED_WHOLE_MAX {
                    self.fold_waiting();
                }
                return;
            }
            Busy::Nobody => self.at_rest.push_back(Arc::clone(key)),
        }
        if self.at_rest.len() <= AT_REST_MAX {
            return;
        }
        let oldest = self.at_rest.pop_front().expect("there are some");
        let Some(review) = self.removed(&oldest) else {
            return;
        };
        self.rows.put(row_of(&oldest), fold(&(&*oldest, &*review)));
        self.count_row(&review, |count| count + 1);
        self.loaded.clear();
    }

    /// Removes a review from the current ones and from all indexes.
    fn removed(&mut self, key: &ReviewKey) -> Option<Box<Review>> {
        let (key, kept) = self.current.remove_entry(key)?;
        let review = kept.into_whole();
        self.keep_deadline(&key, review.deadline().map(|(at, _)| at), None);
        self.keep_open(&key, open_with(&key, &review), None);
        self.keep_claim(&key, review.fixes.clone(), None);
        if let Some(of_pr) = self.by_pr.get_mut(&key.pr) {
            of_pr.retain(|known| *known != key);
            if of_pr.is_empty() {
                self.by_pr.remove(&key.pr);
            }
        }
        Some(review)
    }

    /// Restores a review's earlier value, or removes it if it had none, and updates the indexes.
    pub(crate) fn put_back(&mut self, key: &ReviewKey, before: Option<Review>) {
        if let Some(before) = before {
            return self.change(key, None, |review| *review = before);
        }
        // It may have become a row in the same batch.
        self.made_current(key);
        self.rows.put_back(row_of(key), None);
        self.at_rest.retain(|known| **known != *key);
        self.removed(key);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::phase::{EscalationReason, Phase};

    fn key(number: usize) -> ReviewKey {
        let agent = |name: &str| name.parse().expect("a name");
        let number = number.to_string().parse().expect("a number");
        ReviewKey::new(None, &number, agent("claude"), agent("codex"))
    }

    fn approved() -> Review {
        serde_json::from_str(include_str!("../../tests/approved.json")).expect("a review")
    }

    #[test]
    fn a_review_of_two_rounds_with_two_findings_folds_to_500_bytes() {
        let review = approved();
        let folded = fold(&review);
        let bytes = folded.len();
        assert!(bytes <= 500, "{bytes} bytes");
        assert_eq!(unfold::<Review>(&folded).expect("the same"), review);
    }

    #[test]
    fn reviews_that_came_to_rest_in_a_batch_are_taken_back_with_it() {
        let mut reviews = Reviews::default();
        for number in 0..2 * AT_REST_MAX {
            reviews.change(&key(number), Some(approved()), |_| ());
        }
        assert_eq!(reviews.rows.all().len(), AT_REST_MAX);
        for number in (0..2 * AT_REST_MAX).rev() {
            reviews.put_back(&key(number), None);
        }
        assert_eq!(reviews, Reviews::default());
        assert_eq!(reviews.phases(), BTreeMap::new());
    }

    #[test]
    fn reviews_that_wait_for_a_person_are_folded_and_answer_as_before() {
        let escalated = Review {
            phase: Phase::Escalated(EscalationReason::MaxRoundsExceeded),
            ..approved()
        };
        let mut reviews = Reviews::default();
        for number in 0..2 * WHOLE_MAX {
            reviews.change(&key(number), Some(escalated.clone()), |_| ());
        }
        let whole = reviews.clone();
        reviews.release();
        let folded = |reviews: &Reviews| {
            let kept = reviews.current.values();
            kept.filter(|kept| matches!(kept, Kept::Folded(folded) if folded.is_folded()))
                .count()
        };
        assert_eq!(folded(&reviews), WHOLE_MAX);
        assert_eq!(
            (&reviews, reviews.phases()),
            (&whole, whole.phases()),
            "folding changes no answer"
        );
        assert!(reviews.iter_current().eq(whole.iter_current()));
        assert_eq!(folded(&reviews), 0, "all were asked for");
        reviews.release();
        assert_eq!(folded(&reviews), WHOLE_MAX);
        assert!(
            (reviews.iter_restorable())
                .map(|(key, review)| (key, review.into_owned()))
                .eq(whole
                    .iter_current()
                    .map(|(key, review)| (key, review.clone())))
        );
        assert_eq!(folded(&reviews), WHOLE_MAX, "a snapshot unpacks none");
        let mut restored = Reviews::default();
        for number in 0..3 * UNRELEASED_WHOLE_MAX {
            restored.open_new(&key(number), escalated.clone());
            let whole = number + 1 - folded(&restored);
            assert!(whole <= UNRELEASED_WHOLE_MAX, "{whole} of {number}");
        }
        reviews.change(&key(0), None, |review| *review = approved());
        assert_eq!(reviews.get(&key(0)), Some(&approved()));
    }
}
