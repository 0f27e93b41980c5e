//! A step of a walk, as shown on the way to a breach, and the counts along the way.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use message_schema::Code;
use review::{EscalationReason, Event, Phase};

use crate::inputs::Input;
use crate::state::Node;

/// One step: the cause and the next state.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Edge {
    /// The cause.
    pub(crate) what: What,
    /// The state after it.
    pub(crate) next: Box<Node>,
}

/// The cause of a step.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// A message.
    Posted(Arc<Input>),
    /// An event.
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

/// The counts besides the states.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// The number of accepted messages.
    pub(crate) accepted: AtomicU64,
    /// The number of refused messages.
    pub(crate) refused: AtomicU64,
    /// The number of events that happened.
    pub(crate) happened: AtomicU64,
    /// The number of declined events.
    pub(crate) declined: AtomicU64,
    /// The number of steps to a generation or decision beyond the bounds.
    pub(crate) cut: AtomicU64,
    /// The ends of reviews, and the codes of refusals.
    pub(crate) seen: Mutex<Seen>,
}

/// The ends and codes met along the way: a walk that never meets an end proves nothing about it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// The number of states with each end of a review.
    pub(crate) ends: BTreeMap<String, u64>,
    /// The codes of refusals.
    pub(crate) codes: BTreeSet<Code>,
    /// The most messages one generation has accepted.
    pub(crate) most: u32,
}

impl Tally {
    /// Notes the ends and codes of one state.
    pub(crate) fn meet(&self, node: &Node, codes: BTreeSet<Code>) {
        let mut seen = self.seen.lock().expect("nobody panics with the lock");
        seen.codes.extend(codes);
        for tracked in node.reviews.values() {
            seen.most = seen.most.max(tracked.accepted);
            if let Some(end) = end(&tracked.review.phase) {
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
