//! A walk as stateright sees it: states, steps, and one `always` for each law. `eventually` is not
//! used, because it does not see cycles: that the rank falls on every step is what ends them.

use message_schema::id::{AgentName, FindingId, PrNumber};
use message_schema::packet::Stance;
use review::{Dialogue, Fate, ReviewKey, Task, TaskFinding, TaskId, Thread, ThreadState};
use stateright::{Model, Property};

use crate::bounds::Bounds;
use crate::deck::{AUTHOR, Deck, REVIEWER, THIRD, agent};
use crate::edge::{Edge, Tally};
use crate::law::Law;
use crate::moves::Place;
use crate::node::Node;
use crate::say::NAMES;

/// A walk within its bounds.
#[derive(Debug)]
pub(crate) struct Walk {
    /// The bounds.
    pub(crate) bounds: Bounds,
    /// What is counted on the way.
    pub(crate) tally: Tally,
    deck: Deck,
}

impl Walk {
    /// Nothing is walked yet.
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self {
            deck: Deck::new(&bounds),
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
            Place::new(&self.bounds, &self.deck, &self.tally, node).edges(edges);
        }
    }

    fn next_state(&self, _: &Node, edge: Edge) -> Option<Node> {
        Some(*edge.next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        // stateright takes a function, not a closure: one for each law.
        fn unless(node: &Node, law: Law) -> bool {
            node.broken.as_ref().is_none_or(|broken| broken.law != law)
        }
        macro_rules! always {
            ($($law:ident),*) => {
                vec![$(Property::always(Law::$law.sentence(), |_, node| unless(node, Law::$law))),*]
            };
        }
        always![
            RankFalls,
            RefusalsAreInert,
            DaemonGoesOn,
            DeadlinesStand,
            OneResponse,
            LegalActions,
            CountersStay,
            NoBlockedApproval,
            HandedOffOnce,
            FewMessages,
            DuplicatesAreInert,
            CrashesLoseNothing,
            KnownEnds
        ]
    }
}

/// The task a fix pull request names: the first slots' findings.
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
                    reopened: false,
                    by_person: false,
                    fate: Fate::default(),
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
