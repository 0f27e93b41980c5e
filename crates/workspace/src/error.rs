//! Renders an error with its causes in one line, for logs and for people.

pub use spool::chain;
