//! Plain values of a review's records that need no rule: its key, its deadlines, its events, the evidence that its
//! change was read, the spend of a run, the files of an hour, failed starts, changes of hosts, refusals and alerts;
//! the keywords of findings, packed reviews, and tables of rows that are read on demand. The room `review` decides
//! with them.

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod alert;
pub mod deadline;
pub mod event;
pub mod failure;
pub mod folded;
pub mod host_change;
pub mod key;
pub mod keywords;
mod new_rows;
pub mod pulls;
pub mod rate;
pub mod reading;
pub mod refusal;
pub mod spend;
pub mod table;

#[cfg(test)]
mod tests;
