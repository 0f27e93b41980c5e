//! Tests that `settled gc` removes only what is older than the limit, known to the ledger and delivered for certain.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::room::Room;
use crate::scratch::scratch;
use chrono::{DateTime, TimeDelta, Utc};
use daemon::gc::{self, RetentionReport};
use daemon::mailroom::Mailroom;
use spool::Removal;
use workspace::config::RetentionSection;

const DAYS: RetentionSection = RetentionSection {
    sent_days: Some(30),
    archive_days: Some(30),
    dead_letter_days: Some(30),
    automatic: false,
};

/// Long after the tests wrote anything.
fn later() -> DateTime<Utc> {
    Utc::now() + TimeDelta::days(31)
}

fn tidy(room: &Room, now: DateTime<Utc>, removal: Removal) -> RetentionReport {
    gc::tidy(room.root(), &DAYS, now, removal).expect("the ledger is read")
}

/// A room with two questions, one of them read and archived, and one refused message.
fn after_some_mail() -> Room {
    let room = Room::new();
    room.ask("claude", "codex", "q-1");
    room.ask("claude", "codex", "q-2");
    room.ask("claude", "nobody", "q-3");
    room.visit(1);
    std::fs::rename(
        room.path("agents/codex/inbox/q-1.yaml"),
        room.path("agents/codex/archive/read.yaml"),
    )
    .expect("a delivered question");
    room
}

fn files(root: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && !path.is_symlink() {
                open.push(path);
            } else {
                found.insert(path);
            }
        }
    }
    found
}

/// The files that are gone, relative to the root.
fn gone(room: &Room, before: &BTreeSet<PathBuf>) -> Vec<String> {
    let now = files(room.root());
    let gone = before.difference(&now);
    gone.map(|path| {
        path.strip_prefix(room.root())
            .expect("below")
            .display()
            .to_string()
    })
    .collect()
}

const DONE_WITH: [&str; 5] = [
    "agents/claude/dead_letter/q-3.report.yaml",
    "agents/claude/dead_letter/q-3.yaml",
    "agents/claude/sent/q-1.yaml",
    "agents/claude/sent/q-2.yaml",
    "agents/codex/archive/read.yaml",
];

#[test]
fn what_is_old_and_done_with_goes_and_nothing_else() {
    let room = after_some_mail();
    let before = files(room.root());
    let dry = tidy(&room, later(), Removal::Pretended);
    assert_eq!(dry.sum(|folder| folder.gone).files, 5);
    assert_eq!(gone(&room, &before), [""; 0], "a dry run removes nothing");
    let done = tidy(&room, later(), Removal::Now);
    assert_eq!(
        done.sum(|folder| folder.gone),
        dry.sum(|folder| folder.gone),
        "as the dry run said"
    );
    assert_eq!(gone(&room, &before), DONE_WITH);
    assert_eq!(
        tidy(&room, later(), Removal::Now)
            .sum(|folder| folder.gone)
            .files,
        0
    );
}

#[test]
fn a_folder_that_cannot_be_read_is_named_and_the_others_are_swept() {
    let room = after_some_mail();
    let whole = tidy(&room, later(), Removal::Pretended);
    assert_eq!(whole.failed().count(), 0);
    let archive = room.path("agents/codex/archive");
    std::fs::rename(&archive, room.path("agents/codex/aside")).expect("an archive");
    std::os::unix::fs::symlink("aside", &archive).expect("a link");
    let done = tidy(&room, later(), Removal::Now);
    let failed: Vec<&str> = done.failed().collect();
    let begin = format!("cannot open {}", archive.display());
    assert!(
        failed.len() == 1 && failed[0].starts_with(&begin),
        "{failed:?}"
    );
    assert_eq!(done.sum(|folder| folder.gone).files, 4);
    assert!(room.path("agents/codex/aside/read.yaml").exists());
}

#[test]
fn nothing_goes_before_its_days_are_over() {
    let room = after_some_mail();
    let before = files(room.root());
    // The files look old but were moved to their places today.
    let done = tidy(&room, Utc::now() + TimeDelta::days(29), Removal::Now);
    assert_eq!(
        (done.sum(|folder| folder.gone).files, gone(&room, &before)),
        (0, Vec::new())
    );
    let keep = RetentionSection {
        sent_days: Some(30),
        ..RetentionSection::default()
    };
    gc::tidy(room.root(), &keep, later(), Removal::Now).expect("a sweep");
    assert_eq!(
        gone(&room, &before),
        DONE_WITH[2..4],
        "of the others nothing was said"
    );
}

