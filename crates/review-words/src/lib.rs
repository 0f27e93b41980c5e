//! Plain values of a review's records that need no rule: its key, its deadlines, its events, what is read in it, what a run
//! used, what became of a start that failed, what changed among hosts, and why something was refused or limited; a finished
//! review in few bytes, and tables of rows that are read when they are asked for. The room `review` decides by them.

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod alert;
pub mod deadline;
pub mod event;
pub mod failure;
pub mod folded;
pub mod host_change;
pub mod key;
pub mod reading;
pub mod refusal;
pub mod spend;
pub mod table;
