//! The first floor: the words of a record. Plain values with the few questions that one value answers alone; nothing
//! here knows the state or a rule that compares two of them.

pub(crate) use review_words::{
    alert, deadline, event, failure, folded, key, rate, reading, refusal, spend, table,
};

pub(crate) mod phase;
pub(crate) mod record;
pub(crate) mod task;
pub(crate) mod thread;
