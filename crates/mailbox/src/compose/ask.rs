//! Reads the open requests to a reviewer: each brief, from the ledger or, if it cannot be read, from `packets/briefs/`.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use chrono::{DateTime, Utc};
use judgement::brief::{Brief, OpenThread};
use message_schema::id::{AgentName, CommitSha, FindingId, PrNumber};
use message_schema::limit::Rounds;
use message_schema::schema::Schema;
use message_schema::{ReadBody, coerce, parse, read_document};
use review::{
    Invocation, Phase, Policy, ReadingState, Review, ReviewKey, RoundKind, Silence, State,
    ThreadMode,
};
use serde::Deserialize;
use serde_json::Value;
use spool::Layout;
use workspace::config::{Config, ConfigError};

use super::message::Fields;
use super::packet::read;
use super::review_status::ReviewStatuses;
use crate::served::{self, Served};

/// One open request: its brief, and what the ledger and the agent's own notes add to it.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The brief.
    pub brief: Brief,
    /// The whole brief, as in its file.
    pub whole: Value,
    /// The files that `settled diff` has printed for the request.
    pub served: Option<Served>,
    /// The open threads that need no word.
    pub unnamed: ResolvedUnnamed,
    /// True if every action has to be written out.
    pub explicit: bool,
    /// True if the quality gate may only advise.
    pub advised: bool,
    /// The review itself and the policy, if the ledger can be read.
    known: Option<Box<(Review, Policy)>>,
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
    fn of(brief: &Brief, policy: &Policy, invocation: &Invocation) -> Self {
        let by = |silence: Silence<'_>| {
            let open = brief.open_threads.iter();
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
    Ok(of_files(root, me)?)
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
    let invocation = review.phase.invocation()?;
    Some(Ask {
        unnamed: ResolvedUnnamed::of(&brief, policy, invocation),
        known: Some(Box::new((review.clone(), policy.clone()))),
        served: served::read(root, &brief.reviewer, &brief.request),
        explicit: policy.threads == ThreadMode::Explicit,
        advised: state.is_advised(policy, key, review),
        brief,
        whole,
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
    let mut newest: BTreeMap<_, ((u32, u64), Brief, Value)> = BTreeMap::new();
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
        let Some((brief, whole)) =
            whole.and_then(|whole| Some((Brief::deserialize(&whole).ok()?, whole)))
        else {
            continue;
        };
        if brief.reviewer != *me {
            continue;
        }
        // A later brief of the same round has a number in its name.
        let number = name
            .rsplit('.')
            .nth(1)
            .and_then(|number| number.parse().ok())
            .unwrap_or(0);
        let age = (brief.round, number);
        let key = (brief.repo.clone(), brief.pr.clone(), brief.author.clone());
        if newest.get(&key).is_none_or(|(known, ..)| *known < age) {
            newest.insert(key, (age, brief, whole));
        }
    }
    let answered = answered(root, me);
    let is_open = |brief: &Brief| !answered.contains(&(brief.pr.to_canonical(), brief.round));
    let open = newest.into_values().filter(|(_, brief, _)| is_open(brief));
    Ok(open
        .map(|(_, brief, whole)| Ask {
            served: served::read(root, me, &brief.request),
            brief,
            whole,
            unnamed: ResolvedUnnamed::default(),
            explicit: false,
            advised: true,
            known: None,
        })
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
    /// The review and the policy, as the ledger and the config have them; `None` if they cannot be read.
    pub fn known(&self) -> Option<(&Review, &Policy)> {
        self.known
            .as_deref()
            .map(|(review, policy)| (review, policy))
    }

    /// The open thread with this id.
    pub fn thread(&self, id: &str) -> Option<&OpenThread> {
        self.brief
            .open_threads
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
        if self.brief.last_round {
            RoundKind::Last
        } else {
            RoundKind::Earlier
        }
    }

    /// The review's key.
    pub fn key(&self) -> ReviewKey {
        ReviewKey::new(
            self.brief.repo.as_ref(),
            &self.brief.pr,
            self.brief.author.clone(),
            self.brief.reviewer.clone(),
        )
    }

    /// The review from the ledger or, if that cannot be read, as far as the brief describes it.
    pub fn review(&self, now: DateTime<Utc>) -> Review {
        let known = self.known().map(|(review, _)| review.clone());
        known.unwrap_or_else(|| Review {
            generation: 1,
            rounds: Rounds::default(),
            granted: 0,
            first_round: self.brief.round + 1 - self.brief.round_of_generation,
            round: self.brief.round,
            phase: Phase::Awaiting { due: now },
            since: now,
            closed_by: None,
            threads: self
                .brief
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
