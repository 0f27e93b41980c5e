//! Reads what a workspace holds and allows: its config, the index folded from its ledger, waiting orders, its agents
//! and their users. Judges nothing and serves no requests.

pub mod atomic_file;
pub mod clock;
pub mod config;
pub mod directory;
pub mod error;
pub mod heartbeat;
pub mod index;
pub mod known_deliveries;
pub mod ledger_end;
pub mod operator_alerts;
pub mod orders;
pub mod ownership;
pub mod refusals;
pub mod regular_file;
pub mod remote_agent;
pub mod shell;
mod snapshot_rows;
pub mod untaken_requests;
pub mod user_isolation;
pub mod users;
