//! A step of a walk, as it is shown on the way to a breach, and what is counted on the way.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use review::Event;

use crate::deck::Card;
use crate::node::Node;

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
    Posted(Arc<Card>),
    /// Anything else that is heard of.
    Heard(Event),
    /// The daemon delivers what it has committed.
    Delivered,
    /// The daemon dies between commit and delivery, and starts again.
    Crashed,
    /// Nothing: the state itself breaks a law.
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
            Self::Posted(card) => f.write_str(&card.label),
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
}
