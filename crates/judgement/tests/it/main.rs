//! The daemon's messages to agents, delivered by a real spool.

mod brief;
mod files;
mod notice_files;
mod room;
#[expect(
    dead_code,
    reason = "shared with the tests of the rules, which use all of it"
)]
#[path = "../../../review/tests/it/table.rs"]
mod table;
