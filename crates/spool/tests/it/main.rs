//! The promises of the spool, tested on real directories.

mod backlog;
mod closed;
mod crash;
mod daemon;
mod dispose;
mod faults;
mod groups;
mod intake;
mod lanes;
mod ledger;
mod log;
mod packet;
mod power;
mod pulls;
mod retention;
mod slices;
mod snapshot;
mod snapshot_fold;
mod snapshot_kill;
mod snapshot_owed;
mod snapshot_rows;
mod snapshot_state;
mod tail;
mod taking;
#[path = "../../../../tests/threads.rs"]
mod threads;
mod unsynced;
mod window;
mod writers;
