//! Errors in one line, for logs and for people.

pub use spool::chain;
