//! The third floor: the answers a caller gets. Each looks at the whole state; only `apply` and
//! `persist` change or rebuild it.

pub(crate) mod apply;
pub(crate) mod decide;
pub(crate) mod on_event;
pub(crate) mod persist;
pub(crate) mod refuse;
pub(crate) mod undo;
