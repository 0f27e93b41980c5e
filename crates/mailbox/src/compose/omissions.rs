//! Finds what a response leaves out before it is written, because the daemon charges an attempt for it: open threads
//! without a legal action. Also words what the rules find in it for the command line.

use judgement::brief::OpenThread;
use message_schema::Code;
use message_schema::envelope::{MessageType, ReviewKind};
use message_schema::line::escaped;
use message_schema::packet::{Action, Severity, Stance, Status};
use review::{Clause, Fault};
use serde::Serialize;
use serde_json::{Map, Value};
use validate_message::nearest;

use super::ask::Ask;
use super::words_from::WordsFrom;

/// An open thread that a response does not deal with legally.
#[derive(Clone, Debug, Serialize)]
pub struct Omission {
    /// The code of the daemon's refusal.
    pub code: Code,
    /// The thread.
    pub id: String,
    /// The problem, in one phrase.
    pub what: String,
    /// The legal actions; in an lgtm, `defer` leaves the thread for later as a nit.
    pub legal: Vec<String>,
}

impl Omission {
    /// The problem on one line, with the legal actions.
    pub fn line(&self) -> String {
        let legal = if self.legal.is_empty() {
            String::new()
        } else {
            format!("; legal: {}", self.legal.join(", "))
        };
        format!("{}: {}{legal}", escaped(&self.id), self.what)
    }
}

/// The new findings without a title, each with its fix. A packet may have them, but no reader would know what to fix.
pub fn untitled(ask: &Ask, findings: &[Map<String, Value>], origin: WordsFrom<'_>) -> Vec<String> {
    let is_untitled = |finding: &Map<String, Value>| {
        let id = finding.get("id").and_then(Value::as_str);
        let title = finding.get("title").and_then(Value::as_str);
        id.is_none_or(|id| ask.thread(id).is_none())
            && title.is_none_or(|title| title.trim().is_empty())
    };
    let line = |(n, finding): (usize, &Map<String, Value>)| {
        let place = origin.place_of(&format!("findings[{n}]"));
        let others = finding.keys().map(String::as_str);
        match nearest("title", others.filter(|key| *key != "title")) {
            Some(slip) => format!(
                "{place}finding_invalid: the finding has no `title`, and `{}` is in its place\n    fix: rename it to `title`",
                escaped(slip)
            ),
            None => format!(
                "{place}finding_invalid: the finding has no `title`\n    fix: add `title`, the problem in one line"
            ),
        }
    };
    let all = findings.iter().enumerate();
    all.filter(|(_, finding)| is_untitled(finding))
        .map(line)
        .collect()
}

/// The treatment of an open thread in a response.
#[derive(Clone, Debug)]
pub enum Dealt {
    /// It does not name the thread.
    Unnamed,
    /// An action, with a stance if one was given.
    Act(Action, Option<Stance>),
    /// A status alone, in a plain packet.
    Restated(Status),
    /// A nit covers it.
    Deferred,
    /// It stays open, because the reviewer says that its budget is spent.
    Carried,
    /// A word that is no action.
    Unknown(String),
    /// Something is given more than once: the action, or a field of it.
    Twice(&'static str),
    /// This field is given, but has no effect beside the action.
    Meaningless(String),
    /// It does not name the thread, but raises this finding, which looks like it.
    Overlooked(String),
}

/// The kind of terminal response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseKind {
    /// Findings.
    Feedback,
    /// Approved.
    Lgtm,
}

impl ResponseKind {
    /// The type of the message.
    pub fn message_type(self) -> MessageType {
        MessageType::Review(match self {
            Self::Feedback => ReviewKind::Feedback,
            Self::Lgtm => ReviewKind::Lgtm,
        })
    }

    fn is_resolved_by_silence(self, ask: &Ask, open: &OpenThread) -> bool {
        match self {
            Self::Feedback => ask.feedback_resolves(open),
            Self::Lgtm => ask.lgtm_resolves(open),
        }
    }
}

