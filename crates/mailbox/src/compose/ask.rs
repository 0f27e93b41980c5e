//! Reads the open requests to a reviewer: each brief, from the ledger or, if it cannot be read, from `packets/briefs/`.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use chrono::{DateTime, Utc};
use message_schema::id::{
    AgentName, CommitSha, DiffDigest, FindingId, MessageId, PrNumber, Repo, RepoPath,
};
use message_schema::limit::Rounds;
use message_schema::packet::{Action, LineRange, Severity, Stance};
use message_schema::schema::Schema;
use message_schema::{ReadBody, coerce, parse, read_document};
use review::{
    Dialogue, Invocation, Phase, Policy, ReadingState, Review, ReviewKey, RoundKind, Silence,
    State, Thread, ThreadMode, ToldAlert,
};
use serde::Deserialize;
use serde_json::Value;
use spool::Layout;
use workspace::config::{Config, ConfigError};

use super::message::Fields;
use super::packet::read;
use super::review_status::ReviewStatuses;
use crate::served::{self, Served};

/// One open request, in the form in which its reviewer answers it.
#[derive(Clone, Debug, Deserialize)]
pub struct Ask {
    /// The repository, if the requests name one.
    #[serde(default)]
    pub repo: Option<Repo>,
    /// The pull request.
    pub pr: PrNumber,
    /// The agent that asks.
    pub author: AgentName,
    /// The agent that reviews.
    pub reviewer: AgentName,
    /// The request.
    pub request: MessageId,
    /// The round.
    pub round: u32,
    /// The round within its generation.
    pub round_of_generation: u32,
    /// The number of rounds this generation may take.
    pub rounds_of_generation: u32,
    /// True if no round follows.
    pub last_round: bool,
    /// The commit of the round, if its author named one.
    #[serde(default)]
    pub head: Option<CommitSha>,
    /// True if the threads allow an lgtm to pass.
    pub lgtm_possible: bool,
    /// The budget left in the round.
    pub budget: Budget,
    /// The blocking threads that are with a person.
    #[serde(default)]
    pub held_threads: Vec<HeldThread>,
    /// The threads that need an action.
    pub open_threads: Vec<OpenThread>,
    /// The change, if the request describes it.
    #[serde(default)]
    pub change: Option<AskedChange>,
    /// Everything the daemon changed or limited about the request.
    #[serde(default)]
    pub alerts: Vec<ToldAlert>,
    /// The files to look at first.
    #[serde(default)]
    pub look_first: Vec<String>,
    /// The commands that an lgtm must record as passing.
    #[serde(default)]
    pub validation_commands: Vec<String>,
    /// The JSON Schema of the response.
    pub response_schema: Value,
    /// The files that `settled diff` has printed for the request.
    #[serde(skip)]
    pub served: Option<Served>,
    /// The whole brief, as in its file.
    #[serde(skip)]
    pub whole: Value,
    /// The open threads that need no word.
    #[serde(skip)]
    pub unnamed: ResolvedUnnamed,
    /// True if every action has to be written out.
    #[serde(skip)]
    pub explicit: bool,
    /// True if the quality gate may only advise.
    #[serde(skip)]
    pub advised: bool,
    /// The review itself and the policy, if the ledger can be read.
    #[serde(skip)]
    known: Option<Box<(Review, Policy)>>,
}

/// The change to read.
#[derive(Clone, Debug, Deserialize)]
pub struct AskedChange {
    /// The commit it is based on.
    #[serde(default)]
    pub base_sha: Option<CommitSha>,
    /// The digest of the diff.
    #[serde(default)]
    pub diff_digest: Option<DiffDigest>,
    /// The number of files that the author lists.
    #[serde(default)]
    pub count: usize,
    /// The first of these files.
    #[serde(default)]
    pub changed_files: Vec<RepoPath>,
}

/// The budget left in a round.
#[derive(Clone, Debug, Deserialize)]
pub struct Budget {
    /// Turns left.
    pub turns_left: u16,
    /// Seconds left.
    pub runtime_s_left: u32,
    /// The deadline for taking the request.
    #[serde(default)]
    pub take_by: Option<String>,
    /// The deadline for the answer.
    #[serde(default)]
    pub answer_by: Option<String>,
    /// Responses that may still be refused.
    pub attempts_left: u8,
}

/// A thread that no response can act on.
#[derive(Clone, Debug, Deserialize)]
pub struct HeldThread {
    /// The thread.
    pub id: FindingId,
    /// The thread's state with the action that caused it, such as `held (veto)`.
    pub state: String,
}

/// A thread that needs an action.
#[derive(Clone, Debug, Deserialize)]
pub struct OpenThread {
    /// The thread.
    pub id: FindingId,
    /// Its severity.
    pub severity: Severity,
    /// True if it blocks approval.
    pub blocking: bool,
    /// Its title, in one line.
    #[serde(default)]
    pub title: Option<String>,
    /// The file it is in.
    #[serde(default)]
    pub file: Option<RepoPath>,
    /// The lines it covers.
    #[serde(default)]
    pub lines: Option<LineRange>,
    /// The reviewer's last stance.
    pub stance: Stance,
    /// The number of times that stance was repeated.
    pub round_count: u8,
    /// The number of replies so far.
    pub replies: u8,
    /// The actions that are legal now.
    pub legal: Legal,
}

