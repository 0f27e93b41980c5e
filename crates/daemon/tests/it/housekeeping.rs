//! Tests what a mailroom does at rest: it makes a snapshot, and once a day it removes old files where the config wants
//! it.

use chrono::{TimeDelta, Utc};
use daemon::mailroom::Mailroom;
use workspace::clock::Moment;
use workspace::config::Config;

use crate::room::{Room, at};

/// A day, in milliseconds.
const DAY: u64 = 24 * 60 * 60 * 1000;

/// A mailroom that keeps sent messages for 30 days, and removes them by itself if `automatic` is set.
fn keeping(room: &Room, automatic: bool) -> Mailroom {
    let mut mailroom = Mailroom::open(room.root()).expect("a start").0;
    let mut config = Config::default();
    config.retention.sent_days = Some(30);
    config.retention.automatic = automatic;
    mailroom.reconfigure(config).expect("a config");
    mailroom
}

/// Lets the mailroom rest at this monotonic time, long after all messages were put away, until the housekeeping ends.
fn rest(mailroom: &mut Mailroom, mono: u64) {
    let utc = Utc::now() + TimeDelta::days(31);
    mailroom.rest(Moment { mono, utc });
    mailroom.close();
}

/// Delivers a question and makes it durable.
fn deliver(room: &Room, mailroom: &mut Mailroom, id: &str) {
    room.ask("claude", "codex", id);
    mailroom.sweep().expect("a sweep");
    mailroom.pass(at(1)).expect("a pass");
    mailroom.checkpoint().expect("a checkpoint");
    assert!(is_kept(room, id), "{id} is put away");
}

fn is_kept(room: &Room, id: &str) -> bool {
    room.path(&format!("agents/claude/sent/{id}.yaml")).exists()
}

#[test]
fn old_files_stay_where_nobody_wants_them_removed_by_themselves() {
    let room = Room::new();
    let mut mailroom = keeping(&room, false);
    deliver(&room, &mut mailroom, "q-1");
    rest(&mut mailroom, 0);
    rest(&mut mailroom, 2 * DAY);
    assert!(is_kept(&room, "q-1"));
}

#[test]
fn old_files_are_removed_once_a_day() {
    let room = Room::new();
    let mut mailroom = keeping(&room, true);
    deliver(&room, &mut mailroom, "q-1");
    rest(&mut mailroom, 5_000);
    assert!(!is_kept(&room, "q-1"));

    deliver(&room, &mut mailroom, "q-2");
    rest(&mut mailroom, 5_000 + DAY - 1);
    assert!(is_kept(&room, "q-2"), "the day is not over");
    rest(&mut mailroom, 5_000 + DAY);
    assert!(!is_kept(&room, "q-2"));
}

/// Closes codex's inbox, for root as well.
fn close(room: &Room) {
    std::fs::remove_dir_all(room.path("agents/codex/inbox")).expect("an inbox");
    std::fs::write(room.path("agents/codex/inbox"), "closed").expect("a file");
}

/// Has a snapshot made after each record.
fn make_snapshots(mailroom: &mut Mailroom) {
    let mut config = Config::default();
    config.ledger.snapshot_records = 1;
    mailroom.reconfigure(config).expect("a config");
}

#[test]
fn a_closed_mailbox_keeps_no_snapshot_from_being_made_and_gets_its_mail_once_it_is_open() {
    let room = Room::new();
    let mut mailroom = Mailroom::open(room.root()).expect("a start").0;
    make_snapshots(&mut mailroom);
    close(&room);
    for (id, record) in [("q-1", 1), ("q-2", 2)] {
        deliver(&room, &mut mailroom, id);
        rest(&mut mailroom, record);
        assert!(!mailroom.wants_rest(), "the snapshot was taken up");
        let name = format!(".settled/snapshots/{record:020}.snapshot");
        assert!(room.path(&name).exists(), "{name}");
    }
    drop(mailroom);
    let (mailroom, recovery) = Mailroom::open(room.root()).expect("a start");
    assert_eq!((recovery.snapshot, mailroom.undelivered()), (Some(2), 2));
    drop(mailroom);
    std::fs::remove_file(room.path("agents/codex/inbox")).expect("what was in the way");
    let (mut mailroom, recovery) = Mailroom::open(room.root()).expect("a start");
    assert_eq!((recovery.snapshot, recovery.pass.delivered), (Some(2), 2));
    mailroom.checkpoint().expect("a checkpoint");
    drop(mailroom);
    // Its reader takes one: it does not come again.
    std::fs::remove_file(room.path("agents/codex/inbox/q-1.yaml")).expect("a message");
    let (_, recovery) = Mailroom::open(room.root()).expect("a start");
    assert_eq!((recovery.snapshot, recovery.pass.delivered), (Some(2), 0));
    assert!(room.path("agents/codex/inbox/q-2.yaml").exists());
    assert!(!room.path("agents/codex/inbox/q-1.yaml").exists());
}

#[test]
fn a_closed_mailbox_keeps_no_old_files() {
    let room = Room::new();
    let mut mailroom = keeping(&room, true);
    deliver(&room, &mut mailroom, "q-1");
    close(&room);
    deliver(&room, &mut mailroom, "q-2");
    rest(&mut mailroom, 5_000);
    assert!(!is_kept(&room, "q-1"));
}

#[test]
fn a_mailroom_wants_rest_from_when_a_snapshot_is_due_until_it_is_taken_up() {
    let room = Room::new();
    let mut mailroom = Mailroom::open(room.root()).expect("a start").0;
    make_snapshots(&mut mailroom);
    assert!(!mailroom.wants_rest(), "there is no record yet");
    deliver(&room, &mut mailroom, "q-1");
    assert!(mailroom.wants_rest(), "a snapshot is due");
    mailroom.rest(at(2));
    assert!(mailroom.wants_rest(), "it is being made");
    mailroom.close();
    assert!(!mailroom.wants_rest(), "it was taken up");
}
