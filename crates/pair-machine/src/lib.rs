//! A pair of commands, an author and perhaps a reviewer, that work and review in turn: the states of a run, the events
//! that move a pair through them, and the pair's records in the ledger. It knows no review.
//!
//! Begin with `machine` (the states and their transitions), then `record`.

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod machine;
mod record;
mod state;

pub use machine::{ITERATIONS, Pair, PairEvent, PairFailure, Signal, SignalWords};
pub use record::{
    PairId, PairMember, PairReport, PairSetup, PairStatus, PairStep, TASK_MAX, TRANSCRIPT_MAX,
    Transcript,
};
pub use state::{InvalidTransition, RunState};
