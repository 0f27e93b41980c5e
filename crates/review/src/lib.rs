//! What happens next in a review? Pure rules on values: the state, a checked message and the time
//! go in; a decision or a refusal comes out.
//!
//! ```text
//! decide(state, policy, posted, now) -> Decision | Refusal      looks and answers, changes nothing
//! refuse(state, policy, refused, now) -> Record                 what a refusal costs
//! apply(state, record, at)                                      changes, cannot fail
//! ```
//!
//! The ledger keeps the records; folding them through [`apply`] rebuilds the state. Nothing here
//! reads a clock, a disk or the environment, and nothing is random.

mod apply;
mod decide;
mod duplicate;
mod gate;
mod key;
mod phase;
mod policy;
mod post;
mod rank;
mod record;
mod refusal;
mod response;
mod reviews;
mod state;
mod thread;

pub use apply::apply;
pub use decide::{Decision, Posted, decide, sender_fault};
pub use gate::Clause;
pub use key::ReviewKey;
pub use phase::{Addressed, Approval, Closer, EscalationReason, Invocation, Phase, Side};
pub use policy::{GatePolicy, MessagesPerHour, Policy, Role, ThreadMode};
pub use post::{Refused, refuse};
pub use rank::{Rank, messages_max};
pub use record::{Accepted, AttemptSpent, ContentDigest, Generation, Notice, Record, Step};
pub use refusal::{Fault, Refusal};
pub use state::{ATTEMPTS, GENERATIONS_MAX, Review, SUPERSESSIONS, State};
pub use thread::{Dialogue, Hold, REPLIES_MAX, STANCE_HELD_MAX, Thread, ThreadState};
