//! One agent fills its outbox with files that are refused as fast as they are read; what a pass writes for it is bounded,
//! and others' mail goes first.

use std::sync::Arc;
use std::time::Duration;

use daemon::mailroom::Mailroom;
use spool::{FaultyDisk, Hint};

use crate::room::{Room, at};

/// A batch ends after so many files, and its delivery goes on in quarters of that.
const FILES: usize = 64;

/// A report, a notice and the original, each of which is created, written and renamed at most, with their cursors; two
/// threads, a group of 32 above each quarter, and the ledger.
const CHANGES_MAX: u64 = 600;

struct Flood {
    room: Room,
    disk: Arc<FaultyDisk>,
    mailroom: Mailroom,
}

/// A mailroom with 1 000 files of one byte in the outbox of a third agent, some passes after its start.
fn flood() -> Flood {
    let room = Room::new();
    std::fs::create_dir_all(room.path("agents/mallory/outbox")).expect("an outbox");
    for number in 0..1_000 {
        room.put(&format!("agents/mallory/outbox/f-{number:04}.yaml"), "x");
    }
    let disk = Arc::new(FaultyDisk::new("boot"));
    let opened = Mailroom::open_on(room.root(), Arc::clone(&disk) as _);
    let mut mailroom = opened.expect("a start").0;
    mailroom.limit_batches(Duration::MAX, FILES);
    mailroom.sweep().expect("a sweep");
    let mut flood = Flood {
        room,
        disk,
        mailroom,
    };
    (0..8).for_each(|_| flood.pass());
    flood
}

impl Flood {
    fn pass(&mut self) {
        self.mailroom.pass(at(1)).expect("a pass");
    }
}

#[test]
fn a_pass_writes_no_more_than_its_share_and_the_backlog_stays_small() {
    let mut flood = flood();
    let mut passes = 0;
    while flood.mailroom.unread() > 0 {
        flood.disk.set(None);
        flood.pass();
        let changes = flood.disk.changes();
        assert!(changes <= CHANGES_MAX, "{changes} in one pass");
        let owed = flood.mailroom.undelivered();
        assert!(owed <= 4 * FILES, "{owed} files wait to be delivered");
        passes += 1;
        assert!(passes < 200, "it comes to an end");
    }
    flood.mailroom.finish(at(2)).expect("deliveries");
    assert_eq!(flood.mailroom.undelivered(), 0);
    let reports = std::fs::read_dir(flood.room.path("agents/mallory/dead_letter"));
    assert!(reports.expect("a directory").count() >= 1_000);
}

#[test]
fn a_message_beside_a_flood_is_there_after_two_passes_and_before_what_the_flood_is_owed() {
    let mut flood = flood();
    assert!(
        flood.mailroom.undelivered() > 0,
        "there is something to wait behind"
    );
    flood.room.ask("claude", "codex", "q-1");
    let name = "q-1.yaml".parse().expect("a name");
    flood.mailroom.hint("claude", &name, Hint::Finished);
    flood.disk.set(None);
    flood.pass();
    let committed = flood.disk.log().len();
    flood.pass();
    let log = flood.disk.log();
    let delivered = log
        .iter()
        .position(|line| line.ends_with("rename q-1.yaml"));
    let delivered = delivered.expect("it was delivered");
    assert!(
        delivered < committed + 60,
        "{} changes came before it",
        delivered - committed
    );
    assert!(flood.mailroom.unread() > 0, "the flood goes on");
}
