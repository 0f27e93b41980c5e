//! The fold of the ledger: ids and counts of messages, and the state of each review, pull request, task and pair.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use message_schema::id::{AgentName, ConversationId, MessageId, PrNumber, Repo};
use pair_machine::PairId;
use policy::{Policy, Profile};
use review_words::event::PullEvent;
use review_words::key::{ReviewKey, TaskId};
use review_words::pulls::{Pull, Pulls};
use review_words::table::{RowKey, StoredRows, Table};
use review_words::task::Task;

use crate::parts::admission::Admission;
use crate::parts::evidence::approval_barred;
use crate::parts::open_pair::OpenPair;
use crate::parts::review::{FIX_REVIEWS_MAX, GIVEN_BACK_PER_DAY, Review};
use crate::parts::reviews::Reviews;
use crate::parts::spending::Spending;

/// The fold of all records.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    pub(crate) admission: Admission,
    pub(crate) reviews: Reviews,
    pub(crate) conversations: Conversations,
    pub(crate) pulls: Pulls,
    /// The tasks handed off, by name.
    pub(crate) tasks: BTreeMap<TaskId, Task>,
    /// The ids of orders that reported events; each counts once.
    pub(crate) orders: Table<b'o'>,
    /// The pairs of commands that run or can be resumed.
    pub(crate) pairs: BTreeMap<PairId, OpenPair>,
    /// The spend of the agents' commands.
    pub(crate) spending: Spending,
}

