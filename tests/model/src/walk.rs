//! A walk as stateright sees it: states, steps, and one `always` property per invariant. `eventually` would not see
//! cycles, so termination is the invariant that the rank falls on every step.

use std::collections::BTreeSet;

use message_schema::id::{AgentName, FindingId, PrNumber};
use message_schema::packet::Stance;
use review::{
    Dialogue, HandoffState, Origin, Reopening, Resolution, ReviewKey, Routing, Task, TaskFinding,
    TaskId, Thread, ThreadState,
};
use stateright::{Model, Property};

use crate::bounds::Bounds;
use crate::describe::NAMES;
use crate::edge::{Edge, Tally};
use crate::inputs::{AUTHOR, Inputs, REVIEWER, THIRD, agent};
use crate::invariants::Invariant;
use crate::moves::Place;
use crate::state::Node;

/// A walk with its bounds.
#[derive(Debug)]
pub(crate) struct Walk {
    /// The bounds.
    pub(crate) bounds: Bounds,
    /// The counts along the way.
    pub(crate) tally: Tally,
    inputs: Inputs,
}

impl Walk {
    /// Makes a walk that has not begun.
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self {
            inputs: Inputs::new(&bounds),
            tally: Tally::default(),
            bounds,
        }
    }
}

impl Model for Walk {
    type State = Node;
    type Action = Edge;

    fn init_states(&self) -> Vec<Node> {
        let tasks = if self.bounds.fixes > 0 {
            vec![task(&self.bounds)]
        } else {
            Vec::new()
        };
        vec![Node::first(tasks)]
    }

    fn actions(&self, node: &Node, edges: &mut Vec<Edge>) {
        if node.broken.is_none() {
            Place::new(&self.bounds, &self.inputs, &self.tally, node).edges(edges);
        }
    }

    fn next_state(&self, _: &Node, edge: Edge) -> Option<Node> {
        Some(*edge.next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        Invariant::properties()
    }
}

/// The task named by a fix pull request: the findings of the first slots.
fn task(bounds: &Bounds) -> Task {
    let pr = PrNumber::new("85").expect("a number");
    let key = ReviewKey::new(None, &pr, agent(THIRD), agent(REVIEWER));
    let findings =
        bounds
            .slots
            .iter()
            .zip(NAMES)
            .take(bounds.fixes)
            .map(|(slot, (id, file, title))| TaskFinding {
                review: key.clone(),
                id: FindingId::new(id).expect("an id"),
                thread: Thread {
                    severity: slot.severity,
                    blocking: slot.blocking,
                    title: Some(title.to_owned()),
                    file: Some(file.parse().expect("a path")),
                    lines: None,
                    words: Some(title.to_owned()),
                    fingerprint: None,
                    opened_in: 1,
                    dialogue: Dialogue {
                        stance: Stance::SeeksChange,
                        round_count: 0,
                        replies: 0,
                    },
                    state: ThreadState::Open,
                    resolution: Resolution::default(),
                    aliases: BTreeSet::new(),
                    reopening: Reopening::Allowed,
                    routing: Routing::default(),
                    origin: Origin::Review,
                    handoff: HandoffState::ByPolicy,
                },
            });
    let target: AgentName = agent(AUTHOR);
    Task {
        id: TaskId::new(&pr, 1),
        target,
        repo: None,
        pr,
        file: None,
        findings: findings.collect(),
    }
}
