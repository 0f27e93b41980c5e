//! The brief that goes with a request: everything its reviewer needs to answer it, and a schema that admits only
//! answers the rules accept. `thread` and `gate` say what is legal; a brief decides nothing, and `decide` judges its
//! response like any other.

mod answer;
mod assignment;
mod choice;
pub mod file;
mod json;
mod schema;
mod wire;

use std::borrow::Cow;

use chrono::{DateTime, TimeDelta, Utc};
use message_schema::body::CHANGED_FILES_MAX;
use message_schema::envelope::{Priority, Timestamp};
use message_schema::id::{
    AgentName, CommitSha, DiffDigest, FindingId, MessageId, PrNumber, Repo, RepoPath,
};
use message_schema::packet::{Action, LineRange, Severity, Stance};
use serde::{Deserialize, Serialize};

pub use answer::{
    Deal, FeedbackAnswer, LgtmAnswer, NewFinding, NitAnswer, NotAResponse, StructuredResponse,
    TerminalResponse, ThreadAnswer,
};
pub use assignment::Legal;
pub use wire::WireResponse;

use self::assignment::Assignment;
use review::{
    Change, Dialogue, Invocation, Policy, ReviewKey, RoundKind, State, Thread, ToldAlert,
    edited_tests, required_commands,
};

/// The version of the brief's format.
pub const BRIEF_VERSION: u32 = 1;

/// The brief of one request, for its reviewer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Brief {
    /// The version of this format: 1.
    pub schema_version: u32,
    /// The repository, if the requests name one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub repo: Option<Repo>,
    /// The pull request.
    pub pr: PrNumber,
    /// The agent that asks for the review.
    pub author: AgentName,
    /// The agent that reviews.
    pub reviewer: AgentName,
    /// The request the brief goes with; a later brief of the same round replaces it.
    pub request: MessageId,
    /// The urgency of the request.
    pub priority: Priority,
    /// The round, as messages name it.
    pub round: u32,
    /// The same round, counted within its generation.
    pub round_of_generation: u32,
    /// The most rounds that this generation may take.
    pub rounds_of_generation: u32,
    /// True if no round follows: no thread takes a reply, and feedback escalates the review.
    pub last_round: bool,
    /// The commit the round is about, if its author named one. An approval of another commit is refused.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub head: Option<CommitSha>,
    /// The turns, seconds and attempts left for the round.
    pub budget: Budget,
    /// True if an lgtm can pass as far as threads are concerned; if not, `held_threads` says why.
    pub lgtm_possible: bool,
    /// The blocking threads that a person holds.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub held_threads: Vec<HeldThread>,
    /// The threads that need exactly one action each.
    pub open_threads: Vec<OpenThread>,
    /// The daemon's changes and limits to the request.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub alerts: Vec<ToldAlert>,
    /// The files that the author says it touched since the last feedback.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub look_first: Vec<RepoPath>,
    /// The change to review, if the request describes it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub change: Option<BriefChange>,
    /// The reasons, besides threads, that no lgtm of this reviewer passes; one sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub approval_barred: Vec<String>,
    /// The commands that an lgtm must record as passing.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub validation_commands: Vec<String>,
    /// The JSON Schema (2020-12) of the response to this request, as one line of JSON. Written apart from the other
    /// fields, because it is JSON, not text.
    #[serde(skip)]
    pub response_schema: String,
}

/// The change to review, as the request describes it. The files are the first 200; `settled diff` prints the change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BriefChange {
    /// The commit it is based on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub base_sha: Option<CommitSha>,
    /// The digest of the diff from there to `head`, which a response names to show that it read the diff.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub diff_digest: Option<DiffDigest>,
    /// The number of files that differ.
    pub count: usize,
    /// The files that differ.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub changed_files: Vec<RepoPath>,
    /// The changed files that are tests by their path or name: a test that changes with the code proves less about it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub edits_tests: Vec<RepoPath>,
}

/// The means left for a round when its brief is written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// Turns left.
    pub turns_left: u16,
    /// Seconds left of the runtime, or all of it while the request is not taken.
    pub runtime_s_left: u32,
    /// The deadline for the take; left out once the request is taken.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub take_by: Option<Timestamp>,
    /// The deadline for the answer; unknown until the request is taken.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub answer_by: Option<Timestamp>,
    /// The number of responses that may still be refused for their content before a person has to decide.
    pub attempts_left: u8,
}

/// A thread on which no response can act.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldThread {
    /// The thread.
    pub id: FindingId,
    /// The finding's severity.
    pub severity: Severity,
    /// A one-line title.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub title: Option<String>,
    /// The thread's state with the action that caused it, such as `held (veto)`.
    pub state: Cow<'static, str>,
}

