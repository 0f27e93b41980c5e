//! The first floor: what a record says. Plain values with the few questions that one value answers
//! by itself; nothing here knows the state or a rule that compares two of them.

pub(crate) use review_words::{
    alert, deadline, event, failure, folded, key, rate, reading, refusal, spend, table,
};

pub(crate) mod phase;
pub(crate) mod record;
pub(crate) mod task;
pub(crate) mod thread;
