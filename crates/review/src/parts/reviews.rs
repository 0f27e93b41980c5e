//! The reviews, indexed by key, by pull request, and by the two agents of an open one. All but the last few reviews
//! without an open request are rows of two tables: one holds those in which an author or a person has to act, the other
//! the rest.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use message_schema::id::{AgentName, PrNumber};
use review_words::key::{ReviewKey, TaskId};
use review_words::table::{StoredRows, Table};

use crate::parts::loaded::LoadedReviews;
use crate::parts::review::Review;
use crate::parts::waiting::{WaitingReviews, read_row, row, row_of};

/// The most reviews without an open request that stay current: those that changed last, which are read most often.
const AT_REST_MAX: usize = 64;

/// All reviews, and the indexes over them. Each key is stored once and shared.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reviews {
    /// The reviews whose reviewer owes a response, which the daemon looks at again and again, and the last others that
    /// changed. Boxed, because the leaves of a tree that grows at its end are half empty.
    current: BTreeMap<Arc<ReviewKey>, Box<Review>>,
    /// The current reviews that will become rows, the last one at the end.
    at_rest: VecDeque<Arc<ReviewKey>>,
    /// The rows of reviews that wait for their author or a person, and stale rows of those that are current again.
    pub(crate) waiting: WaitingReviews,
    /// The rows of all others, each with its key, and stale rows of reviews that are current or waiting again.
    pub(crate) rows: Table<b'r'>,
    /// The number of reviews in rows, by phase.
    row_counts: BTreeMap<String, u64>,
    /// The reviews in rows that a caller has read by their number since the last release.
    loaded: LoadedReviews,
    /// The current reviews by pull request number.
    by_pr: BTreeMap<PrNumber, Vec<Arc<ReviewKey>>>,
    /// Reviews that an agent can move, by author and current reviewer, rows among them.
    open: BTreeMap<(AgentName, AgentName), BTreeSet<Arc<ReviewKey>>>,
    /// The next deadline of each review that is not final, rows among them, with its reviewer.
    deadlines: BTreeMap<(DateTime<Utc>, Arc<ReviewKey>), AgentName>,
    /// The reviews of the pull request that claims each task, rows among them.
    claims: BTreeMap<TaskId, BTreeSet<Arc<ReviewKey>>>,
}

/// The part that keeps a review once enough others have changed after it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KeptIn {
    /// It stays current.
    Memory,
    /// The rows of reviews that wait for their author or a person.
    Waiting,
    /// The rows of reviews in which nobody has to act.
    Rest,
}

impl KeptIn {
    fn of(review: &Review) -> Self {
        match (review.phase.invocation(), review.is_at_rest()) {
            (Some(_), _) => Self::Memory,
            (None, false) => Self::Waiting,
            (None, true) => Self::Rest,
        }
    }
}

/// Ignores which reviews are rows: that depends only on earlier undos.
impl PartialEq for Reviews {
    fn eq(&self, other: &Self) -> bool {
        let indexes = (&self.open, &self.deadlines, &self.claims);
        indexes == (&other.open, &other.deadlines, &other.claims) && self.iter().eq(other.iter())
    }
}

