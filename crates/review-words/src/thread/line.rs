//! A thread as records and snapshots write it. The form is fixed by the ledgers that exist, whatever the rules' own
//! type looks like.

use std::collections::BTreeSet;

use message_schema::id::{FindingId, RepoPath};
use message_schema::packet::{LineRange, Severity};
use serde::{Deserialize, Serialize};

use super::{Dialogue, HandoffState, Origin, Reopening, Resolution, Routing, Thread, ThreadState};
use crate::is_default;
use crate::key::TaskId;

/// A thread on its line: flat, without fields that are false or unknown.
#[derive(Serialize, Deserialize)]
pub(super) struct ThreadLine {
    severity: Severity,
    blocking: bool,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    file: Option<RepoPath>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    lines: Option<LineRange>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    words: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    fingerprint: Option<String>,
    opened_in: u32,
    dialogue: Dialogue,
    state: ThreadState,
    #[serde(skip_serializing_if = "is_default", default)]
    resolution: Resolution,
    #[serde(skip_serializing_if = "BTreeSet::is_empty", default)]
    aliases: BTreeSet<FindingId>,
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    reopened: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    by_person: bool,
    #[serde(skip_serializing_if = "is_default", default)]
    fate: HandoffLine,
}

/// The handoff part of a [`ThreadLine`].
#[derive(Default, PartialEq, Serialize, Deserialize)]
struct HandoffLine {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    category: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    recommendation: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    verify_run: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    queued: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    left: bool,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    task: Option<TaskId>,
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    carried: bool,
}

impl From<Thread> for ThreadLine {
    fn from(thread: Thread) -> Self {
        let (queued, task) = (thread.is_queued(), thread.task().cloned());
        let left = thread.handoff == HandoffState::LeftToPerson;
        let (reopened, by_person) = (thread.was_reopened(), thread.was_resolved_by_person());
        let Routing {
            category,
            target,
            recommendation,
        } = thread.routing;
        Self {
            severity: thread.severity,
            blocking: thread.blocking,
            title: thread.title,
            file: thread.file,
            lines: thread.lines,
            words: thread.words,
            fingerprint: thread.fingerprint,
            opened_in: thread.opened_in,
            dialogue: thread.dialogue,
            state: thread.state,
            resolution: thread.resolution,
            aliases: thread.aliases,
            reopened,
            by_person,
            fate: HandoffLine {
                category,
                target,
                recommendation,
                verify_run: thread.origin == Origin::VerifyRun,
                queued,
                left,
                task,
                carried: thread.origin == Origin::CarriedOver,
            },
        }
    }
}

impl From<ThreadLine> for Thread {
    fn from(line: ThreadLine) -> Self {
        let HandoffLine {
            category,
            target,
            recommendation,
            verify_run,
            queued,
            left,
            task,
            carried,
        } = line.fate;
        Self {
            severity: line.severity,
            blocking: line.blocking,
            title: line.title,
            file: line.file,
            lines: line.lines,
            words: line.words,
            fingerprint: line.fingerprint,
            opened_in: line.opened_in,
            dialogue: line.dialogue,
            state: line.state,
            resolution: line.resolution,
            aliases: line.aliases,
            reopening: match (line.by_person, line.reopened) {
                (true, used) => Reopening::Barred { used },
                (false, true) => Reopening::Used,
                (false, false) => Reopening::Allowed,
            },
            routing: Routing {
                category,
                target,
                recommendation,
            },
            // The rules never write two of these at once: a finding of a verify run is never handed off, so no fix
            // takes it over; and a finding that was handed off is no longer queued.
            origin: if verify_run {
                Origin::VerifyRun
            } else if carried {
                Origin::CarriedOver
            } else {
                Origin::Review
            },
            handoff: match task {
                Some(task) => HandoffState::HandedOff(task),
                None if queued => HandoffState::Queued,
                None if left => HandoffState::LeftToPerson,
                None => HandoffState::ByPolicy,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An earlier form of this type wrote the ledger's lines; they must stay as they are.
    #[test]
    fn a_written_thread_is_read_and_written_again_byte_for_byte() {
        let start = r#"{"severity":"P1","blocking":true,"title":"leak","opened_in":2,"dialogue":{"stance":"seeks_change","round_count":1,"replies":1},"state":"#;
        for rest in [
            r#""open"}"#,
            r#""resolved","reopened":true}"#,
            r#""resolved","by_person":true}"#,
            r#"{"held":"escalate"},"reopened":true,"by_person":true}"#,
            r#""open","fate":{"category":"bug","target":"gemini","recommendation":"close it","queued":true}}"#,
            r#""deferred","fate":{"verify_run":true}}"#,
            r#""deferred","fate":{"left":true}}"#,
            r#""open","fate":{"task":"handoff-pr86-1","carried":true}}"#,
            r#"{"held":"veto"},"fate":{"task":"handoff-pr86-1"}}"#,
        ] {
            let line = format!("{start}{rest}");
            let thread: Thread = serde_json::from_str(&line).expect("a thread");
            assert_eq!(serde_json::to_string(&thread).expect("JSON"), line);
        }
    }
}
