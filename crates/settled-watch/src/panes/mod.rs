//! The contents of the screen: the list, and each pane beside it. Values in, lines out.

pub(crate) mod agents;
pub(crate) mod detail;
pub(crate) mod help;
pub(crate) mod history;
pub(crate) mod list;
pub(crate) mod problems;
mod time;