impl Reviews {
    /// Returns all reviews, ordered by key.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&ReviewKey, &Review)> {
        let all = self.loaded.all(|| {
            let mut rest = self.others(self.rows.all().into_values());
            rest.retain(|(key, _)| !self.waiting.all().contains_key(key));
            rest.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
            rest
        });
        let rows = all.iter().map(|(key, review)| (&**key, review));
        in_order(rows, self.iter_current())
    }

    /// Returns the reviews in which somebody has to act, and the last that came to rest, ordered by key.
    pub(crate) fn iter_current(&self) -> impl Iterator<Item = (&ReviewKey, &Review)> {
        let waiting = self.waiting.all().iter();
        let waiting = waiting.filter(|(key, _)| !self.current.contains_key(*key));
        let current = self.current.iter();
        in_order(
            waiting.map(|(key, review)| (&**key, review)),
            current.map(|(key, review)| (&**key, &**review)),
        )
    }

    /// Returns the reviews that are not rows in the order a snapshot needs: those that will become rows come last, in
    /// that order.
    pub(crate) fn iter_restorable(&self) -> impl Iterator<Item = (&ReviewKey, &Review)> {
        let last = self.at_rest.iter().filter_map(|key| self.entry(key));
        self.iter_requested().chain(last)
    }

    /// Returns the reviews whose reviewer owes a response.
    pub(crate) fn iter_requested(&self) -> impl Iterator<Item = (&ReviewKey, &Review)> {
        let current = self.current.iter();
        current
            .map(|(key, review)| (&**key, &**review))
            .filter(|(_, review)| KeptIn::of(review) == KeptIn::Memory)
    }

    /// Counts the reviews that are not final.
    pub(crate) fn open_count(&self) -> usize {
        self.open.values().map(BTreeSet::len).sum()
    }

    /// Counts the reviews in each phase, by its word.
    pub(crate) fn phases(&self) -> BTreeMap<String, u64> {
        let mut phases = self.row_counts.clone();
        for review in self.current.values() {
            *phases.entry(review.phase.word().to_owned()).or_default() += 1;
        }
        phases
    }

    /// Returns the number of reviews in rows, by phase.
    pub(crate) fn row_counts(&self) -> &BTreeMap<String, u64> {
        &self.row_counts
    }

    /// Returns the claims of reviews that are rows.
    pub(crate) fn row_claims(&self) -> impl Iterator<Item = (&TaskId, &ReviewKey)> {
        let claims = self.claims.iter();
        let claims = claims.flat_map(|(task, keys)| keys.iter().map(move |key| (task, &**key)));
        claims.filter(|(_, key)| !self.current.contains_key(*key))
    }

    /// Returns the deadlines of reviews in rows, each with its review and that review's reviewer.
    pub(crate) fn row_deadlines(
        &self,
    ) -> impl Iterator<Item = (DateTime<Utc>, &ReviewKey, &AgentName)> {
        let deadlines = self.deadlines();
        deadlines.filter(|(_, key, _)| !self.current.contains_key(*key))
    }

    /// Sets the deadline of a review in a row from a snapshot.
    pub(crate) fn restore_deadline(
        &mut self,
        key: ReviewKey,
        reviewer: AgentName,
        at: DateTime<Utc>,
    ) {
        let pair = (key.author.clone(), reviewer.clone());
        let key = Arc::new(key);
        self.keep_deadline(&key, None, Some((at, reviewer)));
        self.keep_open(&key, None, Some(pair));
    }

    /// Sets a claim from a snapshot.
    pub(crate) fn restore_claim(&mut self, task: TaskId, key: ReviewKey) {
        self.keep_claim(&Arc::new(key), None, Some(task));
    }

    /// Sets the counts from a snapshot.
    pub(crate) fn restore_row_counts(&mut self, counts: BTreeMap<String, u64>) {
        self.row_counts = counts;
    }

    /// Replaces the rows that were in memory when a snapshot began with those of the written snapshot.
    pub(crate) fn rest_on(&mut self, stored: &Arc<dyn StoredRows>) {
        self.rows.rest_on_what_is_in(Arc::clone(stored));
        self.waiting.rows.rest_on_what_is_in(Arc::clone(stored));
    }

    /// Frees the memory of rows that callers have read.
    pub(crate) fn release(&mut self) {
        self.loaded.clear();
        self.waiting.release();
    }

    /// Returns the reviews of these rows that are not current.
    fn others(&self, rows: impl Iterator<Item = Vec<u8>>) -> Vec<(Arc<ReviewKey>, Review)> {
        rows.map(|row| read_row(&row))
            .filter(|(key, _)| !self.current.contains_key(key))
            .collect()
    }

    /// Returns the reviews of a number that are in rows, ordered by key.
    fn rows_of(&self, pr: &PrNumber) -> &[(Arc<ReviewKey>, Review)] {
        self.loaded.of_number(pr, || {
            let rows = self.rows.group(pr.as_str().as_bytes());
            let rows = self.others(rows.into_iter()).into_iter();
            let waiting = self.waiting.of_number(pr.as_str());
            // A review that waits again has a stale row from before.
            let rows: BTreeMap<Arc<ReviewKey>, Review> = rows.chain(waiting).collect();
            rows.into_iter()
                .filter(|(key, _)| key.pr == *pr && !self.current.contains_key(key))
                .collect()
        })
    }

    /// Returns a review with its stored key.
    pub(crate) fn entry(&self, key: &ReviewKey) -> Option<(&ReviewKey, &Review)> {
        if let Some((key, review)) = self.current.get_key_value(key) {
            return Some((key, review));
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

    /// Returns the reviews of a pull request number in any repository, ordered by key.
    pub(crate) fn of_number<'a>(
        &'a self,
        pr: &PrNumber,
    ) -> impl Iterator<Item = (&'a ReviewKey, &'a Review)> + use<'a> {
        let pr = pr.to_canonical();
        let keys = self.by_pr.get(&pr).into_iter().flatten();
        let current = keys.filter_map(|key| self.current.get_key_value(key));
        let rows = self.rows_of(&pr).iter();
        let mut reviews: Vec<(&ReviewKey, &Review)> = current
            .map(|(key, review)| (&**key, &**review))
            .chain(rows.map(|(key, review)| (&**key, review)))
            .collect();
        reviews.sort_unstable_by_key(|(key, _)| *key);
        reviews.into_iter()
    }

    /// Returns the reviews between two agents that are not final.
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

    /// Returns the deadlines, the next one first, each with its review and that review's reviewer.
    pub(crate) fn deadlines(
        &self,
    ) -> impl Iterator<Item = (DateTime<Utc>, &ReviewKey, &AgentName)> {
        let deadlines = self.deadlines.iter();
        deadlines.map(|((at, key), reviewer)| (*at, &**key, reviewer))
    }

    /// Returns a review of the pull request that claims the task.
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
        let review = self.current.get_mut(&known).expect("it is current");
        let (before, was_at) = (deadline_of(&known, review), KeptIn::of(review));
        let (was_open, claimed) = (open_with(&known, review), review.fixes.clone());
        change(review);
        let (after, is_open) = (deadline_of(&known, review), open_with(&known, review));
        let claims = review.fixes.clone();
        let is_at = KeptIn::of(review);
        if claimed != claims {
            self.keep_claim(&known, claimed, claims);
        }
        if before != after {
            self.keep_deadline(&known, before.map(|(at, _)| at), after);
        }
        if was_open != is_open {
            self.keep_open(&known, was_open, is_open);
        }
        if was_at == KeptIn::Waiting && is_at != KeptIn::Waiting {
            self.waiting.leave(&known);
        }
        if was_at != KeptIn::Memory {
            self.at_rest.retain(|other| !Arc::ptr_eq(other, &known));
        }
        if is_at != KeptIn::Memory {
            self.come_to_rest(&known);
        }
    }

    /// Makes a known review current and returns its stored key.
    fn made_current(&mut self, key: &ReviewKey) -> Option<Arc<ReviewKey>> {
        if let Some((known, _)) = self.current.get_key_value(key) {
            return Some(Arc::clone(known));
        }
        let row = row_of::<b'r'>(key);
        // A review that waits again has a stale row from before.
        let review =
            (self.waiting.get(&row)).or_else(|| Some(read_row(&self.rows.get(&row)?).1))?;
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
        // Nearly always the only review of its number.
        of_pr.reserve_exact(1);
        of_pr.push(Arc::clone(&key));
        of_pr.sort_unstable();
        self.keep_deadline(&key, None, deadline_of(&key, &review));
        self.keep_open(&key, None, open_with(&key, &review));
        self.keep_claim(&key, None, review.fixes.clone());
        let is_at = KeptIn::of(&review);
        self.current.insert(Arc::clone(&key), Box::new(review));
        if is_at != KeptIn::Memory {
            self.come_to_rest(&key);
        }
        key
    }

    /// Records that a review came to rest; the one that has been at rest longest becomes a row.
    fn come_to_rest(&mut self, key: &Arc<ReviewKey>) {
        self.at_rest.push_back(Arc::clone(key));
        if self.at_rest.len() <= AT_REST_MAX {
            return;
        }
        let oldest = self.at_rest.pop_front().expect("there are some");
        let Some(review) = self.removed(&oldest) else {
            return;
        };
        self.keep_claim(&oldest, None, review.fixes.clone());
        self.keep_deadline(&oldest, None, deadline_of(&oldest, &review));
        self.keep_open(&oldest, None, open_with(&oldest, &review));
        self.count_row(&review, |count| count + 1);
        if KeptIn::of(&review) == KeptIn::Waiting {
            self.waiting.put(oldest, *review);
        } else {
            self.rows
                .put(row_of::<b'r'>(&oldest), row(&oldest, &review));
        }
        self.loaded.clear();
    }

    /// Removes a review from the current ones and from all indexes.
    fn removed(&mut self, key: &ReviewKey) -> Option<Box<Review>> {
        let (key, review) = self.current.remove_entry(key)?;
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
        self.rows.put_back(row_of::<b'r'>(key), None);
        self.waiting.put_back(key);
        self.at_rest.retain(|known| **known != *key);
        self.removed(key);
    }

    fn keep_deadline(
        &mut self,
        key: &Arc<ReviewKey>,
        before: Option<DateTime<Utc>>,
        after: Option<(DateTime<Utc>, AgentName)>,
    ) {
        if let Some(at) = before {
            self.deadlines.remove(&(at, Arc::clone(key)));
        }
        let after = after.map(|(at, reviewer)| ((at, Arc::clone(key)), reviewer));
        self.deadlines.extend(after);
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
            // Without an open review, a pair must look as if it never had any.
            if open.is_empty() {
                self.open.remove(&pair);
            }
        }
        if let Some(pair) = after {
            self.open.entry(pair).or_default().insert(Arc::clone(key));
        }
    }
}

