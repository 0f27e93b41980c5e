//! What the ledger adds up to: the mail that passed, and where each review stands.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use message_schema::id::{AgentName, ConversationId, MessageId, PrNumber, Repo};

use crate::parts::admission::Admission;
use crate::parts::open_pair::OpenPair;
use crate::parts::pulls::{Pull, Pulls};
use crate::parts::review::{FIX_REVIEWS_MAX, Review};
use crate::parts::reviews::{Folding, Reviews};
use crate::parts::spending::Spending;
use crate::words::event::PullEvent;
use crate::words::key::{ReviewKey, TaskId};
use crate::words::task::Task;
use pair_machine::PairId;
use policy::{Policy, Profile};

/// The fold of all records.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    pub(crate) admission: Admission,
    pub(crate) reviews: Reviews,
    /// The reviews each conversation was about; one may be held with several reviewers.
    pub(crate) conversations: BTreeMap<ConversationId, BTreeSet<Arc<ReviewKey>>>,
    pub(crate) pulls: Pulls,
    /// The tasks handed off, by name.
    pub(crate) tasks: BTreeMap<TaskId, Task>,
    /// The ids under which events were asked for; each counts once.
    pub(crate) orders: BTreeSet<MessageId>,
    /// The pairs of commands that go on or may go on.
    pub(crate) pairs: BTreeMap<PairId, OpenPair>,
    /// What the commands of agents used.
    pub(crate) spending: Spending,
}

impl State {
    /// An empty state that folds no review, for a command that reads once and ends.
    pub fn unfolded() -> Self {
        Self {
            reviews: Reviews::new(Folding::Nothing),
            ..Self::default()
        }
    }

    /// An empty state that folds reviews as this one does.
    pub fn emptied(&self) -> Self {
        Self {
            reviews: Reviews::new(self.reviews.folding()),
            ..Self::default()
        }
    }

    /// A state in which these reviews stand, these pull requests have had their last event and these
    /// tasks were handed off, before any mail: what the rules of a review depend on and nothing
    /// else. A walk of all states needs it, since a state that remembers every message never
    /// comes twice.
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

    /// The reviews, ordered by key.
    pub fn reviews(&self) -> impl Iterator<Item = (&ReviewKey, &Review)> {
        self.reviews.iter()
    }

    /// The reviews the pair answers for, ordered by key.
    pub(crate) fn reviews_of_pair(
        &self,
        pair: &OpenPair,
    ) -> impl Iterator<Item = (&ReviewKey, &Review)> {
        self.reviews.iter_where(|key| pair.is_own(key))
    }

    /// The reviews an agent can move, ordered by key. Cheaper than to look through all, most of which are finished.
    pub fn open_reviews(&self) -> impl Iterator<Item = (&ReviewKey, &Review)> {
        self.reviews.iter_open()
    }

    /// The word for the phase of each review.
    pub fn phases(&self) -> impl Iterator<Item = &'static str> {
        self.reviews.phases()
    }

    /// Gives back the memory of finished reviews that were asked for: a finished review is kept folded, and whole
    /// once somebody has asked for it.
    pub fn release_finished(&mut self) {
        self.reviews.release();
    }

    /// The reviews of all pull requests of this number, ordered by key.
    pub fn reviews_of(&self, pr: &PrNumber) -> impl Iterator<Item = (&ReviewKey, &Review)> {
        self.reviews.of_number(pr)
    }

    /// The review with this key.
    pub fn review(&self, key: &ReviewKey) -> Option<&Review> {
        self.reviews.get(key)
    }

    /// The next deadline the daemon has to keep, and its review.
    pub fn next_deadline(&self) -> Option<(DateTime<Utc>, &ReviewKey)> {
        self.reviews.next_deadline()
    }

    /// What is known of a pull request from its events.
    pub fn pull(&self, repo: Option<&Repo>, pr: &PrNumber) -> Option<&Pull> {
        self.pulls.get(repo, pr)
    }

    /// The task handed off under this name.
    pub fn task(&self, id: &TaskId) -> Option<&Task> {
        self.tasks.get(id)
    }

    /// Every task handed off, by name.
    pub fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.tasks.values()
    }

    /// The pair of that name, if it goes on or may go on.
    pub fn pair(&self, id: &PairId) -> Option<&OpenPair> {
        self.pairs.get(id)
    }

    /// Every pair that goes on or may go on, by name.
    pub fn pairs(&self) -> impl Iterator<Item = (&PairId, &OpenPair)> {
        self.pairs.iter()
    }

    /// Whether an event was asked for under this id before.
    pub fn has_order(&self, id: &MessageId) -> bool {
        self.orders.contains(id)
    }

    /// How many messages were accepted.
    pub fn accepted(&self) -> u64 {
        self.admission.accepted()
    }

    /// The generations this pull request has used, over all its reviewers.
    pub(crate) fn generations_used(&self, repo: Option<&Repo>, pr: &PrNumber) -> u8 {
        self.of_pr(repo, pr)
            .map(|(_, review)| review.generation)
            .fold(0, u8::saturating_add)
    }

    /// The reviews that were asked for on this pull request, one per round, over all its reviewers.
    pub(crate) fn reviews_used(&self, repo: Option<&Repo>, pr: &PrNumber) -> u32 {
        self.of_pr(repo, pr)
            .map(|(_, review)| review.asked)
            .fold(0, u32::saturating_add)
    }

    /// Whether one of its reviews is to see that a task is fixed.
    pub(crate) fn is_fix(&self, repo: Option<&Repo>, pr: &PrNumber) -> bool {
        self.of_pr(repo, pr)
            .any(|(_, review)| review.fixes.is_some())
    }

    /// Whether it is a fix pull request that has had all its reviews.
    pub(crate) fn has_no_review_left(&self, repo: Option<&Repo>, pr: &PrNumber) -> bool {
        self.is_fix(repo, pr) && self.reviews_used(repo, pr) >= FIX_REVIEWS_MAX
    }

    /// Whether the quality gate only advises here: on pull requests of people, if the project says so.
    pub fn is_advised(&self, policy: &Policy, key: &ReviewKey, review: &Review) -> bool {
        let pull = self.pull(key.repo.as_ref(), &key.pr);
        let author = pull
            .and_then(|pull| pull.author.as_deref())
            .unwrap_or(key.author.as_str());
        match policy.profile {
            Profile::Gate => false,
            Profile::Advisory => review.fixes.is_none() && !policy.handoff.bots.contains(author),
        }
    }

    /// The reviews of one pull request: of the repository, if one is named, and those that name none.
    pub(crate) fn of_pr<'a, 'r>(
        &'a self,
        repo: Option<&'r Repo>,
        pr: &PrNumber,
    ) -> impl Iterator<Item = (&'a ReviewKey, &'a Review)> + use<'a, 'r> {
        self.reviews
            .of_number(pr)
            .filter(move |(key, _)| key.may_be_of(repo))
    }

    /// The review a known message belongs to, by the message's id.
    pub(crate) fn review_of_message(
        &self,
        sender: &AgentName,
        id: &MessageId,
    ) -> Option<&ReviewKey> {
        self.admission.review_of(sender, id)
    }
}
