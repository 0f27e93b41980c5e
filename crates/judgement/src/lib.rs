//! From bytes to a record with its files. What is read and decided about a message is told here as
//! the ledger keeps it, with the name and the text of every file it makes. Time, ids, the bytes of
//! packets and the policy are handed in: there is no disk, no clock and no log in this room.

pub mod briefs;
pub mod draft;
pub mod letters;
pub mod moment;
pub mod names;
pub mod outgoing;
pub mod rejection;
mod snapshot;
