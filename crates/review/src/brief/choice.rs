//! What may be done with one open thread in a response, and its schema. Threads with the same
//! choices share one definition, so a schema stays short however many threads are open.

use message_schema::packet::{Action, Stance};
use serde_json::{Value, json};

use super::schema::object;
use super::{Asked, Legal};
use crate::thread::Thread;

/// The actions of a thread nobody replies to any more.
const NO_REPLY: &[Action] = &[Action::Resolve, Action::Veto, Action::Escalate];

/// The choices a response has on one thread.
pub(super) struct Choice {
    legal: Legal,
    /// Whether it may be left for later under a nit.
    may_defer: bool,
}

impl Choice {
    pub(super) fn in_feedback(thread: &Thread, asked: &Asked<'_>) -> Self {
        Self { legal: Legal::of(thread, asked.last_round), may_defer: false }
    }

    /// In an lgtm only what the gate lets pass: a blocking thread must be resolved, any other must
    /// not stay open. Where the gate only advises, everything legal goes.
    pub(super) fn in_lgtm(thread: &Thread, asked: &Asked<'_>) -> Self {
        let both = |actions| Legal { seeks_change: actions, accepts: actions };
        let legal = match (asked.advised, thread.blocking) {
            (true, _) => Legal::of(thread, asked.last_round),
            (false, true) => both(&[Action::Resolve]),
            (false, false) => both(NO_REPLY),
        };
        Self { legal, may_defer: !thread.blocking }
    }

    /// The name of its definition: the same for the same choices.
    pub(super) fn name(&self) -> String {
        let Legal { seeks_change, accepts } = self.legal;
        let replies = [seeks_change, accepts].map(|actions| actions.contains(&Action::Reply));
        let name = match replies {
            [false, false] if seeks_change.len() == 1 => "resolve",
            [false, false] => "no_reply",
            [true, false] => "reply_if_seeks_change",
            [false, true] => "reply_if_accepts",
            [true, true] => "any_action",
        };
        if self.may_defer { format!("{name}_or_defer") } else { name.to_owned() }
    }

    pub(super) fn schema(&self) -> Value {
        let Legal { seeks_change, accepts } = self.legal;
        let mut ways = if seeks_change == accepts {
            vec![acts(seeks_change, Stance::ALL)]
        } else {
            vec![acts(seeks_change, &[Stance::SeeksChange]), acts(accepts, &[Stance::Accepts])]
        };
        if self.may_defer {
            ways.push(object(json!({
                "action": { "type": "string", "const": "defer" },
                "owner": { "type": "string" },
                "next_action": { "type": "string" },
            })));
        }
        match ways.len() {
            1 => ways.remove(0),
            _ => json!({ "anyOf": ways }),
        }
    }
}

fn acts(actions: &[Action], stances: &[Stance]) -> Value {
    object(json!({
        "action": { "type": "string", "enum": actions },
        "stance": { "type": "string", "enum": stances },
        "evidence": { "type": "string" },
    }))
}
