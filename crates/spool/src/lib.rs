//! Keeps the workspace's bytes safe: intake, ledger, delivery, recovery.
//!
//! The way of a message through this room, and the file that answers for each step:
//!
//! - `intake` finds a finished file in an outbox and reads it once;
//! - the caller judges it and hands in a [`EntryDraft`] of what to write;
//! - `ledger` writes the batch as chained lines and syncs it once: the instant after which it counts;
//! - `delivery` follows the ledger, lane by lane: inboxes, dead letters, packets, and putting originals away;
//! - `recover` finishes at the next start what a kill or a power cut left undone;
//! - `retention` removes what agents have finished with, once it is old;
//! - `read_only` reads the ledger without the lock, and `tail` as it grows, for onlookers;
//! - `log` is the contract of a ledger that several hosts share; each has a mirror of it;
//! - `snapshot` saves what the ledger added up to, so that a start reads only what follows.
//!
//! `dirs` spells every directory and `layout` makes paths and file names; the room `disk` makes every call that touches
//! something.
//! Nothing here knows YAML or a rule of reviews.

mod delivery;
mod directory_stamp;
pub mod dirs;
mod entry;
mod error;
mod homes;
mod host;
mod intake;
mod layout;
mod ledger;
mod lock;
pub mod log;
mod mailbox;
mod packet;
mod presence;
mod read_only;
mod recover;
mod retention;
mod root;
mod snapshot;
mod spool;
mod status;
mod stretch;
mod tail;
mod time;
mod view;

pub use crate::delivery::{Lane, Parked, Pass, Placed};
pub use crate::directory_stamp::DirectoryStamp;
pub use crate::entry::{Away, Content, Delivery, Entry, EntryDraft, NotAway, Original, Stamp};
pub use crate::error::{SpoolError, VisitError, chain};
pub use crate::homes::Homes;
pub use crate::host::HostName;
pub use crate::intake::{Body, Hint, Intake, OutboxFile, QUIET_MS, QueueMark, Taken, Unfit};
pub use crate::layout::Layout;
pub use crate::ledger::{FORMAT_VERSION, NotALine, TornTail, Verified};
pub use crate::mailbox::{Mailbox, NotAMailbox};
pub use crate::packet::PacketRead;
pub use crate::presence::{Presence, PresenceMemory};
pub use crate::read_only::{Folded, fold_ledger, read_ledger, read_ledger_to, verify};
pub use crate::recover::{Opened, Recovery};
pub use crate::retention::{
    Count, Cutoff, FolderReport, KeptFolder, Old, Removal, tidy, torn_copies,
};
pub use crate::snapshot::check::{Agreement, verify_with};
pub use crate::snapshot::make::{SnapshotInfo, SnapshotMaker};
pub use crate::snapshot::{Ahead, Fold, PassedOver};
pub use crate::spool::{Committed, Spool};
pub use crate::status::{count_waiting, has_delivered, is_served, waiting};
pub use crate::tail::{Since, Tail};
pub use crate::time::Now;
pub use crate::view::View;
#[cfg(feature = "faulty-disk")]
pub use disk::{Arrival, DiskFault, FaultyDisk, Notes, VolatileDisk};
pub use disk::{Disk, FileKind, FileName, Handle, NotAFileName, OpenMode, Os, Stat};
pub use sorted_rows::{Digest, NotADigest, RowKey, Rows};
