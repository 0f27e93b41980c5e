//! When, and who says so: the daemon that runs the mailroom, and the command line. It has no
//! opinion of its own: what a message is, whether it is correct, what it does and where the bytes
//! lie are the business of the other rooms.
//!
//! Read `mailroom` first: the way of a message on one page.

mod bell;
mod briefs;
pub mod cli;
pub mod clock;
pub mod config;
pub mod daemon;
mod dead_letter;
mod desk;
mod doctor;
mod draft;
pub mod exit;
pub mod fold;
pub mod gc;
pub mod github;
mod letters;
pub mod mailroom;
mod names;
pub mod orders;
mod outgoing;
mod rejection;
mod separate;
mod sieve;
pub mod simulate;
mod snapshot;
pub mod states;
mod stderr;
mod trace;
mod troubles;
mod unproven;
mod untaken;
mod users;
pub mod watch;
pub mod workspace;

pub use validate_message::explain;
