//! A notice: one thing that a person should know now, in the form that every channel carries.

use std::path::Path;

use chrono::{DateTime, Utc};
use message_schema::line::escaped;
use review::ReviewKey;
use serde::Serialize;
use spool::{Digest, Entry};

/// The version of the JSON form.
const VERSION: u32 = 1;

/// The kind of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A review is escalated: only a person can move it.
    Escalated,
    /// A reviewer escalated a thread to a person; the review goes on.
    ThreadHeld,
    /// The daemon no longer serves the workspace.
    DaemonStopped,
    /// A test of the channels.
    Test,
}

/// A notice. Fields are added, never changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Notice {
    schema_version: u32,
    /// The idempotency id: every attempt to send the same notice has the same one.
    pub id: String,
    /// The kind of event.
    pub kind: Kind,
    /// The time of the event.
    pub at: DateTime<Utc>,
    /// The record of the event, or the last one before the daemon stopped.
    pub seq: u64,
    /// The workspace.
    pub workspace: String,
    /// The pull request, if it concerns a review.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pr: Option<String>,
    /// The repository, if the review names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    /// The reviewer, if it concerns a review.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reviewer: Option<String>,
    /// The reason, in the ledger's word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The thread, if it concerns one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// The sentence for people.
    pub text: String,
    /// The command that shows more.
    pub command: String,
}

impl Kind {
    /// Returns the word for it in ids and JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Escalated => "escalated",
            Self::ThreadHeld => "thread_held",
            Self::DaemonStopped => "daemon_stopped",
            Self::Test => "test",
        }
    }
}

impl Notice {
    /// Makes the notice of a review that was escalated to a person.
    pub(crate) fn escalated(
        root: &Path,
        entry: &Entry,
        at: DateTime<Utc>,
        key: &ReviewKey,
        reason: &str,
    ) -> Self {
        // A reviewer may have written the reason.
        let reason = escaped(reason);
        let text = format!(
            "Pull request {} needs a person: {} reviews it, and it was escalated ({reason}).",
            key.pr, key.reviewer
        );
        Self {
            reason: Some(reason),
            ..Self::of_review(root, entry, at, key, Kind::Escalated, None, text)
        }
    }

    /// Makes the notice of a thread that was escalated to a person.
    pub(crate) fn held(
        root: &Path,
        entry: &Entry,
        at: DateTime<Utc>,
        key: &ReviewKey,
        thread: &str,
        word: &str,
    ) -> Self {
        let text = format!(
            "Pull request {} needs a person: {} handed over thread {thread}, {word}.",
            key.pr, key.reviewer
        );
        Self {
            reason: Some(word.to_owned()),
            ..Self::of_review(root, entry, at, key, Kind::ThreadHeld, Some(thread), text)
        }
    }

    fn of_review(
        root: &Path,
        entry: &Entry,
        at: DateTime<Utc>,
        key: &ReviewKey,
        kind: Kind,
        thread: Option<&str>,
        text: String,
    ) -> Self {
        let shown = format!("{}-{}", key.pr, key.reviewer);
        let what = thread.map_or(shown.clone(), |thread| format!("{shown}-{thread}"));
        Self {
            pr: Some(key.pr.to_string()),
            repo: key.repo.as_ref().map(ToString::to_string),
            reviewer: Some(key.reviewer.to_string()),
            thread: thread.map(str::to_owned),
            command: command(root, &format!("why {}", key.pr)),
            ..Self::bare(
                root,
                id(entry.prev, entry.seq, kind, &what),
                kind,
                at,
                entry.seq,
                text,
            )
        }
    }

    /// Makes the notice that the daemon stopped after record `seq`.
    pub(crate) fn stopped(root: &Path, seq: u64, since: DateTime<Utc>) -> Self {
        let id = format!(
            "{}-{seq}-{}",
            Kind::DaemonStopped.word(),
            since.timestamp_millis()
        );
        let text = format!(
            "The daemon stopped: no mail of {} is judged or delivered.",
            root.display()
        );
        Self {
            command: command(root, "doctor"),
            ..Self::bare(root, id, Kind::DaemonStopped, since, seq, text)
        }
    }

    /// Makes a notice that only tests the channels.
    pub(crate) fn test(root: &Path, name: &str, at: DateTime<Utc>) -> Self {
        let text = "This is a test: notices of this workspace arrive here.".to_owned();
        let id = format!("{}-{name}", Kind::Test.word());
        Self::bare(root, id, Kind::Test, at, 0, text)
    }

    fn bare(
        root: &Path,
        id: String,
        kind: Kind,
        at: DateTime<Utc>,
        seq: u64,
        text: String,
    ) -> Self {
        Self {
            schema_version: VERSION,
            id,
            kind,
            at,
            seq,
            workspace: root.display().to_string(),
            pr: None,
            repo: None,
            reviewer: None,
            reason: None,
            thread: None,
            text,
            command: command(root, "status"),
        }
    }

    /// Returns the JSON form, on one line.
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("a notice has no map with other keys than texts")
    }
}

/// An id that is the same for the same record of the same ledger, and for no other: it contains the digest of the
/// record before.
fn id(prev: Digest, seq: u64, kind: Kind, what: &str) -> String {
    let prev = prev.to_string();
    let prev = prev.rsplit(':').next().unwrap_or_default();
    let prev = prev.get(..16).unwrap_or(prev);
    format!("{prev}-{seq}-{}-{what}", kind.word())
}

fn command(root: &Path, words: &str) -> String {
    let root = workspace::shell::quoted(root.as_os_str());
    format!("settled {words} --root {root}")
}
