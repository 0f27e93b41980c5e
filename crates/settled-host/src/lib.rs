//! Everything that a workspace on several hosts needs besides the daemon: the logs that can hold its ledger, and the
//! key a host signs with. A room and a program of its own, so that the program for one host has no network client.
//!
//! - `access` identifies this host to a broker;
//! - `gitlog` keeps the ledger on a ref of a git repository;
//! - `jetstream` keeps the ledger in a stream of NATS JetStream;
//! - `keys` signs what this host judges, and verifies what others signed;
//! - `monitoring` reads what a broker promises;
//! - `place` names a log and the files that this host keeps for it;
//! - `wire` writes a batch into a message and reads it back.
//!
//! `spool::log` defines what a log promises.

pub mod access;
pub mod gitlog;
pub mod jetstream;
pub mod keys;
pub mod monitoring;
pub mod place;
mod wire;

pub use gitlog::{Git, is_missing, is_unresolved};
pub use jetstream::JetStream;

/// The bytes after which one call of `follow` returns the batches it has.
const GIVEN_BYTES_MAX: usize = 4 * 1024 * 1024;
