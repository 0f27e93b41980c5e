//! Keeps the workspace's bytes safe: intake, ledger, delivery, recovery.
//!
//! The path of a message through this room, and the module for each step:
//!
//! - `intake` finds a finished file in an outbox and reads it once;
//! - the caller judges it and hands in a [`EntryDraft`] of what to write;
//! - `ledger` appends the batch as chained lines and syncs it once; after that sync the batch counts;
//! - `delivery` follows the ledger, lane by lane: inboxes, dead letters, packets, and putting originals away;
//! - `recover` finishes at the next start what a kill or a power cut interrupted;
//! - `retention` removes old files that agents have finished with;
//! - `read_only` reads the ledger without the lock, and `tail` follows it as it grows;
//! - `log` is the contract of a ledger that several hosts share; each host keeps a mirror of it;
//! - `snapshot` saves the state after a record, so that a start reads only the later records.
//!
//! `layout` makes paths and file names; the room `ledger-records` spells the records and every directory, and the room
//! `disk` makes the file system calls, except for a few of `layout` (the empty tree and the list of agents), `lock` and
//! `status` (the kernel's lock). Nothing here knows YAML or a rule of reviews.

mod delivery;
mod error;
mod homes;
mod intake;
mod join;
mod layout;
mod ledger;
mod lock;
pub mod log;
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
mod view;

pub use crate::delivery::{Lane, Parked, Pass, Placed};
pub use crate::error::{SpoolError, VisitError, chain};
pub use crate::homes::Homes;
pub use crate::intake::{
    Body, Intake, OutboxFile, OutboxListing, QUIET_MS, QueueMark, Taken, Unfit,
};
pub use crate::join::join;
pub use crate::layout::{Layout, is_candidate};
pub use crate::ledger::{TornTail, Verified};
pub use crate::packet::{PacketRead, check_packet_path};
pub use crate::presence::{Presence, PresenceMemory};
pub use crate::read_only::{Folded, fold_ledger, read_ledger, read_ledger_to, verify};
pub use crate::recover::{Opened, Recovery};
pub use crate::retention::{
    Count, Cutoff, FolderReport, KeptFolder, Old, Removal, tidy, torn_copies,
};
pub use crate::root::NameListing;
pub use crate::snapshot::check::{Agreement, verify_with};
pub use crate::snapshot::make::{SnapshotInfo, SnapshotMaker};
pub use crate::snapshot::{Fold, PassedOver};
pub use crate::spool::{Checkpoint, Committed, Spool, SyncedCheckpoint};
pub use crate::status::{has_delivered, is_served};
pub use crate::tail::{Since, Tail};
pub use crate::view::View;
#[cfg(feature = "faulty-disk")]
pub use disk::{Arrival, DiskFault, FaultyDisk, Notes, VolatileDisk};
pub use disk::{
    DirectoryStamp, Disk, FileKind, FileName, Handle, NotAFileName, Now, OpenMode, Os, Stat,
    if_there, path_text,
};
pub use ledger_records::{
    Away, Content, Delivery, Entry, EntryDraft, FORMAT_VERSION, HostName, Mailbox, NotALine,
    NotAMailbox, NotAway, Original, Stamp, dirs,
};
pub use sorted_rows::{Digest, NotADigest, RowKey, Rows};
