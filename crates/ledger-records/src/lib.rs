//! The records of the ledger as values: what a record says, its line, and the chain of lines that makes a batch.
//!
//! - `dirs` spells the directories of a workspace, which records name;
//! - `mailbox` and `entry` are what a record says: the file that it judged, and the files that it makes;
//! - `line` is its text, and `batch` chains the lines of one write;
//! - `host` names the hosts that write one ledger together.
//!
//! Nothing here reads or writes a file: the room `spool` does that.

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod batch;
pub mod dirs;
mod entry;
mod host;
mod line;
mod mailbox;

pub use crate::batch::{Batch, Head, NotABatch};
pub use crate::entry::{
    Away, Content, Delivery, Entry, EntryDraft, ExpectedContent, MESSAGE_FILE_MAX, NotAway,
    Original, Stamp,
};
pub use crate::host::{HostName, NotAHostName};
pub use crate::line::{FORMAT_VERSION, NotALine};
pub use crate::mailbox::{Mailbox, NotAMailbox};
pub use disk::FileName;
pub use sorted_rows::Digest;