/// Finds the problem with how a response deals with an open thread, if there is one.
pub fn gap(ask: &Ask, open: &OpenThread, dealt: &Dealt, verdict: ResponseKind) -> Option<Omission> {
    let gives = |code, what: String, legal: &[Action]| {
        // No gate passes an lgtm that leaves a blocker open.
        let is_possible = |action: &&Action| {
            verdict == ResponseKind::Feedback || !open.blocking || **action == Action::Resolve
        };
        let legal = legal.iter().filter(is_possible);
        let mut legal: Vec<String> = legal.map(ToString::to_string).collect();
        if verdict == ResponseKind::Lgtm && !open.blocking {
            legal.push("defer".to_owned());
        }
        Some(Omission {
            code,
            id: open.id.to_string(),
            what,
            legal,
        })
    };
    let legal = |stance| open.legal(stance);
    match dealt {
        Dealt::Unnamed if verdict.is_resolved_by_silence(ask, open) => None,
        Dealt::Unnamed => gives(
            Code::ActionMissing,
            "it needs an action".to_owned(),
            legal(None),
        ),
        Dealt::Overlooked(other) => gives(
            Code::ActionMissing,
            format!("`{}` looks like it, so it needs an action", escaped(other)),
            legal(None),
        ),
        Dealt::Carried => None,
        Dealt::Act(action, stance) if legal(*stance).contains(action) => None,
        Dealt::Act(action, stance) => gives(
            Code::ActionIllegal,
            illegal(ask, open, *action),
            legal(*stance),
        ),
        Dealt::Restated(_) if ask.explicit => gives(
            Code::ActionMissing,
            "a status is not an action here".to_owned(),
            legal(None),
        ),
        Dealt::Restated(Status::WontFix) if open.severity <= Severity::P1 => gives(
            Code::ActionIllegal,
            "only a person may give wont_fix on a P0 or P1".to_owned(),
            legal(None),
        ),
        Dealt::Restated(status) => {
            let action = ask.round_kind().inferred_action(*status);
            if legal(None).contains(&action) {
                return None;
            }
            gives(Code::ActionIllegal, illegal(ask, open, action), legal(None))
        }
        Dealt::Deferred if verdict == ResponseKind::Lgtm && !open.blocking => None,
        Dealt::Deferred => gives(
            Code::ActionIllegal,
            match verdict {
                ResponseKind::Feedback => "only an lgtm defers".to_owned(),
                ResponseKind::Lgtm => {
                    "it blocks, so it cannot be deferred: resolve it, or send feedback".to_owned()
                }
            },
            legal(None),
        ),
        Dealt::Unknown(word) => gives(
            Code::ActionUnknown,
            format!("`{}` is not an action", escaped(word)),
            legal(None),
        ),
        Dealt::Twice(what) => gives(
            Code::ActionMultiple,
            format!("its {what} is given more than once"),
            legal(None),
        ),
        Dealt::Meaningless(key) => gives(
            Code::ActionIllegal,
            format!("`{}` has no effect beside its action", escaped(key)),
            legal(None),
        ),
    }
}

/// Explains in one phrase why an action is not legal on a thread.
pub fn illegal(ask: &Ask, open: &OpenThread, action: Action) -> String {
    let why = open.thread().why_no_reply(ask.round_kind());
    format!("{action} is not legal now: {why}")
}

/// Words the faults that the quality gate would find in an lgtm for the command line, one phrase each: threads with a
/// person first, then the other blockers, then the commands.
pub fn gate(ask: &Ask, faults: &[Fault]) -> Vec<String> {
    let mut phrases: Vec<(u8, String)> = faults.iter().map(|fault| phrase(ask, fault)).collect();
    phrases.sort_by_key(|(rank, _)| *rank);
    let mut broken: Vec<String> = phrases.into_iter().map(|(_, phrase)| phrase).collect();
    broken.dedup();
    broken
}

/// A fault of the gate with its remedy as an option of the command, and its rank among the others.
fn phrase(ask: &Ask, fault: &Fault) -> (u8, String) {
    let (what, id) = (escaped(&fault.message), fault.thread.as_ref());
    let thread = id.map(|id| (id, escaped(id.as_str())));
    match (fault.clause, thread) {
        (Some(Clause::P0 | Clause::Blocking), Some((id, shown))) => {
            let held = ask.brief.held_threads.iter().find(|held| held.id == *id);
            match (held, ask.thread(id.as_str())) {
                (Some(held), _) => (
                    0,
                    format!("{shown} blocks and is with a person: {}", held.state),
                ),
                (None, Some(_)) => (
                    1,
                    format!(
                        "{shown} blocks and is not resolved: --action {shown}=resolve, or send feedback"
                    ),
                ),
                (None, None) => (2, format!("{shown} is new and blocks")),
            }
        }
        (Some(Clause::Nits), Some((_, shown))) => (
            1,
            format!("{shown} is open and no nit covers it: --action {shown}=defer, or resolve it"),
        ),
        (Some(Clause::Validation), _) => (
            3,
            format!("{what}: --ran COMMAND=pass once it passes, or send feedback"),
        ),
        (Some(Clause::P0 | Clause::Blocking | Clause::Nits), None)
        | (
            Some(
                Clause::Contradiction
                | Clause::Evidence
                | Clause::ReviewerOtherVendor
                | Clause::HumanPaths
                | Clause::Head,
            )
            | None,
            _,
        ) => (3, what),
    }
}
