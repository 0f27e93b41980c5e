//! Everything that a workspace on several hosts needs besides the daemon: the logs that its ledger can have, and the
//! key a host signs with. A room and a program of its own, so that the program of one host has no network client.
//!
//! - `access` is how a broker knows this host;
//! - `gitlog` keeps the ledger on a ref of a git repository;
//! - `jetstream` keeps the ledger in a stream of NATS JetStream;
//! - `keys` signs what this host judges, and checks what others signed;
//! - `monitoring` reads what a broker promises;
//! - `place` is where a log is, and what this host keeps for it;
//! - `wire` is how a batch is written into a message there.
//!
//! What a log promises is `spool::log`'s to say.

pub mod access;
pub mod gitlog;
pub mod jetstream;
pub mod keys;
pub mod monitoring;
pub mod place;
mod wire;

pub use gitlog::Git;
pub use jetstream::JetStream;
