//! The invariants of every step of a walk, whatever the rules answered. They compare the state before with the state
//! after, and ask the rules only for the reviewer's legal actions.

mod response;
mod step;

use message_schema::packet::Severity;
use review::{
    Addressed, Deadline, Event, EventRecord, Invocation, Phase, Policy, Profile, ReportedEvent,
    Review, ReviewKey, State, Thread, due, on_event,
};
use stateright::{Model, Property};

use crate::ids;
use crate::state::Node;

pub(crate) use self::response::rank;
pub(crate) use self::step::{Moved, step};

/// Defines every invariant once: its variant, its sentence in reports, and its property for the model checker. A macro,
/// because stateright takes functions, not closures over a variant.
macro_rules! invariants {
    ($($(#[$doc:meta])* $name:ident => $sentence:literal,)*) => {
        /// One invariant.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Invariant {
            $($(#[$doc])* $name,)*
        }

        impl Invariant {
            /// Every invariant, in the order of reports.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The sentence it is reported under.
            pub fn sentence(self) -> &'static str {
                match self {
                    $(Self::$name => $sentence,)*
                }
            }

            /// Returns one `always` property per invariant.
            pub(crate) fn properties<M: Model<State = Node>>() -> Vec<Property<M>> {
                vec![$(Property::always($sentence, |_, node: &Node| node.keeps(Self::$name)),)*]
            }
        }
    };
}

invariants! {
    /// The rank falls with every accepted message, attempt, take, turn and deadline.
    RankFalls => "the rank falls on every step",
    /// A refusal changes nothing, or lowers the rank.
    RefusalsAreInert => "a refusal changes nothing or lowers the rank",
    /// Every phase that is not final has a deadline that the daemon keeps and that leads to a final phase.
    DaemonGoesOn => "every state that is not final has a way on that the daemon owns",
    /// No message of an agent postpones a deadline.
    DeadlinesStand => "no agent moves a deadline away",
    /// Only the current reviewer answers, and a reassignment picks one of those who are left.
    CurrentReviewer => "only the current reviewer answers, and none is asked twice in a round",
    /// A round has at most one terminal response.
    OneResponse => "at most one terminal response per round",
    /// A feedback that opens a round for its author also gives it something to do.
    RoundsAsk => "a feedback that starts another round asks something",
    /// Accepted actions are legal, and the ranks of threads fall.
    LegalActions => "legal actions only, and each lowers its thread's rank",
    /// Counters outlive rounds, generations and reviewers.
    CountersStay => "no counter is ever reset",
    /// No approval passes a blocker that is open or held.
    NoBlockedApproval => "no approval over an open or held blocker",
    /// An approval is for the commit of its round, or for a newer one that an event named.
    RightCommit => "an approval is of its round's head or a newer one",
    /// Only a person approves a change to files that only a person may approve.
    PersonsPaths => "only a person approves what `human_paths` names",
    /// A finding is handed off at most once, and only after its pull request was merged.
    HandedOffOnce => "handed off at most once, never before the merge",
    /// Chains of fixes end: without a person, neither a fix nor an author with a task leads to a new task.
    HandoffsEnd => "handoffs end: no task comes by itself from a fix or from an author with a task",
    /// Two pull requests never get the milder rules for the same task.
    ClaimedOnce => "one pull request claims a task",
    /// The rules accept everything that is advised as a next step.
    AdviceHolds => "whatever is advised is accepted",
    /// A generation accepts no more messages than promised.
    FewMessages => "no more messages per generation than 5 n - 1",
    /// A repeated message is a duplicate and changes nothing.
    DuplicatesAreInert => "a duplicate changes nothing",
    /// The ledger read back after a crash gives the same state.
    CrashesLoseNothing => "a crash between commit and delivery loses nothing",
    /// A review ends approved, escalated or closed.
    KnownEnds => "every end is an approval, an escalation or a close",
}

impl Node {
    /// True if the step to this state did not break the invariant.
    fn keeps(&self, invariant: Invariant) -> bool {
        self.broken
            .as_ref()
            .is_none_or(|broken| broken.invariant != invariant)
    }
}

/// A broken invariant, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Broken {
    /// The invariant.
    pub(crate) invariant: Invariant,
    /// The evidence.
    pub(crate) why: String,
}

impl Broken {
    /// Makes a breach of this invariant.
    pub(crate) fn new(invariant: Invariant, why: impl Into<String>) -> Self {
        Self {
            invariant,
            why: why.into(),
        }
    }
}

/// Fails with a breach of the invariant if the claim is false.
fn holds(claim: bool, invariant: Invariant, why: impl FnOnce() -> String) -> Result<(), Broken> {
    if claim {
        Ok(())
    } else {
        Err(Broken::new(invariant, why()))
    }
}

/// Checks that the daemon can go on from this state even if every agent falls silent.
pub(crate) fn of_state(node: &Node, state: &State, policy: &Policy) -> Result<(), Broken> {
    for (key, tracked) in &node.reviews {
        let review = &tracked.review;
        let is_end = match review.phase {
            Phase::Approved(_) | Phase::Escalated(_) | Phase::Closed(_) => true,
            Phase::Awaiting { .. }
            | Phase::Reviewing(_)
            | Phase::Fixing { .. }
            | Phase::Addressed { .. } => false,
        };
        holds(
            is_end == review.phase.is_final(),
            Invariant::KnownEnds,
            || format!("{:?}", review.phase),
        )?;
        let armed = review.deadline();
        holds(armed.is_some() != is_end, Invariant::DaemonGoesOn, || {
            format!("{key}: {armed:?}")
        })?;
        for which in [Deadline::PickUp, Deadline::Runtime, Deadline::Author] {
            let early = match armed {
                Some((at, this)) if this == which => at - chrono::TimeDelta::seconds(1),
                Some(_) | None => crate::inputs::minute(1_000_000),
            };
            let event = Event::Deadline {
                review: key.clone(),
                which,
            };
            let told = ReportedEvent {
                order: None,
                event: &event,
            };
            let is_declined = matches!(
                on_event(state, policy, told, early, &mut ids()),
                EventRecord::Declined(_)
            );
            holds(is_declined, Invariant::DaemonGoesOn, || {
                format!("{key}: {which:?} fires although it is not due")
            })?;
        }
    }
    let first = node
        .reviews
        .values()
        .filter_map(|tracked| tracked.review.deadline())
        .min_by_key(|(at, _)| *at);
    let Some((at, _)) = first else { return Ok(()) };
    let fires = due(state, policy, at, &mut ids()).is_some();
    holds(fires, Invariant::DaemonGoesOn, || {
        format!("nothing is due at {at}, the deadline")
    })
}

/// True if the gate only advises on this review, by the protocol's definition.
fn is_advised(policy: &Policy, node: &Node, key: &ReviewKey, review: &Review) -> bool {
    let opener = node
        .pulls
        .get(&key.pr)
        .and_then(|pull| pull.author.as_deref())
        .unwrap_or(key.author.as_str());
    policy.profile == Profile::Advisory
        && review.fixes.is_none()
        && !policy.handoff.bots.contains(opener)
}

/// The threads that must prevent an approval.
fn blockers(review: &Review) -> impl Iterator<Item = &Thread> {
    review.threads.values().filter(|thread| {
        let is_bad = match thread.severity {
            Severity::P0 | Severity::P1 => true,
            Severity::P2 | Severity::P3 => thread.blocking,
        };
        is_bad && (thread.is_open() || thread.is_held())
    })
}

/// Returns the author's report before the open request or the next one.
pub(crate) fn report(phase: &Phase) -> Option<&Addressed> {
    match phase {
        Phase::Reviewing(Invocation { addressed, .. }) => addressed.as_ref(),
        Phase::Addressed { report, .. } => Some(report),
        Phase::Awaiting { .. }
        | Phase::Fixing { .. }
        | Phase::Approved(_)
        | Phase::Escalated(_)
        | Phase::Closed(_) => None,
    }
}

/// Like [`report`], but mutable.
pub(crate) fn report_mut(phase: &mut Phase) -> Option<&mut Addressed> {
    match phase {
        Phase::Reviewing(Invocation { addressed, .. }) => addressed.as_mut(),
        Phase::Addressed { report, .. } => Some(report),
        Phase::Awaiting { .. }
        | Phase::Fixing { .. }
        | Phase::Approved(_)
        | Phase::Escalated(_)
        | Phase::Closed(_) => None,
    }
}