/// A thread that needs an action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenThread {
    /// The thread.
    pub id: FindingId,
    /// The finding's severity.
    pub severity: Severity,
    /// True if it blocks approval.
    pub blocking: bool,
    /// A one-line title.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub title: Option<String>,
    /// The file it is in.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub file: Option<RepoPath>,
    /// The lines it covers.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lines: Option<LineRange>,
    /// The reviewer's last stance.
    pub stance: Stance,
    /// The number of times that stance was repeated.
    pub round_count: u8,
    /// The number of replies so far.
    pub replies: u8,
    /// The legal actions, by the stance taken with them.
    pub legal: Legal,
}

impl OpenThread {
    /// The thread, as far as the brief describes it.
    pub fn thread(&self) -> Thread {
        let Self {
            stance,
            round_count,
            replies,
            ..
        } = *self;
        Thread {
            severity: self.severity,
            blocking: self.blocking,
            title: self.title.clone(),
            file: self.file.clone(),
            lines: self.lines,
            ..Thread::discussed(Dialogue {
                stance,
                round_count,
                replies,
            })
        }
    }

    /// The legal actions with this stance or, without one, with the last stance.
    pub fn legal(&self, stance: Option<Stance>) -> &[Action] {
        match stance.unwrap_or(self.stance) {
            Stance::SeeksChange => &self.legal.seeks_change,
            Stance::Accepts => &self.legal.accepts,
        }
    }
}

/// Returns the brief of a review's open request; `None` when none is open.
pub fn brief(state: &State, policy: &Policy, key: &ReviewKey, now: DateTime<Utc>) -> Option<Brief> {
    let review = state.review(key)?;
    let open = review.phase.invocation()?;
    let assignment = Assignment {
        review,
        may_approve: state.may_approve(policy, key, review),
        round_kind: review.round_kind(),
        advised: state.is_advised(policy, key, review),
    };
    let held = review.held_blockers().map(|(id, thread)| HeldThread {
        id: id.clone(),
        severity: thread.severity,
        title: thread.title.clone(),
        state: thread.state.word().into(),
    });
    let threads = review
        .open_threads()
        .map(|(id, thread)| open_thread(id, thread, assignment.round_kind));
    let touched = open
        .addressed
        .as_ref()
        .map(|report| report.touched_files.clone());
    Some(Brief {
        schema_version: BRIEF_VERSION,
        repo: key.repo.clone(),
        pr: key.pr.clone(),
        author: key.author.clone(),
        reviewer: review.reviewer(key).clone(),
        request: open.request.clone(),
        priority: open.priority,
        round: review.round,
        round_of_generation: review.round_of_generation(),
        rounds_of_generation: review.last_round() + 1 - review.first_round,
        last_round: assignment.round_kind == RoundKind::Last,
        head: open.head.clone(),
        budget: budget(open, now),
        lgtm_possible: assignment.may_approve,
        held_threads: held.collect(),
        open_threads: threads.collect(),
        alerts: open.alerts.iter().map(ToldAlert::from).collect(),
        look_first: touched.unwrap_or_default(),
        change: change(&review.reading.change),
        approval_barred: review::approval_barred(policy, key, review),
        validation_commands: required_commands(policy, open)
            .into_iter()
            .map(str::to_owned)
            .collect(),
        response_schema: schema::of(&assignment),
    })
}

fn change(change: &Change) -> Option<BriefChange> {
    let is_said = change.digest.is_some() || !change.files.is_empty();
    let first =
        |files: Vec<&RepoPath>| files.into_iter().take(CHANGED_FILES_MAX).cloned().collect();
    is_said.then(|| BriefChange {
        base_sha: change.base.clone(),
        diff_digest: change.digest.clone(),
        count: change.files.len(),
        changed_files: first(change.files.iter().collect()),
        edits_tests: first(edited_tests(&change.files)),
    })
}

fn budget(open: &Invocation, now: DateTime<Utc>) -> Budget {
    let runtime = TimeDelta::seconds(open.runtime_s.get().into());
    let answer_by = open.taken_at.map(|taken| taken + runtime);
    let left = answer_by.map_or(runtime, |by| by - now).num_seconds();
    Budget {
        turns_left: open.turns_left(),
        runtime_s_left: u32::try_from(left).unwrap_or(0),
        take_by: open
            .taken_at
            .is_none()
            .then(|| Timestamp::from_utc(open.pick_up_by)),
        answer_by: answer_by.map(Timestamp::from_utc),
        attempts_left: open.attempts_left,
    }
}

fn open_thread(id: &FindingId, thread: &Thread, round_kind: RoundKind) -> OpenThread {
    OpenThread {
        id: id.clone(),
        severity: thread.severity,
        blocking: thread.blocking,
        title: thread.title.clone(),
        file: thread.file.clone(),
        lines: thread.lines,
        stance: thread.dialogue.stance,
        round_count: thread.dialogue.round_count,
        replies: thread.dialogue.replies,
        legal: Legal::of(thread, round_kind),
    }
}
