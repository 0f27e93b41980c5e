//! Where the bytes lie and whether they are safe: intake, ledger, delivery, recovery.
//!
//! The way of a message through this room, and the file that answers for each step:
//!
//! - `intake` finds a finished file in an outbox and reads it once;
//! - the caller judges it and hands in a [`Draft`] of what is to be written;
//! - `ledger` writes the batch as chained lines and syncs it once: the instant after which it counts;
//! - `delivery` follows the ledger, lane by lane: inboxes, dead letters, packets, and putting originals away;
//! - `recover` finishes at the next start what a kill or a power cut left undone;
//! - `retention` removes what agents are done with, once it is old;
//! - `tail` reads the ledger as it grows, for onlookers;
//! - `snapshot` keeps what the ledger added up to, so that a start reads only what follows.
//!
//! `layout` knows every name, `disk` every call that touches something. No YAML and no rule of reviews lives here.

mod delivery;
mod digest;
mod disk;
mod entry;
mod error;
mod ground;
mod intake;
mod layout;
mod ledger;
mod lock;
mod mailbox;
mod name;
mod packet;
mod recover;
mod retention;
mod snapshot;
mod spool;
mod survey;
mod tail;
mod tenure;
mod view;
mod whereabouts;

pub use crate::delivery::{Lane, Parked, Pass, Placed};
pub use crate::digest::{Digest, NotADigest};
#[cfg(feature = "faulty-disk")]
pub use crate::disk::{Arrival, Fault, FaultyDisk, Notes, VolatileDisk};
pub use crate::disk::{Disk, Handle, Kind, Open, Os, Stat};
pub use crate::entry::{Away, Content, Delivery, Draft, Entry, NotAway, Original, Stamp};
pub use crate::error::{SpoolError, VisitError, chain};
pub use crate::intake::{Body, Found, Hint, Intake, Mark, Now, QUIET_MS, Taken, Unfit};
pub use crate::layout::Layout;
pub use crate::ledger::{
    FORMAT_VERSION, Folded, NotALine, TornTail, Verified, fold_ledger, read_ledger, verify,
};
pub use crate::mailbox::{Mailbox, NotAMailbox};
pub use crate::name::{FileName, NotAFileName};
pub use crate::packet::PacketRead;
pub use crate::recover::{Opened, Recovery};
pub use crate::retention::{Count, Cutoff, Old, Removal, Shelf, Shelved, tidy, torn_copies};
pub use crate::snapshot::{Agreement, Fold, Made, PassedOver, SnapshotMaker, verify_with};
pub use crate::spool::{Committed, Spool};
pub use crate::survey::{count_waiting, has_delivered, is_served, waiting};
pub use crate::tail::{Since, Tail};
pub use crate::tenure::{Grounds, Tenure};
pub use crate::view::View;
pub use crate::whereabouts::Whereabouts;
