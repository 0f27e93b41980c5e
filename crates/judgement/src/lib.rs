//! From bytes to a record with its files: what a message is, whether it may move its review now, and
//! everything the ledger keeps of the answer, with the name and the text of each file it makes. The
//! time, ids, the bytes of packets and the policy are handed in: there is no disk, no clock and no log
//! in this room.
//!
//! Begin with `judge` (the path of a message), then `tentative` (how a batch is judged and taken
//! back), then `draft` (what the ledger keeps).

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod briefs;
mod draft;
mod judge;
mod letters;
mod outgoing;
pub mod rejection;
mod snapshot;
mod tentative;
mod used_names;

pub use judge::{
    Decided, Ids, Judge, Patience, Read, Refused, Stop, Submission, named_recipients, read,
};
pub use tentative::Tentative;
pub use used_names::UsedNames;
