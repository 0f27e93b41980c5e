//! The suite passes on a ledger on a disk and on the simulated log, and finds each fault of a wrong log.

mod local;
mod model;
mod wrong;