/// The legal actions for each stance.
#[derive(Clone, Debug, Deserialize)]
pub struct Legal {
    /// With a stance that the author should change something.
    pub seeks_change: Vec<Action>,
    /// With a stance that nothing needs to change.
    pub accepts: Vec<Action>,
}

/// The open threads that a response resolves by not naming them. None if that is unknown: then the response must name
/// each thread.
#[derive(Clone, Debug, Default)]
pub struct ResolvedUnnamed {
    /// The threads that a feedback resolves.
    pub by_feedback: BTreeSet<FindingId>,
    /// The threads that an lgtm resolves.
    pub by_lgtm: BTreeSet<FindingId>,
}

impl ResolvedUnnamed {
    fn of(ask: &Ask, policy: &Policy, invocation: &Invocation) -> Self {
        let by = |silence: Silence<'_>| {
            let open = ask.open_threads.iter();
            let resolved = open.filter(|open| silence.resolves(&open.id, open.severity));
            resolved.map(|open| open.id.clone()).collect()
        };
        Self {
            by_feedback: by(Silence::of_feedback(policy, invocation)),
            by_lgtm: by(Silence::of_lgtm(policy, invocation)),
        }
    }
}

/// The reason the open requests cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The config cannot be read.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The briefs cannot be read.
    #[error("packets/briefs: {0}")]
    Briefs(#[from] io::Error),
}

/// Returns every open request to this agent as reviewer.
pub fn open(root: &Path, me: &AgentName, now: DateTime<Utc>) -> Result<Vec<Ask>, AskError> {
    // An agent with a user of its own may read neither the ledger nor the policy. Then nothing is assumed about them,
    // and the daemon decides what an answer means.
    let config = match Config::load(root) {
        Err(ConfigError::Unreadable { source, .. })
            if source.kind() == io::ErrorKind::PermissionDenied =>
        {
            None
        }
        config => Some(config?),
    };
    let known = config
        .as_ref()
        .and_then(|config| Some((config, ReviewStatuses::read(root, me)?)));
    if let Some((config, statuses)) = known {
        let policy = config.policy(workspace::directory::agents(root).unwrap_or_default());
        let state = statuses.index().state();
        let mine = state
            .requested_reviews()
            .filter(|(key, review)| review.reviewer(key) == me);
        let asks = mine.filter_map(|it| of_review(root, (state, &policy), it, now));
        return Ok(asks.collect());
    }
    let mut asks = of_files(root, me)?;
    for ask in &mut asks {
        ask.served = served::read(root, me, &ask.request);
        ask.advised = true;
    }
    Ok(asks)
}

/// The open request of one review, from a state in memory.
pub fn of_review(
    root: &Path,
    (state, policy): (&State, &Policy),
    (key, review): (&ReviewKey, &Review),
    now: DateTime<Utc>,
) -> Option<Ask> {
    let brief = judgement::brief::brief(state, policy, key, now)?;
    let mut whole = serde_json::to_value(&brief).expect("a brief has text keys and plain values");
    whole["response_schema"] =
        serde_json::from_str(&brief.response_schema).expect("a schema of ours is JSON");
    let ask = Ask::read(whole).expect("a brief of this version");
    let invocation = review.phase.invocation()?;
    Some(Ask {
        unnamed: ResolvedUnnamed::of(&ask, policy, invocation),
        known: Some(Box::new((review.clone(), policy.clone()))),
        served: served::read(root, &ask.reviewer, &ask.request),
        explicit: policy.threads == ThreadMode::Explicit,
        advised: state.is_advised(policy, key, review),
        ..ask
    })
}

/// The newest brief of each review that this agent has not answered, according to its own `sent/`. The daemon may have
/// closed the request meanwhile; then it refuses the answer and says so.
fn of_files(root: &Path, me: &AgentName) -> io::Result<Vec<Ask>> {
    let directory = Layout::new(root).packets(spool::dirs::BRIEFS);
    let listed = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed?,
    };
    let mut newest: BTreeMap<_, ((u32, u64), Ask)> = BTreeMap::new();
    for entry in listed {
        let path = entry?.path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if name.starts_with('.') || !name.contains(&format!("_{me}_r")) {
            continue;
        }
        let whole = read(&path).ok().and_then(|bytes| read_document(&bytes));
        let Some(ask) = whole.and_then(|whole| Ask::read(whole).ok()) else {
            continue;
        };
        if ask.reviewer != *me {
            continue;
        }
        // A later brief of the same round has a number in its name.
        let number = name
            .rsplit('.')
            .nth(1)
            .and_then(|number| number.parse().ok())
            .unwrap_or(0);
        let age = (ask.round, number);
        let key = (ask.repo.clone(), ask.pr.clone(), ask.author.clone());
        if newest.get(&key).is_none_or(|(known, _)| *known < age) {
            newest.insert(key, (age, ask));
        }
    }
    let answered = answered(root, me);
    let asks = newest.into_values().map(|(_, ask)| ask);
    Ok(asks
        .filter(|ask| !answered.contains(&(ask.pr.to_canonical(), ask.round)))
        .collect())
}

