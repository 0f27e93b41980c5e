//! What the ledger adds up to: the mail that passed, and where each review stands.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use message_schema::envelope::Priority;
use message_schema::id::{
    AgentName, CommitSha, ConversationId, FindingId, MessageId, PrNumber, Repo,
};
use message_schema::limit::Rounds;
use serde::{Deserialize, Serialize};

use crate::event::PullEvent;
use crate::handoff::{Task, TaskId};
use crate::key::ReviewKey;
use crate::pairs::{OpenPair, PairId};
use crate::phase::{CloseReason, Closer, Phase, Side};
use crate::policy::{Policy, Profile};
use crate::post::Post;
use crate::pulls::{Pull, Pulls};
use crate::reviews::Reviews;
use crate::thread::Thread;

/// Responses that may be refused for what they say, per round.
pub const ATTEMPTS: u8 = 3;

/// How often a request may be replaced, per round.
pub const SUPERSESSIONS: u8 = 2;

/// Reviews of a fix pull request over its life, over all its reviewers (seed 003).
pub const FIX_REVIEWS_MAX: u32 = 5;

/// How often people may give a pull request back to the agents within 24 hours.
pub const GIVEN_BACK_PER_DAY: usize = 3;

/// Generations of a pull request over its life, over all its reviewers.
pub const GENERATIONS_MAX: u8 = 5;

/// The fold of all records.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    pub(crate) post: Post,
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
}

/// One review over the life of its pull request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Review {
    /// Which generation is running, from 1.
    pub generation: u8,
    /// The rounds this generation may take, fixed by its first request.
    pub rounds: Rounds,
    /// Rounds a person has added to this generation.
    pub granted: u8,
    /// The first round of this generation; rounds count on over the pull request's life.
    pub first_round: u32,
    /// The round last opened.
    pub round: u32,
    /// Where the review stands.
    pub phase: Phase,
    /// When it came to stand there.
    pub since: DateTime<Utc>,
    /// Who ended the last invocation; `None` while it is open.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub closed_by: Option<Closer>,
    /// Every finding ever raised here, by its id.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub threads: BTreeMap<FindingId, Thread>,
    /// The last commit the author reported fixes in, since it last declared a head to begin with.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub commit: Option<CommitSha>,
    /// The head the author last asked to have reviewed, within this generation.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub declared_head: Option<CommitSha>,
    /// How soon the round's request wants its answer; the author's time goes by it too.
    pub priority: Priority,
    /// How many rounds were asked for by a request, over the pull request's life.
    pub asked: u32,
    /// When people gave the review back to the agents.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub given_back: Vec<DateTime<Utc>>,
    /// The task this pull request is to fix, if it is a fix pull request.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fixes: Option<TaskId>,
}

impl State {
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

    /// The review with this key.
    pub fn review(&self, key: &ReviewKey) -> Option<&Review> {
        self.reviews.get(key)
    }

    /// The next deadline the daemon has to keep, and of which review.
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
        self.post.accepted()
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
    pub(crate) fn is_advised(&self, policy: &Policy, key: &ReviewKey, review: &Review) -> bool {
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
        self.post.review_of(sender, id)
    }
}

impl Review {
    /// The last round of this generation.
    pub fn last_round(&self) -> u32 {
        self.first_round + u32::from(self.rounds.get()) + u32::from(self.granted) - 1
    }

    /// The commit an approval given now is bound to: the one the reviewer names, else the last the
    /// author reported, else the head it declared.
    pub(crate) fn approved_commit(&self, validated_head: Option<&CommitSha>) -> Option<CommitSha> {
        validated_head
            .or(self.commit.as_ref())
            .or(self.declared_head.as_ref())
            .cloned()
    }

    /// Whether the open round takes no reply and is followed by none: the last of its generation, or
    /// of all reviews a fix pull request may have.
    pub fn is_last_round(&self) -> bool {
        self.is_last(self.round) || self.phase.invocation().is_some_and(|open| open.last_review)
    }

    /// Whether the round is this generation's last.
    pub fn is_last(&self, round: u32) -> bool {
        round >= self.last_round()
    }

    /// The round within this generation, from 1, for `round n of m`.
    pub fn round_of_generation(&self) -> u32 {
        self.round + 1 - self.first_round
    }

    /// The threads that need an action.
    pub fn open_threads(&self) -> impl Iterator<Item = (&FindingId, &Thread)> {
        self.threads.iter().filter(|(_, thread)| thread.is_open())
    }

    /// Whether nothing blocking is open, but something blocking is with a person.
    pub(crate) fn is_left_to_a_person(&self) -> bool {
        self.open_blockers() == 0
            && self
                .threads
                .values()
                .any(|thread| thread.blocking && thread.is_held())
    }

    /// How many threads block and are still open.
    pub fn open_blockers(&self) -> usize {
        self.open_threads()
            .filter(|(_, thread)| thread.blocking)
            .count()
    }

    /// What can be sent next and by whom, for reports and for the screen.
    pub fn legal_next(&self, key: &ReviewKey) -> Vec<String> {
        let ReviewKey {
            author, reviewer, ..
        } = key;
        match &self.phase {
            Phase::Reviewing(_) => vec![
                format!("{reviewer}: review_feedback with round: {}", self.round),
                format!("{reviewer}: review_lgtm, if the quality gate passes"),
            ],
            Phase::Awaiting { .. } => {
                vec![format!("{author}: review_request for round {}", self.round)]
            }
            Phase::Fixing { .. } if self.open_blockers() == 0 => vec![
                format!("{author}: review_request for round {}", self.round + 1),
                format!("{author}: review_addressed with round: {}", self.round),
            ],
            Phase::Fixing { .. } => vec![format!(
                "{author}: review_addressed with round: {}",
                self.round
            )],
            Phase::Addressed { .. } => vec![format!(
                "{author}: review_request for round {}",
                self.round + 1
            )],
            Phase::Approved(_) => {
                vec![format!(
                    "{author}: review_request with a declared_head that was not approved"
                )]
            }
            Phase::Escalated(_) => vec!["a person decides".to_owned()],
            Phase::Closed(CloseReason::Commented) => {
                vec!["a person can reopen the review".to_owned()]
            }
            Phase::Closed(CloseReason::Merged | CloseReason::NotMerged) => {
                vec![format!(
                    "{author}: review_request, once the pull request is open again"
                )]
            }
        }
    }

    /// Whose move it is.
    pub fn mover(&self) -> Side {
        self.phase.mover()
    }
}

impl Review {
    /// The attempts left to the reviewer in the open invocation; `None` when none is open.
    pub fn attempts_left(&self) -> Option<u8> {
        self.phase
            .invocation()
            .map(|invocation| invocation.attempts_left)
    }
}
