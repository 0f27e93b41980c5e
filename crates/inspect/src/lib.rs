//! The state of a mailroom, and why: reviews, threads, problems, the life of one message, verdicts and the state of the
//! installation. Reads only, except for `doctor --fix`, and never takes the lock.

pub mod dead_letter;
pub mod doctor;
pub mod filter;
pub mod ledger;
pub mod log;
pub mod outcome;
pub mod status;
pub mod trace;
pub mod unjudged;
pub mod verdict;
