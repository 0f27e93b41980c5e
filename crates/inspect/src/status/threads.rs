//! The threads of a review, with everything that happened to them and the messages that did it.

use std::collections::BTreeMap;

use message_schema::id::FindingId;
use message_schema::packet::{Action, Stance};
use review::{Hold, Phase, REPLIES_MAX, Record, Review, ReviewKey, Thread, ThreadState};
use serde::Serialize;
use spool::Entry;
use workspace::index::{self, Unreadable};

use super::fix::{FixCommand, FixCommands, Spell};

/// The threads of one review. Fields are added, never changed.
#[derive(Debug, Serialize)]
pub struct Threads {
    /// The review's key, as people write it.
    pub review: String,
    /// Its phase.
    pub phase: &'static str,
    /// The round within its generation.
    pub round_of_generation: u32,
    /// The rounds this generation may take.
    pub rounds: u8,
    /// The threads: first those that prevent approval, then open ones, then the rest.
    pub threads: Vec<ThreadView>,
}

/// One thread. Fields are added, never changed.
#[derive(Debug, Serialize)]
pub struct ThreadView {
    /// The finding's id.
    pub id: String,
    /// Its severity, P0 to P3.
    pub severity: &'static str,
    /// True if it blocks an approval while it is open.
    pub blocking: bool,
    /// Its state.
    pub state: &'static str,
    /// `silence` if no response named the thread, which resolved it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved_by: Option<&'static str>,
    /// Its title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The file it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The lines it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<String>,
    /// The evidence in the reviewer's words, if the mailboxes of the asking agent have them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// The recommendation in the reviewer's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recommendation: Option<String>,
    /// The author's last report on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reported: Option<String>,
    /// The round that raised it.
    pub opened_in: u32,
    /// The stance the reviewer took last.
    pub stance: &'static str,
    /// The number of times in a row the reviewer took that stance.
    pub round_count: u8,
    /// The number of replies so far.
    pub replies: u8,
    /// The number of replies left.
    pub replies_left: u8,
    /// True if it was raised again after it was resolved.
    pub reopened: bool,
    /// The reviewer's legal actions now, by stance; empty while the move is somebody else's.
    pub legal: BTreeMap<&'static str, Vec<&'static str>>,
    /// The commands that a person may run on it.
    pub person: Vec<FixCommand>,
    /// The acts on it, oldest first.
    pub history: Vec<Act>,
}

impl ThreadView {
    /// Names its state in words for people.
    pub fn state_in_words(&self) -> &'static str {
        match self.state {
            "held (veto)" => "held: vetoed",
            "held (escalate)" => "held: escalated",
            "held (person)" => "held by a person",
            state => state,
        }
    }

    /// Describes the reviewer's stance, and how many times in a row it took it.
    pub fn stance_in_words(&self) -> String {
        let wants = match self.stance {
            "accepts" => "the reviewer accepts it",
            _ => "the reviewer wants a change",
        };
        match self.round_count {
            0 => wants.to_owned(),
            repeated => format!("{wants}, said {} times in a row", repeated + 1),
        }
    }
}

/// Something that happened to a thread. Fields are added, never changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Act {
    /// The ledger record's number.
    pub seq: u64,
    /// The time.
    pub at: String,
    /// The kind: `opened`, `reply`, `resolve`, `veto`, `escalate`, `defer`, `open_again`, `hold`, `changed`.
    pub act: &'static str,
    /// The round.
    pub round: u32,
    /// The actor: an agent, or an event.
    pub actor: String,
    /// The message that did it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The histories of threads, collected while the ledger is read.
#[derive(Debug, Default)]
pub struct Histories {
    reviews: BTreeMap<ReviewKey, BTreeMap<FindingId, (Thread, Vec<Act>)>>,
}

impl Histories {
    /// Makes a collector that follows these reviews and no other.
    pub fn of<'a>(keys: impl IntoIterator<Item = &'a ReviewKey>) -> Self {
        Self {
            reviews: keys
                .into_iter()
                .map(|key| (key.clone(), BTreeMap::new()))
                .collect(),
        }
    }

    /// Follows one more review from the next record on.
    pub fn follow(&mut self, key: &ReviewKey) {
        if !self.reviews.contains_key(key) {
            self.reviews.insert(key.clone(), BTreeMap::new());
        }
    }

    /// Takes in what an entry does to their threads.
    pub fn note(&mut self, entry: &Entry) -> Result<(), Unreadable> {
        let (record, _) = index::decision(entry)?;
        self.note_record(entry, &record);
        Ok(())
    }

    /// Like [`note`](Self::note), for an entry whose decision was already parsed.
    pub fn note_record(&mut self, entry: &Entry, record: &Record) {
        for step in record.steps() {
            let Some(threads) = self.reviews.get_mut(&step.review) else {
                continue;
            };
            for (id, thread) in &step.threads {
                let before = threads.get(id).map(|(before, _)| before);
                let act = Act {
                    seq: entry.seq,
                    at: entry.at.clone(),
                    act: act(before, thread),
                    round: step.round,
                    actor: actor(record),
                    message: entry.id.clone().filter(|_| entry.original.is_some()),
                };
                let (now, history) = threads
                    .entry(id.clone())
                    .or_insert_with(|| (thread.clone(), Vec::new()));
                *now = thread.clone();
                history.push(act);
            }
        }
    }

    /// Returns the current threads of a review with their histories. `name` is the name of the review on a person's
    /// command line.
    pub fn threads(
        &self,
        key: &ReviewKey,
        review: &Review,
        name: &str,
        spell: &Spell<'_>,
    ) -> Threads {
        let history = |id: &FindingId| {
            let known = self.reviews.get(key).and_then(|threads| threads.get(id));
            known
                .map(|(_, history)| history.clone())
                .unwrap_or_default()
        };
        let mut all: Vec<(&FindingId, &Thread)> = review.threads.iter().collect();
        all.sort_by_key(|(id, thread)| {
            (
                !thread.blocks_approval(),
                !thread.is_open(),
                thread.severity,
                *id,
            )
        });
        let commands = FixCommands(spell);
        let view = |(id, thread): (&FindingId, &Thread)| ThreadView {
            id: id.to_string(),
            severity: thread.severity.as_str(),
            blocking: thread.blocking,
            state: thread.state.word(),
            resolved_by: thread.is_resolved_by_silence().then_some("silence"),
            title: thread.title.clone(),
            file: thread.file.as_ref().map(ToString::to_string),
            lines: thread.lines.map(String::from),
            evidence: None,
            recommendation: None,
            reported: None,
            opened_in: thread.opened_in,
            stance: thread.dialogue.stance.as_str(),
            round_count: thread.dialogue.round_count,
            replies: thread.dialogue.replies,
            replies_left: REPLIES_MAX.saturating_sub(thread.dialogue.replies),
            reopened: thread.was_reopened(),
            legal: legal(review, thread),
            person: persons(review, id, thread)
                .map(|(word, effect)| {
                    commands.person(&format!("thread {word} {name} {id}"), effect)
                })
                .collect(),
            history: history(id),
        };
        Threads {
            review: key.to_string(),
            phase: review.phase.word(),
            round_of_generation: review.round_of_generation(),
            rounds: review.rounds.get() + review.granted,
            threads: all.into_iter().map(view).collect(),
        }
    }
}

