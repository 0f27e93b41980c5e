//! Tests that open a mailroom and make its passes at times of their own choosing.

mod crowd;
mod flood;
mod full_disk;
mod gc;
mod hosts;
mod housekeeping;
mod idle;
mod ledgers;
mod many;
mod names;
mod orders;
mod patience;
mod reload;
mod room;
#[path = "../../../../tests/scratch.rs"]
mod scratch;
mod sent;
mod time;
