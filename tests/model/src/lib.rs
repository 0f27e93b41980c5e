//! Walks every reachable state of a review under the real rules: whatever agents, people, the pull request and the
//! clock do within the stated bounds, every review ends and no invariant breaks.
//!
//! A state is the review as `review::State` holds it. A step posts a message that was parsed and checked like any
//! other, or reports an event, and asks the daemon's `Judge` and `review::apply`. The rules have no second copy here:
//! `invariants` compares the state before with the state after.

mod advice;
mod bounds;
mod crash;
mod describe;
mod edge;
mod events;
mod inputs;
mod invariants;
mod moves;
mod report;
pub mod shared_log;
mod state;
mod thread;
mod walk;

pub use bounds::{Bounds, all, small};
pub use invariants::Invariant;
pub use report::{Report, run_all};
pub use thread::{Replies, alone, follow};

/// Sequential ids for the messages of one record; the walk does not keep them.
fn ids() -> impl FnMut() -> message_schema::id::MessageId {
    let mut number = 0_u8;
    move || {
        number += 1;
        message_schema::id::MessageId::new(format!("settled-{number}")).expect("an id")
    }
}