/// Merges two lists that are ordered by key and have no review in common.
fn in_order<'a>(
    one: impl Iterator<Item = (&'a ReviewKey, &'a Review)>,
    other: impl Iterator<Item = (&'a ReviewKey, &'a Review)>,
) -> impl Iterator<Item = (&'a ReviewKey, &'a Review)> {
    let (mut one, mut other) = (one.peekable(), other.peekable());
    std::iter::from_fn(move || match (one.peek(), other.peek()) {
        (Some((first, _)), Some((second, _))) if first < second => one.next(),
        (Some(_), None) => one.next(),
        (_, Some(_)) => other.next(),
        (None, None) => None,
    })
}

/// Returns the deadline of a review that is not final, and its reviewer.
fn deadline_of(key: &ReviewKey, review: &Review) -> Option<(DateTime<Utc>, AgentName)> {
    let (at, _) = review.deadline()?;
    Some((at, review.reviewer(key).clone()))
}

/// Returns the author and the current reviewer, while an agent can move the review.
fn open_with(key: &ReviewKey, review: &Review) -> Option<(AgentName, AgentName)> {
    let pair = || (key.author.clone(), review.reviewer(key).clone());
    (!review.phase.is_final()).then(pair)
}

#[cfg(test)]
mod model;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::state::State;
    use review_words::folded::{fold, unfold};
    use review_words::phase::{EscalationReason, Phase};

    pub(super) fn key(number: usize) -> ReviewKey {
        let agent = |name: &str| name.parse().expect("a name");
        let number = number.to_string().parse().expect("a number");
        ReviewKey::new(None, &number, agent("claude"), agent("codex"))
    }

    pub(super) fn approved() -> Review {
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
    fn reviews_that_became_rows_in_a_batch_are_taken_back_with_it() {
        for (review, at_rest, waiting) in [
            (approved(), AT_REST_MAX, 0),
            (escalated(), 0, AT_REST_MAX),
            (fixing(1), 0, AT_REST_MAX),
        ] {
            let mut reviews = Reviews::default();
            let rows = |of: &Reviews| (of.rows.all().len(), of.waiting.rows.all().len());
            for number in 0..2 * AT_REST_MAX {
                reviews.change(&key(number), Some(review.clone()), |_| ());
            }
            assert_eq!(rows(&reviews), (at_rest, waiting));
            for number in (0..2 * AT_REST_MAX).rev() {
                reviews.put_back(&key(number), None);
            }
            assert_eq!(reviews, Reviews::default());
            assert_eq!(
                (rows(&reviews), reviews.phases()),
                ((0, 0), BTreeMap::new())
            );
        }
    }

    pub(super) fn escalated() -> Review {
        Review {
            phase: Phase::Escalated(EscalationReason::MaxRoundsExceeded),
            ..approved()
        }
    }

    /// A review whose author has time until the end of this minute.
    pub(super) fn fixing(minute: i64) -> Review {
        let due = DateTime::from_timestamp(60 * minute, 0).expect("a time");
        Review {
            phase: Phase::Fixing { due },
            ..approved()
        }
    }

    #[test]
    fn a_review_that_becomes_a_row_during_a_snapshot_is_kept() {
        let mut state = State::default();
        for number in 0..AT_REST_MAX {
            let reviews = &mut state.reviews;
            reviews.change(&key(number), Some(fixing(1)), |_| ());
        }
        let stored = Arc::new(state.rows()) as Arc<dyn StoredRows>;
        state.begin_snapshot();
        let reviews = &mut state.reviews;
        reviews.change(&key(AT_REST_MAX), Some(fixing(1)), |_| ());
        state.rest_on(&stored);
        let due: Vec<_> = state.reviews.deadlines().collect();
        assert_eq!(due.len(), AT_REST_MAX + 1);
        assert!(due.iter().all(|(_, key, _)| state.review(key).is_some()));
    }

    #[test]
    fn a_finished_review_is_not_hidden_by_a_row_that_another_process_made() {
        for finishes_during_snapshot in [false, true] {
            let mut here = Reviews::default();
            for number in 0..AT_REST_MAX {
                here.change(&key(number), Some(fixing(1)), |_| ());
            }
            let mut maker = here.clone();
            // A batch that moves the first one fails.
            here.change(&key(0), None, |review| *review = fixing(2));
            here.put_back(&key(0), Some(fixing(1)));
            // The next review makes the first one a row there, and the second one here.
            for of in [&mut here, &mut maker] {
                of.change(&key(AT_REST_MAX), Some(fixing(1)), |_| ());
            }
            begin_snapshot(&mut here);
            let made = made_elsewhere(&maker);
            if finishes_during_snapshot {
                here.change(&key(0), None, |review| *review = approved());
            }
            here.rest_on(&made);
            here.change(&key(0), None, |review| *review = approved());
            for number in AT_REST_MAX + 1..3 * AT_REST_MAX {
                here.change(&key(number), Some(approved()), |_| ());
            }
            assert!(!here.current.contains_key(&key(0)), "it is a row");
            assert_eq!(here.get(&key(0)), Some(&approved()));
        }
    }

    #[test]
    fn reviews_that_wait_for_their_authors_keep_their_deadlines_as_rows() {
        let all = 3 * AT_REST_MAX;
        let minute = |number: usize| i64::try_from(number).expect("a small number");
        let reviews: Vec<_> = (0..all).map(|n| (key(n), fixing(minute(n)))).collect();
        let state = State::of(reviews.iter().map(|(key, review)| (key, review)), [], []);
        let restored = state.through_snapshot().expect("its own lines");
        assert_eq!(restored, state);
        for mut state in [state, restored] {
            let reviews = &mut state.reviews;
            assert_eq!(reviews.current.len(), AT_REST_MAX, "the others are rows");
            let agents = (&key(0).author, &key(0).reviewer);
            let open = |of: &Reviews| (of.open_count(), of.open_between(agents.0, agents.1).len());
            assert_eq!(open(reviews), (all, all));
            let deadlines = |of: &Reviews| -> Vec<ReviewKey> {
                of.deadlines().map(|(_, key, _)| key.clone()).collect()
            };
            assert_eq!(deadlines(reviews), Vec::from_iter((0..all).map(key)));
            reviews.change(&key(0), None, |review| *review = approved());
            reviews.change(&key(1), None, |review| *review = fixing(minute(all)));
            assert_eq!(open(reviews), (all - 1, all - 1));
            let moved = (2..all).chain([1]).map(key);
            assert_eq!(deadlines(reviews), Vec::from_iter(moved));
            assert_eq!(reviews.get(&key(1)), Some(&fixing(minute(all))));
            assert_eq!(reviews.phases().into_values().sum::<u64>(), all as u64);
            reviews.put_back(&key(1), Some(fixing(1)));
            reviews.put_back(&key(0), Some(fixing(0)));
            assert_eq!(deadlines(reviews), Vec::from_iter((0..all).map(key)));
        }
    }

    /// Returns the rows of a snapshot that another process made from the same records.
    fn made_elsewhere(reviews: &Reviews) -> Arc<dyn StoredRows> {
        let mut rows = reviews.rows.all();
        rows.extend(reviews.waiting.rows.all());
        Arc::new(rows)
    }

    fn begin_snapshot(reviews: &mut Reviews) {
        reviews.rows.begin_snapshot();
        reviews.waiting.rows.begin_snapshot();
    }

    #[test]
    fn reviews_that_wait_for_a_person_are_listed_until_they_are_answered() {
        let mut reviews = Reviews::default();
        let all = 3 * AT_REST_MAX;
        for number in 0..all {
            reviews.change(&key(number), Some(escalated()), |_| ());
        }
        assert_eq!(reviews.current.len(), AT_REST_MAX, "the others are rows");
        assert_eq!(reviews.phases().into_values().sum::<u64>(), all as u64);
        let of = |reviews: &Reviews, number| reviews.get(&key(number)).cloned();
        // One is approved while it is a row, another after it was listed, and a third is escalated again.
        reviews.change(&key(0), None, |review| *review = approved());
        assert_eq!(reviews.iter_current().count(), all);
        reviews.change(&key(1), None, |review| *review = approved());
        reviews.change(&key(2), None, |review| *review = approved());
        reviews.change(&key(2), None, |review| *review = escalated());
        for number in all..all + 2 * AT_REST_MAX {
            reviews.change(&key(number), Some(approved()), |_| ());
        }
        let waiting = |reviews: &Reviews| {
            let now = reviews.iter_current();
            now.filter(|(_, review)| **review == escalated()).count()
        };
        assert_eq!(waiting(&reviews), all - 2);
        assert_eq!(reviews.iter().count(), all + 2 * AT_REST_MAX);
        for (number, expected) in [(0, approved()), (1, approved()), (2, escalated())] {
            assert_eq!(of(&reviews, number), Some(expected), "{number}");
        }
        // The same from a snapshot.
        let stored = made_elsewhere(&reviews);
        begin_snapshot(&mut reviews);
        reviews.rest_on(&stored);
        assert_eq!(reviews.waiting.rows.new_rows().count(), 0);
        reviews.release();
        assert_eq!(waiting(&reviews), all - 2);
        assert_eq!(of(&reviews, 0), Some(approved()));
    }

    #[test]
    fn a_row_keeps_its_claim_to_a_task_through_a_snapshot() {
        let task = TaskId::new(&key(0).pr, 1);
        let fix = Review {
            fixes: Some(task.clone()),
            ..escalated()
        };
        let mut state = State::default();
        state.reviews.change(&key(0), Some(fix), |_| ());
        for number in 1..=AT_REST_MAX {
            state.reviews.change(&key(number), Some(approved()), |_| ());
        }
        assert!(!state.reviews.current.contains_key(&key(0)), "it is a row");
        let restored = state.through_snapshot().expect("a state");
        for state in [&state, &restored] {
            assert_eq!(state.reviews.claim(&task), Some(&key(0)));
        }
        assert_eq!(restored, state);
    }

    #[test]
    fn a_review_that_became_a_row_for_one_that_was_undone_outlives_a_snapshot() {
        for review in [approved(), escalated()] {
            let mut here = Reviews::default();
            for number in 0..AT_REST_MAX {
                here.change(&key(number), Some(review.clone()), |_| ());
            }
            // The maker of the snapshot reads records, so it never sees what was undone.
            let maker = here.clone();
            here.change(&key(AT_REST_MAX), Some(review.clone()), |_| ());
            here.put_back(&key(AT_REST_MAX), None);
            begin_snapshot(&mut here);
            here.rest_on(&made_elsewhere(&maker));
            for number in 0..AT_REST_MAX {
                assert_eq!(here.get(&key(number)), Some(&review), "{number}");
            }
        }
    }
}
