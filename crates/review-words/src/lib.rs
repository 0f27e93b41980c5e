//! The records of a review and the plain values in them: its phase, threads, tasks, key, deadlines and events, the
//! evidence that its change was read, the spend of a run, the files of an hour, failed starts, changes of hosts,
//! refusals and alerts; the keywords of findings, packed reviews, and tables of rows that are read on demand. A value
//! answers only what it can answer alone; the room `review` decides with them.

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
pub mod phase;
pub mod pulls;
pub mod rate;
pub mod reading;
pub mod record;
pub mod refusal;
pub mod spend;
pub mod table;
pub mod task;
pub mod thread;

/// True for a value that a record leaves out.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests;
