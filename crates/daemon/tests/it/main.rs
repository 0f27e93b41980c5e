//! A mailroom opened and passed by the test, at instants that the test sets.

mod crowd;
mod full_disk;
mod gc;
mod housekeeping;
mod ledgers;
mod patience;
mod reload;
mod room;
mod sent;
mod time;
