//! A step of a walk, as it is shown on the way to a breach, and what is counted on the way.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use message_schema::Code;
use review::{EscalationReason, Event, Phase};

use crate::inputs::Input;
use crate::state::Node;

/// One step: what moved, and where to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Edge {
    /// What moved.
    pub(crate) what: What,
    /// The state after it.
    pub(crate) next: Box<Node>,
}

/// What moves a review.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// A message.
    Posted(Arc<Input>),
    /// Anything else that is heard of.
    Heard(Event),
    /// The daemon delivers what it has committed.
    Delivered,
    /// The daemon dies between commit and delivery, and starts again.
    Crashed,
    /// Nothing: the state itself breaks an invariant.
    Looked,
}

impl PartialEq for What {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl std::fmt::Display for What {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Posted(input) => f.write_str(&input.label),
            Self::Heard(event) => f.write_str(&event.sentence()),
            Self::Delivered => f.write_str("delivered"),
            Self::Crashed => f.write_str("killed before delivery, started again"),
            Self::Looked => f.write_str("looked at"),
        }
    }
}

/// What was counted beside the states.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Messages accepted.
    pub(crate) accepted: AtomicU64,
    /// Messages refused.
    pub(crate) refused: AtomicU64,
    /// Events that moved something.
    pub(crate) happened: AtomicU64,
    /// Events that came at the wrong time.
    pub(crate) declined: AtomicU64,
    /// Steps into a generation, or a decision, beyond the bounds.
    pub(crate) cut: AtomicU64,
    /// Where reviews ended and what was refused.
    pub(crate) seen: Mutex<Seen>,
}

/// What was met on the way: a walk that never met an end says nothing about it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// In how many states a review has ended so.
    pub(crate) ends: BTreeMap<String, u64>,
    /// The codes of refusals.
    pub(crate) codes: BTreeSet<Code>,
    /// The most messages one generation has accepted.
    pub(crate) most: u32,
}

impl Tally {
    /// Notes what was met in one state.
    pub(crate) fn meet(&self, node: &Node, codes: BTreeSet<Code>) {
        let mut seen = self.seen.lock().expect("nobody panics with the lock");
        seen.codes.extend(codes);
        for standing in node.reviews.values() {
            seen.most = seen.most.max(standing.accepted);
            if let Some(end) = end(&standing.review.phase) {
                *seen.ends.entry(end).or_default() += 1;
            }
        }
    }
}

fn end(phase: &Phase) -> Option<String> {
    match phase {
        Phase::Approved(approval) if approval.by_rule => Some("approved by rule".to_owned()),
        Phase::Approved(approval) if approval.by_person.is_some() => {
            Some("approved by a person".to_owned())
        }
        Phase::Approved(_) => Some("approved".to_owned()),
        Phase::Escalated(EscalationReason::Reviewer(_)) => {
            Some("escalated reviewer's words".to_owned())
        }
        Phase::Escalated(reason) => Some(format!("escalated {reason}")),
        Phase::Closed(reason) => Some(format!("closed {}", reason.word())),
        Phase::Awaiting { .. }
        | Phase::Reviewing(_)
        | Phase::Fixing { .. }
        | Phase::Addressed { .. } => None,
    }
}
