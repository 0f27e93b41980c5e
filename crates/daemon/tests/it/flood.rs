//! One agent fills its outbox with files that are refused as fast as they are read. What a pass writes for it is
//! bounded, and others' mail goes first.

use std::sync::Arc;
use std::time::Duration;

use daemon::mailroom::Mailroom;
use spool::FaultyDisk;

use crate::room::{Room, at};

/// The number of files after which a batch ends, and the number delivered at a time.
const FILES: usize = 64;

/// The bytes after which a batch ends.
const BYTES: usize = 192 * 1024;

/// At most three changes each (create, write, rename) for a report, a notice and the original, with their cursors; two
/// threads, each up to a group of 32 beyond its share, and the ledger.
const CHANGES_MAX: u64 = 600;

struct Flood {
    room: Room,
    disk: Arc<FaultyDisk>,
    mailroom: Mailroom,
    second: i64,
}

/// A mailroom some passes after its start, with 1 000 one-byte files in the outbox of a third agent.
fn flood() -> Flood {
    let room = Room::new();
    std::fs::create_dir_all(room.path("agents/mallory/outbox")).expect("an outbox");
    for number in 0..1_000 {
        room.put(&format!("agents/mallory/outbox/f-{number:04}.yaml"), "x");
    }
    let disk = Arc::new(FaultyDisk::new("boot"));
    let opened = Mailroom::open_on(room.root(), Arc::clone(&disk) as _);
    let mut mailroom = opened.expect("a start").0;
    mailroom.limit_batches(Duration::MAX, FILES, BYTES);
    mailroom.sweep().expect("a sweep");
    let mut flood = Flood {
        room,
        disk,
        mailroom,
        second: 0,
    };
    (0..8).for_each(|_| flood.pass());
    flood
}

impl Flood {
    /// Makes a pass one second later, when the outbox has rested.
    fn pass(&mut self) {
        self.second += 1;
        self.pass_at_once();
    }

    /// Makes a pass in the same millisecond.
    fn pass_at_once(&mut self) {
        self.disk.set(None);
        self.mailroom.pass(at(self.second)).expect("a pass");
    }

    /// Sends a message between the two other agents, which the watcher sees.
    fn ask(&mut self) {
        self.room.ask("claude", "codex", "q-1");
        let name = "q-1.yaml".parse().expect("a name");
        self.mailroom.hint("claude", &name);
    }

    fn has_arrived(&self) -> bool {
        self.room.path("agents/codex/inbox/q-1.yaml").exists()
    }
}

#[test]
fn a_pass_writes_no_more_than_its_share_and_the_backlog_stays_small() {
    let mut flood = flood();
    let mut passes = 0;
    while flood.mailroom.unread() > 0 {
        flood.pass();
        let changes = flood.disk.changes();
        assert!(changes <= CHANGES_MAX, "{changes} in one pass");
        let owed = flood.mailroom.undelivered();
        assert!(owed <= FILES, "{owed} files wait to be delivered");
        passes += 1;
        assert!(passes < 200, "it comes to an end");
    }
    flood.mailroom.finish(at(flood.second)).expect("deliveries");
    assert_eq!(flood.mailroom.undelivered(), 0);
    let reports = std::fs::read_dir(flood.room.path("agents/mallory/dead_letter"));
    assert!(reports.expect("a directory").count() >= 1_000);
}

/// Puts a message of claude's with a comment of so many bytes into its outbox.
fn ask_at_length(room: &Room, number: i64, comment: usize) {
    room.ask("claude", "codex", &format!("q-{number}"));
    let path = format!("agents/claude/outbox/q-{number}.yaml");
    let text = std::fs::read_to_string(room.path(&path)).expect("a message");
    room.put(&path, &format!("{text}# {}\n", "x".repeat(comment)));
}

#[test]
fn a_large_message_ends_its_batch_and_its_outbox_rests() {
    for (comment, passes_wanted, rests) in [(0, 1, false), (BYTES / 2, 2, true), (BYTES, 4, true)] {
        let room = Room::new();
        (0..4).for_each(|number| ask_at_length(&room, number, comment));
        let mut mailroom = Mailroom::open(room.root()).expect("a start").0;
        mailroom.limit_batches(Duration::MAX, FILES, BYTES);
        mailroom.sweep().expect("a sweep");
        // A disk that stalls makes no rest as long as a minute.
        let after = |passes: i64| at(60 * passes);
        let mut passes = 0;
        while mailroom.unread() > 0 {
            passes += 1;
            mailroom.pass(after(passes)).expect("a pass");
        }
        assert_eq!(passes, passes_wanted, "{comment} bytes of comment each");
        ask_at_length(&room, 4, 0);
        mailroom.sweep().expect("a sweep");
        mailroom.pass(after(passes)).expect("a pass");
        assert_eq!(mailroom.unread(), usize::from(rests));
        mailroom.pass(after(passes + 1)).expect("a pass");
        assert_eq!(mailroom.unread(), 0);
    }
}

#[test]
fn a_message_in_the_same_pass_as_a_flood_is_there_when_the_pass_ends() {
    let mut flood = flood();
    flood.ask();
    flood.pass();
    assert!(flood.has_arrived());
    assert!(flood.mailroom.unread() > 0, "the flood goes on");
}

#[test]
fn an_outbox_whose_files_are_refused_rests_while_others_are_served() {
    let mut flood = flood();
    let unread = flood.mailroom.unread();
    flood.ask();
    flood.pass_at_once();
    assert!(flood.has_arrived());
    assert_eq!(flood.mailroom.unread(), unread, "it read one of the flood");
    flood.pass();
    assert!(flood.mailroom.unread() < unread, "the flood goes on");
}
