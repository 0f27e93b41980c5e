//! A mailroom opened and passed by the test, at instants that the test sets.

mod gc;
mod ledgers;
mod room;
mod time;
