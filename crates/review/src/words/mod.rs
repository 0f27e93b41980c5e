//! The first floor: the words of a record. Plain values with the few questions that one value answers alone; nothing
//! here knows the state or a rule that compares two of them.

pub(crate) use review_words::{
    alert, deadline, event, failure, folded, key, keywords, rate, reading, refusal, spend, table,
};

/// True for a value that a record leaves out.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

pub(crate) mod phase;
pub(crate) mod record;
pub(crate) mod task;
pub(crate) mod thread;
