//! Finds what a response leaves out before it is written, because the daemon charges an attempt for it: open threads
//! without a legal action, and anything that the quality gate would refuse.

use message_schema::Code;
use message_schema::line::escaped;
use message_schema::packet::{Action, CommandRun, Finding, Severity, Stance, Status};
use review::ObservedRun;
use serde::Serialize;

use super::ask::{Ask, OpenThread};

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
    fn is_resolved_by_silence(self, ask: &Ask, open: &OpenThread) -> bool {
        match self {
            Self::Feedback => ask.feedback_resolves(open),
            Self::Lgtm => ask.lgtm_resolves(open),
        }
    }
}

/// True if a feedback asks nothing of anybody, so that the daemon would refuse it. False if that is unknown here.
pub fn says_nothing(ask: &Ask, escalation: Option<&str>, findings: &[Finding]) -> bool {
    let resolves = |finding: &Finding| match finding.action {
        Some(action) => action == Action::Resolve,
        None => finding.status.is_settled(),
    };
    let may_be_empty = escalation.is_some() || ask.advised || ask.is_fix();
    !may_be_empty && ask.held_threads.is_empty() && findings.iter().all(resolves)
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

/// The reasons the quality gate would refuse an lgtm of this commit, one phrase each; none if the gate may only advise.
pub fn gate<'a>(
    ask: &Ask,
    dealt: impl Fn(&OpenThread) -> Dealt,
    new: impl Iterator<Item = &'a Finding>,
    (said, observed): (&[CommandRun], &[ObservedRun]),
) -> Vec<String> {
    if ask.advised {
        return Vec::new();
    }
    let held = ask.held_threads.iter().filter(|_| !ask.lgtm_possible);
    let mut broken: Vec<String> = held
        .map(|held| {
            format!(
                "{} blocks and is with a person: {}",
                escaped(held.id.as_str()),
                held.state
            )
        })
        .collect();
    let blockers = ask.open_threads.iter().filter(|open| open.blocking);
    broken.extend(blockers.filter(|open| stays(&dealt(open))).map(|open| {
        let id = escaped(open.id.as_str());
        format!("{id} blocks and is not resolved: --action {id}=resolve, or send feedback")
    }));
    broken.extend(
        new.filter(|finding| {
            finding.counts_as_blocking() && ask.thread(finding.id.as_str()).is_none()
        })
        .map(|finding| format!("{} is new and blocks", escaped(finding.id.as_str()))),
    );
    let required = ask.validation_commands.iter().map(String::as_str).collect();
    // Whether any command has to be recorded is for the daemon to say.
    let faults = review::validation_faults(said, observed, &required, false);
    broken.extend(faults.iter().map(|fault| {
        let what = escaped(&fault.message);
        format!("{what}: --ran COMMAND=pass once it passes, or send feedback")
    }));
    broken.dedup();
    broken
}

fn stays(dealt: &Dealt) -> bool {
    match dealt {
        Dealt::Act(action, _) => *action != Action::Resolve,
        Dealt::Restated(status) => !status.is_settled(),
        // Either `omissions` names the gap, or silence resolves the thread.
        Dealt::Unnamed
        | Dealt::Overlooked(_)
        | Dealt::Deferred
        | Dealt::Carried
        | Dealt::Unknown(_)
        | Dealt::Twice(_)
        | Dealt::Meaningless(_) => false,
    }
}