impl State {
    /// Builds a state from these reviews, the last events of these pull requests and these tasks, without any earlier
    /// mail: everything that the rules of a review depend on. A walk of all states needs it, because a state that
    /// remembers every message never recurs.
    pub fn of<'a>(
        reviews: impl IntoIterator<Item = (&'a ReviewKey, &'a Review)>,
        pulls: impl IntoIterator<Item = &'a PullEvent>,
        tasks: impl IntoIterator<Item = &'a Task>,
    ) -> Self {
        let mut state = Self::default();
        for (key, review) in reviews {
            state.reviews.change(key, Some(review.clone()), |_| ());
        }
        pulls.into_iter().for_each(|event| state.pulls.note(event));
        state.tasks.extend(
            tasks
                .into_iter()
                .map(|task| (task.id.clone(), task.clone())),
        );
        state
    }

    /// Returns all reviews, ordered by key. It reads every review of a snapshot, so it is for callers that show or
    /// compare all.
    pub fn reviews(&self) -> impl Iterator<Item = (&ReviewKey, &Review)> {
        self.reviews.iter()
    }

    /// Returns the reviews that the pair answers for, ordered by key.
    pub(crate) fn reviews_of_pair(
        &self,
        pair: &OpenPair,
    ) -> impl Iterator<Item = (&ReviewKey, &Review)> {
        let of_number = pair.setup.pr.iter();
        let named = of_number.flat_map(|pr| self.reviews.of_number(pr));
        let asked_for = pair.asked_for.iter();
        let asked_for = asked_for.filter_map(|key| self.reviews.entry(key));
        let own: BTreeMap<&ReviewKey, &Review> = named
            .chain(asked_for)
            .filter(|(key, _)| pair.is_own(key))
            .collect();
        own.into_iter()
    }

    /// Returns the reviews in which somebody has to act, and the last 64 that came to rest; ordered by key. It reads
    /// those that wait for their author or a person, so it is for callers that show them.
    pub fn current_reviews(&self) -> impl Iterator<Item = (&ReviewKey, &Review)> {
        self.reviews.iter_current()
    }

    /// Returns the reviews whose reviewer owes a response, ordered by key. Reads no row.
    pub fn requested_reviews(&self) -> impl Iterator<Item = (&ReviewKey, &Review)> {
        self.reviews.iter_requested()
    }

    /// Counts the reviews that an agent can move.
    pub fn open_count(&self) -> usize {
        self.reviews.open_count()
    }

    /// Counts the reviews in each phase, by its word.
    pub fn phases(&self) -> BTreeMap<String, u64> {
        self.reviews.phases()
    }

    /// Frees the memory of reviews that callers have read from rows.
    pub fn release_finished(&mut self) {
        self.reviews.release();
    }

    /// Returns the reviews of all pull requests of this number, ordered by key.
    pub fn reviews_of<'a>(
        &'a self,
        pr: &PrNumber,
    ) -> impl Iterator<Item = (&'a ReviewKey, &'a Review)> + use<'a> {
        self.reviews.of_number(pr)
    }

    /// Returns the review with this key.
    pub fn review(&self, key: &ReviewKey) -> Option<&Review> {
        self.reviews.get(key)
    }

    /// Returns the daemon's next deadline and its review.
    pub fn next_deadline(&self) -> Option<(DateTime<Utc>, &ReviewKey)> {
        self.deadlines().next()
    }

    /// Returns the daemon's deadlines and their reviews, the earliest first.
    pub fn deadlines(&self) -> impl Iterator<Item = (DateTime<Utc>, &ReviewKey)> {
        let deadlines = self.reviews.deadlines();
        deadlines.map(|(at, review, _)| (at, review))
    }

    /// Returns the same, each with the review's current reviewer. Reads no row.
    pub fn deadlines_with_reviewers(
        &self,
    ) -> impl Iterator<Item = (DateTime<Utc>, &ReviewKey, &AgentName)> {
        self.reviews.deadlines()
    }

    /// Returns the state of a pull request from its events.
    pub fn pull(&self, repo: Option<&Repo>, pr: &PrNumber) -> Option<Pull> {
        self.pulls.get(repo, pr)
    }

    /// True once an event closed or merged the pull request of a review, until one opens it again.
    pub fn is_pull_over(&self, key: &ReviewKey) -> bool {
        let pull = self.pull(key.repo.as_ref(), &key.pr);
        pull.is_some_and(|pull| !pull.is_open())
    }

    /// Returns the task handed off under this name.
    pub fn task(&self, id: &TaskId) -> Option<&Task> {
        self.tasks.get(id)
    }

    /// Returns every task handed off, by name.
    pub fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.tasks.values()
    }

    /// Returns the pair of that name, if it runs or can be resumed.
    pub fn pair(&self, id: &PairId) -> Option<&OpenPair> {
        self.pairs.get(id)
    }

    /// Returns every pair that runs or can be resumed, by name.
    pub fn pairs(&self) -> impl Iterator<Item = (&PairId, &OpenPair)> {
        self.pairs.iter()
    }

    /// True if an order with this id has reported an event before.
    pub fn has_order(&self, id: &MessageId) -> bool {
        self.orders.has(&row_of_order(id))
    }

    /// Returns the number of accepted messages.
    pub fn accepted(&self) -> u64 {
        self.admission.accepted()
    }

    /// Returns the number of generations that this author's pull request has used, over all its reviewers.
    pub(crate) fn generations_used(&self, key: &ReviewKey) -> u8 {
        self.of_pr(key.repo.as_ref(), &key.pr)
            .filter(|(other, _)| other.author == key.author)
            .map(|(_, review)| review.generation)
            .fold(0, u8::saturating_add)
    }

    /// Returns the number of reviews requested on this pull request, one per round, over all its reviewers.
    pub(crate) fn reviews_used(&self, repo: Option<&Repo>, pr: &PrNumber) -> u32 {
        self.of_pr(repo, pr)
            .map(|(_, review)| review.asked)
            .fold(0, u32::saturating_add)
    }

    /// True if one of its reviews is of a fix for a task.
    pub(crate) fn is_fix(&self, repo: Option<&Repo>, pr: &PrNumber) -> bool {
        self.of_pr(repo, pr)
            .any(|(_, review)| review.fixes.is_some())
    }

    /// True if it is a fix pull request that has had all its reviews.
    pub(crate) fn has_no_review_left(&self, repo: Option<&Repo>, pr: &PrNumber) -> bool {
        self.is_fix(repo, pr) && self.reviews_used(repo, pr) >= FIX_REVIEWS_MAX
    }

    /// True if the quality gate only advises here: on pull requests of people, if the project says so.
    pub fn is_advised(&self, policy: &Policy, key: &ReviewKey, review: &Review) -> bool {
        let pull = self.pull(key.repo.as_ref(), &key.pr);
        let author = pull
            .as_ref()
            .and_then(|pull| pull.author.as_deref())
            .unwrap_or(key.author.as_str());
        match policy.profile {
            Profile::Gate => false,
            Profile::Advisory => review.fixes.is_none() && !policy.handoff.bots.contains(author),
        }
    }

    /// Returns the reasons that no lgtm of this reviewer passes, whatever it says; none where the gate only advises.
    pub fn lgtm_barred(&self, policy: &Policy, key: &ReviewKey, review: &Review) -> Vec<String> {
        if self.is_advised(policy, key, review) {
            return Vec::new();
        }
        approval_barred(policy, key, review)
    }

    /// True if some lgtm could pass the gate: nothing bars its reviewer and no person holds a blocker, or the gate only
    /// advises.
    pub fn may_approve(&self, policy: &Policy, key: &ReviewKey, review: &Review) -> bool {
        self.is_advised(policy, key, review)
            || approval_barred(policy, key, review).is_empty()
                && review.held_blockers().next().is_none()
    }

    /// Returns the reviews of one pull request: of the repository, if one is named, and those that name none.
    pub(crate) fn of_pr<'a, 'r>(
        &'a self,
        repo: Option<&'r Repo>,
        pr: &PrNumber,
    ) -> impl Iterator<Item = (&'a ReviewKey, &'a Review)> + use<'a, 'r> {
        self.reviews
            .of_number(pr)
            .filter(move |(key, _)| key.may_be_of(repo))
    }

    /// Returns how often people gave the pull request back within 24 hours and when they may again, if not now.
    pub fn given_back_too_often(
        &self,
        key: &ReviewKey,
        now: DateTime<Utc>,
    ) -> Option<(usize, DateTime<Utc>)> {
        let day = TimeDelta::hours(24);
        let reviews = self.of_pr(key.repo.as_ref(), &key.pr);
        let times = reviews.flat_map(|(_, review)| &review.given_back);
        let mut times: Vec<_> = times.filter(|at| **at > now - day).collect();
        times.sort_unstable();
        let first = times.len().checked_sub(GIVEN_BACK_PER_DAY)?;
        Some((times.len(), *times[first] + day))
    }

    /// Returns the reviews of one pull request without those whose number another author has now.
    pub fn counted_reviews(
        &self,
        repo: Option<&Repo>,
        pr: &PrNumber,
    ) -> Vec<(&ReviewKey, &Review)> {
        let mut reviews: Vec<_> = self.of_pr(repo, pr).collect();
        let mut holders = reviews.clone();
        holders.retain(|(_, review)| review.holds_number());
        reviews.retain(|(key, review)| {
            let is_taken = |(by, _): &(&ReviewKey, &Review)| {
                by.author != key.author && by.may_be_of(key.repo.as_ref())
            };
            review.holds_number() || !holders.iter().any(is_taken)
        });
        reviews
    }

    /// Returns the review of a known message, by the message's id.
    pub fn review_of_message(&self, sender: &AgentName, id: &MessageId) -> Option<&ReviewKey> {
        let key = self.admission.review_of(sender, id)?;
        Some(self.reviews.entry(&key)?.0)
    }

    /// Returns the new rows of all tables, for a snapshot, in no particular order.
    pub fn new_rows(&self) -> impl Iterator<Item = (RowKey, &[u8])> {
        let Self {
            admission,
            reviews,
            conversations,
            pulls,
            tasks: _,
            orders,
            pairs: _,
            spending: _,
        } = self;
        (admission.known.new_rows())
            .chain(admission.daemon_ids.new_rows())
            .chain(reviews.rows.new_rows())
            .chain(reviews.waiting.rows.new_rows())
            .chain(conversations.0.new_rows())
            .chain(pulls.0.new_rows())
            .chain(orders.new_rows())
    }

    /// Returns the rows of all tables.
    pub(crate) fn rows(&self) -> BTreeMap<RowKey, Vec<u8>> {
        (self.admission.known.all().into_iter())
            .chain(self.admission.daemon_ids.all())
            .chain(self.reviews.rows.all())
            .chain(self.reviews.waiting.rows.all())
            .chain(self.conversations.0.all())
            .chain(self.pulls.0.all())
            .chain(self.orders.all())
            .collect()
    }

    /// Starts a snapshot of the current state.
    pub fn begin_snapshot(&mut self) {
        self.admission.known.begin_snapshot();
        self.admission.daemon_ids.begin_snapshot();
        self.reviews.rows.begin_snapshot();
        self.reviews.waiting.rows.begin_snapshot();
        self.conversations.0.begin_snapshot();
        self.pulls.0.begin_snapshot();
        self.orders.begin_snapshot();
    }

    /// Abandons a snapshot that was not written.
    pub fn give_up_snapshot(&mut self) {
        self.admission.known.give_up_snapshot();
        self.admission.daemon_ids.give_up_snapshot();
        self.reviews.rows.give_up_snapshot();
        self.reviews.waiting.rows.give_up_snapshot();
        self.conversations.0.give_up_snapshot();
        self.pulls.0.give_up_snapshot();
        self.orders.give_up_snapshot();
    }

    /// Replaces the rows that were in memory when a snapshot began with those of the written snapshot.
    pub fn rest_on(&mut self, stored: &Arc<dyn StoredRows>) {
        self.admission.known.rest_on(Arc::clone(stored));
        self.admission.daemon_ids.rest_on(Arc::clone(stored));
        self.reviews.rest_on(stored);
        self.conversations.0.rest_on(Arc::clone(stored));
        self.pulls.0.rest_on(Arc::clone(stored));
        self.orders.rest_on(Arc::clone(stored));
    }
}

