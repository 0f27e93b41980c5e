//! The first floor: what a record says. Plain values with the few questions that one value answers
//! by itself; nothing here knows the state or a rule that compares two of them.

pub(crate) mod alert;
pub(crate) mod deadline;
pub(crate) mod event;
pub(crate) mod key;
pub(crate) mod phase;
pub(crate) mod reading;
pub(crate) mod record;
pub(crate) mod refusal;
pub(crate) mod task;
pub(crate) mod thread;