/// Describes how a thread prevents an approval.
pub(super) fn in_the_way(id: &FindingId, thread: &Thread) -> String {
    let title = thread
        .title
        .as_ref()
        .map_or_else(String::new, |title| format!(": {title}"));
    let severity = thread.severity;
    match thread.state {
        ThreadState::Held(_) => {
            format!("{id} ({severity}) is with a person, so no lgtm passes{title}")
        }
        ThreadState::Open if thread.blocking => {
            format!("{id} ({severity}) is open and blocks{title}")
        }
        ThreadState::Open | ThreadState::Resolved | ThreadState::Deferred => {
            format!("{id} ({severity}) is open and needs a nit or an action{title}")
        }
    }
}

fn legal(review: &Review, thread: &Thread) -> BTreeMap<&'static str, Vec<&'static str>> {
    let is_reviewers = match &review.phase {
        Phase::Reviewing(_) => thread.is_open(),
        Phase::Awaiting { .. }
        | Phase::Fixing { .. }
        | Phase::Addressed { .. }
        | Phase::Approved(_)
        | Phase::Escalated(_)
        | Phase::Closed(_) => false,
    };
    if !is_reviewers {
        return BTreeMap::new();
    }
    let round_kind = review.round_kind();
    let words = |stance| {
        thread
            .legal_actions(stance, round_kind)
            .iter()
            .copied()
            .map(Action::as_str)
            .collect()
    };
    Stance::ALL
        .iter()
        .map(|stance| (stance.as_str(), words(*stance)))
        .collect()
}

/// The words of `settled thread` for the decisions that a person may take about a thread, with their effects.
fn persons(
    review: &Review,
    id: &FindingId,
    thread: &Thread,
) -> impl Iterator<Item = (&'static str, &'static str)> {
    // Nobody queues what the agents still discuss.
    let is_for_later = thread.state == ThreadState::Deferred || thread.is_left_to_person();
    [
        ("resolve", "done with", review::Act::Resolve(id.clone())),
        (
            "wont-fix",
            "will not be fixed",
            review::Act::WontFix(id.clone()),
        ),
        ("hold", "reserved for people", review::Act::Hold(id.clone())),
        (
            "release",
            "back to the agents",
            review::Act::Release(id.clone()),
        ),
        (
            "queue",
            "handed off at the merge",
            review::Act::Queue(id.clone()),
        ),
    ]
    .into_iter()
    .filter(move |(word, _, act)| review.allows(act) && (*word != "queue" || is_for_later))
    .map(|(word, effect, _)| (word, effect))
}

fn actor(record: &Record) -> String {
    match record {
        Record::Judged(judgement) => judgement.sender().to_string(),
        Record::Event(record) => record.event().sentence(),
    }
}

/// The name of the act that turned one state into the other.
fn act(before: Option<&Thread>, after: &Thread) -> &'static str {
    let Some(before) = before else {
        return "opened";
    };
    match (before.state, after.state) {
        (ThreadState::Open, ThreadState::Open)
            if after.dialogue.replies > before.dialogue.replies =>
        {
            "reply"
        }
        (
            ThreadState::Open | ThreadState::Held(_) | ThreadState::Deferred,
            ThreadState::Resolved,
        ) => "resolve",
        (
            ThreadState::Resolved | ThreadState::Held(_) | ThreadState::Deferred,
            ThreadState::Open,
        ) => "open_again",
        (
            ThreadState::Open | ThreadState::Resolved | ThreadState::Deferred,
            ThreadState::Held(how),
        ) => match how {
            Hold::Veto => "veto",
            Hold::Escalate => "escalate",
            Hold::Person => "hold",
        },
        (
            ThreadState::Open | ThreadState::Resolved | ThreadState::Held(_),
            ThreadState::Deferred,
        ) => "defer",
        (ThreadState::Open, ThreadState::Open)
        | (ThreadState::Resolved, ThreadState::Resolved)
        | (ThreadState::Held(_), ThreadState::Held(_))
        | (ThreadState::Deferred, ThreadState::Deferred) => "changed",
    }
}