#[test]
fn what_no_record_knows_stays() {
    let room = after_some_mail();
    for file in [
        "sent/mine.yaml",
        "sent/.hidden.yaml",
        "archive/notes.txt",
        "dead_letter/other.yaml",
    ] {
        room.put(&format!("agents/claude/{file}"), "mine");
    }
    // The name of a known file with other bytes, and known bytes where no record put them.
    room.put("agents/claude/sent/q-1.yaml", "other");
    let q2 = std::fs::read_to_string(room.path("agents/claude/sent/q-2.yaml")).expect("a question");
    room.put("agents/codex/sent/q-2.yaml", &q2);
    std::fs::create_dir(room.path("agents/claude/sent/directory.yaml")).expect("a directory");
    std::os::unix::fs::symlink("/etc/passwd", room.path("agents/claude/sent/link.yaml"))
        .expect("a link");
    let before = files(room.root());
    let done = tidy(&room, later(), Removal::Now);
    assert_eq!(
        gone(&room, &before),
        [&DONE_WITH[..2], &DONE_WITH[3..]].concat()
    );
    assert_eq!(done.sum(|folder| folder.unknown).files, 5, "{done:?}");
}

#[test]
fn no_link_in_the_place_of_a_folder_is_followed() {
    let room = after_some_mail();
    let elsewhere = scratch();
    let sent = room.path("agents/claude/sent");
    let moved = elsewhere.path().join("sent");
    std::fs::create_dir(&moved).expect("a directory");
    for name in ["q-1.yaml", "q-2.yaml"] {
        std::fs::copy(sent.join(name), moved.join(name)).expect("a file");
    }
    std::fs::remove_dir_all(&sent).expect("a directory");
    std::os::unix::fs::symlink(&moved, &sent).expect("a link");
    let done = tidy(&room, later(), Removal::Now);
    assert_eq!(done.failed().count(), 1, "{done:?}");
    assert_eq!(files(elsewhere.path()).len(), 2, "it was followed");
}

#[test]
fn what_a_power_cut_could_undo_stays() {
    let room = after_some_mail();
    room.ask("claude", "codex", "q-4");
    let mut mailroom = Mailroom::open(room.root()).expect("a start").0;
    mailroom.sweep().expect("a sweep");
    mailroom.pass(crate::room::at(60)).expect("a pass");
    assert!(room.path("agents/claude/sent/q-4.yaml").exists());
    let before = files(room.root());
    // The message is delivered and put away, but there was no checkpoint yet; the daemon still runs.
    let done = tidy(&room, later(), Removal::Now);
    assert_eq!(gone(&room, &before), DONE_WITH);
    assert_eq!(done.sum(|folder| folder.uncertain).files, 1, "{done:?}");
    mailroom.checkpoint().expect("a checkpoint");
    let done = tidy(&room, later(), Removal::Now);
    assert_eq!(done.sum(|folder| folder.gone).files, 1, "{done:?}");
    assert!(!room.path("agents/claude/sent/q-4.yaml").exists());
}

#[test]
fn what_is_gone_does_not_come_again_in_another_boot() {
    let room = after_some_mail();
    tidy(&room, later(), Removal::Now);
    let disk = std::sync::Arc::new(spool::FaultyDisk::new("another boot"));
    let opened = spool::Spool::open(room.root(), disk, &mut |_| Ok(())).expect("a start");
    assert!(
        opened.recovery.new_boot && opened.recovery.pass.redelivered.is_empty(),
        "{:?}",
        opened.recovery
    );
    drop(opened);
    for path in DONE_WITH {
        assert!(!room.path(path).exists(), "{path} came again");
    }
    assert!(room.path("agents/codex/inbox/q-2.yaml").exists());
}

#[test]
fn without_cursors_nothing_is_certain_and_a_damaged_ledger_ends_it() {
    let room = after_some_mail();
    let before = files(room.root());
    let cursors = room.path(".settled/cursors");
    std::fs::rename(&cursors, room.path("cursors")).expect("cursors");
    std::fs::create_dir(&cursors).expect("a directory");
    let done = tidy(&room, later(), Removal::Now);
    assert_eq!(
        (
            done.sum(|folder| folder.gone).files,
            done.sum(|folder| folder.uncertain).files
        ),
        (0, 5)
    );
    std::fs::remove_dir(&cursors).expect("a directory");
    std::fs::rename(room.path("cursors"), &cursors).expect("cursors");
    let segment = room.path(".settled/ledger/00000000000000000001.jsonl");
    let text = std::fs::read_to_string(&segment).expect("a segment");
    std::fs::write(&segment, text.replacen("q-1", "q-9", 1)).expect("a segment");
    gc::tidy(room.root(), &DAYS, later(), Removal::Now).expect_err("the chain is broken");
    assert_eq!(gone(&room, &before), [""; 0]);
}