/// The reviews of each conversation; one conversation can involve several reviewers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Conversations(pub(crate) Table<b'c'>);

impl Conversations {
    /// Returns the reviews of a conversation, ordered by key.
    pub(crate) fn reviews(&self, id: &ConversationId) -> BTreeSet<ReviewKey> {
        let rows = self.0.group(id.as_str().as_bytes()).into_iter();
        let read = |row: Vec<u8>| -> (ConversationId, ReviewKey) {
            serde_json::from_slice(&row).expect("what was written as JSON")
        };
        let of_id = rows.map(read).filter(|(of, _)| of == id);
        of_id.map(|(_, key)| key).collect()
    }

    /// Adds a review to a conversation.
    pub(crate) fn note(&mut self, id: &ConversationId, key: &ReviewKey) {
        let json = serde_json::to_vec(&(id, key)).expect("plain values are JSON");
        self.0.put(row_of_conversation(id, key), json);
    }
}

/// Returns the row of a review in a conversation.
pub(crate) fn row_of_conversation(id: &ConversationId, key: &ReviewKey) -> RowKey {
    let own = serde_json::to_vec(key).expect("a key as JSON");
    Table::<b'c'>::key_in(id.as_str().as_bytes(), &own)
}

/// Returns the row of an order's id.
pub(crate) fn row_of_order(id: &MessageId) -> RowKey {
    Table::<b'o'>::key(&[id.as_str().as_bytes()])
}
