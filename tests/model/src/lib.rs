//! Every reachable state of a review, walked on the real rules: whatever agents, people, the pull
//! request and the clock do, within bounds that are stated, every review ends and no invariant is broken.
//!
//! A state is the review as `review::State` holds it; a step posts a message that was read and
//! checked like any other, or reports an event, and asks the daemon's `Judge` and
//! `review::apply`. There is no second copy of the rules here: `invariants` says what must be true between the
//! state before and the state after.

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

/// Fresh ids for the letters of one record; the walk forgets them with the mail.
fn ids() -> impl FnMut() -> message_schema::id::MessageId {
    let mut number = 0_u8;
    move || {
        number += 1;
        message_schema::id::MessageId::new(format!("settled-{number}")).expect("an id")
    }
}
