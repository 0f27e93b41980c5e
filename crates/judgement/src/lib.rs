//! Turns the bytes of a file into a ledger record with its files: parses and checks the message, decides whether it may
//! move its review, and names and writes each file that follows. The time, ids, packet bytes and policy are handed in:
//! this crate touches no disk, clock or log.
//!
//! Begin with `judge` (the path of a message), then `tentative` (how a batch is judged and rolled back), then `draft`
//! (what the ledger keeps), and `rejudge` (whether a record follows). `brief` writes what a reviewer gets with a request:
//! it asks the rules and decides nothing.

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod alerts_file;
pub mod brief;
mod draft;
mod judge;
mod notice_files;
mod notices;
mod pull_event_file;
pub mod rejection;
pub mod rejudge;
mod tentative;
mod used_names;

pub use draft::RequestFile;
pub use judge::{
    Decided, Ids, Judge, Patience, ReadMessage, Refused, Stop, Submission, named_recipients, read,
};
pub use tentative::Tentative;
pub use used_names::UsedNames;
