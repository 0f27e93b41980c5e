//! Serves a workspace: runs the main loop and what wakes it, starts agents' commands, and reports to supervisors and
//! metrics. It knows no review rules, parses no arguments and prints nothing.

mod batch;
mod docket;
mod fairness;
pub mod gc;
mod growing;
mod held;
mod housekeeping;
pub mod invocation;
mod log_takes;
pub mod mailroom;
mod metrics;
pub mod schedule;
pub mod serve;
mod shared_ledger;
mod step;
pub mod submit_order;
mod supervisor;
mod sweeping;
mod unknown_sender;
pub mod validation;
