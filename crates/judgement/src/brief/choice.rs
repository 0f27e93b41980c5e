//! The choices that a response has for one open thread, and their schema. Threads with the same choices share one
//! definition, so a schema stays short however many threads are open.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use message_schema::packet::{Action, Stance};

use super::assignment::{Assignment, Legal};
use super::json::{TEXT, any_of, object, one_of, only};
use review::Thread;

/// The action on a thread that must not stay open.
const RESOLVE: &[Action] = &[Action::Resolve];

/// The actions on a thread that takes no more replies.
const NO_REPLY: &[Action] = &[Action::Resolve, Action::Veto, Action::Escalate];

/// The schema of every possible choice, by its name; made once.
static SCHEMAS: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
    let actions = [RESOLVE, NO_REPLY, Action::ALL];
    let legal = actions.iter().flat_map(|seeks_change| {
        actions.map(|accepts| Legal {
            seeks_change: (*seeks_change).into(),
            accepts: accepts.into(),
        })
    });
    let choices = legal.flat_map(|legal| {
        [true, false].map(|may_defer| Choice {
            legal: legal.clone(),
            may_defer,
        })
    });
    choices
        .map(|choice| (choice.name(), choice.schema()))
        .collect()
});

/// The choices that a response has on one thread.
pub(super) struct Choice {
    legal: Legal,
    /// True if a nit may defer the thread.
    may_defer: bool,
}

impl Choice {
    pub(super) fn in_feedback(thread: &Thread, assignment: &Assignment<'_>) -> Self {
        Self {
            legal: Legal::of(thread, assignment.round_kind),
            may_defer: false,
        }
    }

    /// In an lgtm only what the gate lets pass: a blocking thread must be resolved, any other must not stay open. If
    /// the gate only advises, every legal action is allowed.
    pub(super) fn in_lgtm(thread: &Thread, assignment: &Assignment<'_>) -> Self {
        let both = |actions: &'static [Action]| Legal {
            seeks_change: actions.into(),
            accepts: actions.into(),
        };
        let legal = match (assignment.advised, thread.blocking) {
            (true, _) => Legal::of(thread, assignment.round_kind),
            (false, true) => both(RESOLVE),
            (false, false) => both(NO_REPLY),
        };
        Self {
            legal,
            may_defer: !thread.blocking,
        }
    }

    /// Returns the name and the text of its definition; equal choices share one.
    pub(super) fn definition(&self) -> (&'static str, &'static str) {
        let (name, schema) = SCHEMAS
            .get_key_value(&self.name())
            .expect("every choice there is");
        (name, schema)
    }

    fn name(&self) -> String {
        let word = |actions: &[Action]| match actions.len() {
            1 => "resolve",
            3 => "no_reply",
            _ => "any",
        };
        let Legal {
            seeks_change,
            accepts,
        } = &self.legal;
        let (seeks_change, accepts) = (word(seeks_change), word(accepts));
        let name = if seeks_change == accepts {
            seeks_change.to_owned()
        } else {
            format!("seeks_change_{seeks_change}_accepts_{accepts}")
        };
        if self.may_defer {
            format!("{name}_or_defer")
        } else {
            name
        }
    }

    fn schema(&self) -> String {
        let Legal {
            seeks_change,
            accepts,
        } = &self.legal;
        let mut ways = if seeks_change == accepts {
            vec![acts(seeks_change, Stance::ALL)]
        } else {
            vec![
                acts(seeks_change, &[Stance::SeeksChange]),
                acts(accepts, &[Stance::Accepts]),
            ]
        };
        if self.may_defer {
            ways.push(object(&[
                ("action", &only("defer")),
                ("owner", TEXT),
                ("next_action", TEXT),
            ]));
        }
        any_of(&ways)
    }
}

fn acts(actions: &[Action], stances: &[Stance]) -> String {
    object(&[
        ("stance", &one_of(stances)),
        ("evidence", TEXT),
        ("action", &one_of(actions)),
    ])
}
