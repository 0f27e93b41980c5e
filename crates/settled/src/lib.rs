//! When, and who says so: the daemon that runs the mailroom, and the command line. It has no
//! opinion of its own: what a message is, whether it is correct, what it does and where the bytes
//! lie are the business of the other rooms.
//!
//! Read `mailroom` first: the way of a message on one page.

mod awaited;
mod bell;
mod briefs;
pub mod cli;
pub mod clock;
pub mod compose;
pub mod config;
pub mod daemon;
mod dead_letter;
pub mod demo;
mod desk;
mod doctor;
mod draft;
pub mod exit;
pub mod fold;
pub mod gc;
pub mod github;
pub mod hooks;
mod letters;
mod logs;
pub mod mailbag;
pub mod mailroom;
pub mod managed;
mod metrics;
pub mod mine;
mod names;
pub mod orders;
mod outgoing;
mod pair;
mod rejection;
mod replaced;
pub mod runner;
mod separate;
mod service;
mod shell;
mod sieve;
pub mod simulate;
mod snapshot;
mod standing;
pub mod states;
mod stderr;
mod supervisor;
mod tell;
mod trace;
mod troubles;
mod unproven;
mod untaken;
mod users;
pub mod verdict;
pub mod watch;
pub mod workspace;

pub use validate_message::explain;