/// The rounds to which this agent has already responded.
fn answered(root: &Path, me: &AgentName) -> BTreeSet<(PrNumber, u32)> {
    let sent = Layout::new(root).sent(me.as_str());
    let files = std::fs::read_dir(sent).into_iter().flatten().flatten();
    let rounds = files.filter_map(|file| {
        let message = parse(&read(&file.path()).ok()?).ok()?;
        let kind = message.kind().filter(|kind| kind.is_terminal_response())?;
        let (schema, ReadBody::Mapping(body)) = (Schema::of_body(kind)?, message.read_body())
        else {
            return None;
        };
        let round = coerce(body, schema.shape())["round"].as_u64()?;
        Some((
            message.related_pr()?.to_canonical(),
            u32::try_from(round).ok()?,
        ))
    });
    rounds.collect()
}

impl Ask {
    fn read(whole: Value) -> serde_json::Result<Self> {
        let ask = Self::deserialize(&whole)?;
        Ok(Self { whole, ..ask })
    }

    /// The review and the policy, as the ledger and the config have them; `None` if they cannot be read.
    pub fn known(&self) -> Option<(&Review, &Policy)> {
        self.known
            .as_deref()
            .map(|(review, policy)| (review, policy))
    }

    /// The open thread with this id.
    pub fn thread(&self, id: &str) -> Option<&OpenThread> {
        self.open_threads
            .iter()
            .find(|thread| thread.id.as_str() == id)
    }

    /// True if a feedback that does not name the thread resolves it.
    pub fn feedback_resolves(&self, open: &OpenThread) -> bool {
        self.unnamed.by_feedback.contains(&open.id)
    }

    /// True if an lgtm that does not name the thread resolves it.
    pub fn lgtm_resolves(&self, open: &OpenThread) -> bool {
        self.unnamed.by_lgtm.contains(&open.id)
    }

    /// The kind of the round.
    pub fn round_kind(&self) -> RoundKind {
        if self.last_round {
            RoundKind::Last
        } else {
            RoundKind::Earlier
        }
    }

    /// The review's key.
    pub fn key(&self) -> ReviewKey {
        ReviewKey::new(
            self.repo.as_ref(),
            &self.pr,
            self.author.clone(),
            self.reviewer.clone(),
        )
    }

    /// The review from the ledger or, if that cannot be read, as far as the brief describes it.
    pub fn review(&self, now: DateTime<Utc>) -> Review {
        let known = self.known().map(|(review, _)| review.clone());
        known.unwrap_or_else(|| Review {
            generation: 1,
            rounds: Rounds::default(),
            granted: 0,
            first_round: self.round + 1 - self.round_of_generation,
            round: self.round,
            phase: Phase::Awaiting { due: now },
            since: now,
            closed_by: None,
            threads: self
                .open_threads
                .iter()
                .map(|open| (open.id.clone(), open.thread()))
                .collect(),
            commit: None,
            priority: message_schema::envelope::Priority::P2,
            asked: 1,
            given_back: Vec::new(),
            fixes: None,
            reassigned_to: None,
            failed: None,
            spent: message_schema::spend::Spend::default(),
            past_requests: Vec::new(),
            reading: ReadingState::default(),
        })
    }
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

/// Puts the request's commit in place of its abbreviation, which would pass no gate. Returns the note that the response
/// names another commit; a text that names none gets no note, because the check before writing refuses it.
pub fn name_whole_head(
    body: &mut Fields,
    head: Option<&CommitSha>,
) -> Option<(&'static str, String)> {
    let named = body.get("validated_head").and_then(Value::as_str)?;
    let (named, head) = (CommitSha::new(named).ok()?, head?);
    if !named.same_commit(head) {
        // The same code as the alert in the record, so that it is reported once.
        let note = format!("you reviewed {named}, but the request is for {head}");
        return Some(("other_commit", note));
    }
    if named.as_str().len() < head.as_str().len() {
        body.put("validated_head", head.as_str());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_abbreviation_of_the_head_is_written_as_the_head_and_another_commit_is_noted() {
        let head: CommitSha = "abc1234def".parse().expect("a commit");
        let named = |text: &str| {
            let mut body = Fields::default();
            body.put("validated_head", text);
            let note = name_whole_head(&mut body, Some(&head));
            let put = body.get("validated_head").and_then(Value::as_str);
            (put.map(str::to_owned), note.map(|(code, _)| code))
        };
        let written = |text: &str| Some(text.to_owned());
        for short in ["abc1234", "ABC1234"] {
            assert_eq!(named(short), (written("abc1234def"), None), "{short}");
        }
        for other in ["abc1234DEF", "abc1234def99", "no commit"] {
            assert_eq!(named(other), (written(other), None), "{other}");
        }
        assert_eq!(named("def1234"), (written("def1234"), Some("other_commit")));
    }
}
