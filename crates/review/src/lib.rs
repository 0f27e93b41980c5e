//! What happens next in a review? Pure rules on values: the state, a checked message and the time
//! go in; a decision or a refusal comes out.
//!
//! ```text
//! decide(state, policy, posted, now) -> Decision | Refusal      looks and answers, changes nothing
//! refuse(state, policy, refused, now) -> Record                 what a refusal costs
//! hear(state, policy, told, now) -> Record                      what an event does: a person, a pull request, a turn
//! due(state, now) -> Option<Record>                             what the daemon does when a deadline has come
//! brief(state, policy, key, now) -> Option<Brief>               what a reviewer is told with its request
//! apply(state, record, at)                                      changes, cannot fail
//! ```
//!
//! [`threads`] and [`gate`] judge one part by itself, for whoever wants to try it out.
//!
//! The ledger keeps the records; folding them through [`apply`] rebuilds the state. Nothing here
//! reads a clock, a disk or the environment, and nothing is random.

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod alone;
mod apply;
mod brief;
mod deadline;
mod decide;
mod duplicate;
mod event;
mod gate;
mod handoff;
mod hear;
mod keep;
mod key;
mod pair;
mod pairs;
mod phase;
mod policy;
mod post;
mod pulls;
mod rank;
mod record;
mod refusal;
mod response;
mod reviews;
mod run;
mod state;
mod thread;
mod volume;

pub use alone::{Cycle, gate, threads};
pub use apply::apply;
pub use brief::{
    BRIEF_VERSION, Brief, Budget, Deal, FeedbackAnswer, HeldThread, Legal, LgtmAnswer, NewFinding,
    NitAnswer, NotAResponse, OpenThread, StructuredResponse, ThreadAnswer, Verdict, Written, brief,
};
pub use deadline::{Deadline, patience};
pub use decide::{Decision, Posted, decide, repeated, sender_fault};
pub use event::{Act, Event, PersonsDecision, PullAction, PullEvent, Which};
pub use gate::Clause;
pub use handoff::{Handoff, Left, NoHandoff, Task, TaskFinding, TaskId};
pub use hear::{Told, due, hear};
pub use keep::{NotAPiece, Restoring};
pub use key::ReviewKey;
pub use pair::{ITERATIONS, Pair, PairEvent, PairFailure, Signal, SignalWords};
pub use pairs::{
    OpenPair, PairId, PairMember, PairNews, PairSetup, PairStanding, PairStep, TASK_MAX,
    TRANSCRIPT_MAX, Transcript,
};
pub use phase::{
    Addressed, Approval, CloseReason, Closer, EscalationReason, Invocation, Phase, STARTS_MAX, Side,
};
pub use policy::{
    FilesPerHour, GatePolicy, HandoffMode, HandoffPolicy, MessagesPerHour, OpenReviews, Policy,
    Profile, Role, RuntimeClock, ThreadMode,
};
pub use post::{Refused, refuse};
pub use pulls::Pull;
pub use rank::{Rank, messages_max};
pub use record::{
    Accepted, ContentDigest, Cost, Generation, Happened, Letter, Notice, Record, Says, Step,
};
pub use refusal::{Costs, Fault, Refusal};
pub use run::{InvalidTransition, Run};
pub use state::{
    ATTEMPTS, FIX_REVIEWS_MAX, GENERATIONS_MAX, GIVEN_BACK_PER_DAY, Review, SUPERSESSIONS, State,
};
pub use thread::{Dialogue, Fate, Hold, REPLIES_MAX, STANCE_HELD_MAX, Thread, ThreadState};
