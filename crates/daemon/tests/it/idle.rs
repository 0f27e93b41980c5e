//! Tests that an idle daemon reads its disk equally often, whatever the workspace holds.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use chrono::{DateTime, TimeDelta, Utc};
use daemon::mailroom::Mailroom;
use daemon::schedule::Wakeup;
use spool::FaultyDisk;
use workspace::clock::Moment;
use workspace::operator_alerts::Alert;

use crate::room::Room;

/// This second of a daemon that starts an hour from now, long after the test last changed a directory.
fn at(second: u32) -> Moment {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("a time after 1970");
    let now = i64::try_from(since.as_secs()).expect("a time of our days");
    let start = DateTime::<Utc>::from_timestamp(now, 0).expect("an instant") + TimeDelta::hours(1);
    Moment {
        mono: u64::from(second) * 1_000,
        utc: start + TimeDelta::seconds(second.into()),
    }
}

/// Does what a daemon does every two seconds.
fn turn(mailroom: &mut Mailroom, second: u32) {
    let now = at(second);
    mailroom.sweep().expect("a sweep");
    mailroom.look_for_unknown_senders(now);
    loop {
        mailroom.pass(now).expect("a pass");
        if mailroom.schedule(now).at(Wakeup::Look).is_none() {
            break;
        }
    }
    mailroom.keep_deadlines(now.utc, now).expect("deadlines");
}

/// The number of times an idle daemon reads its disk in one such turn.
fn looks(room: &Room) -> u64 {
    let disk = Arc::new(FaultyDisk::new("boot"));
    let opened = Mailroom::open_on(room.root(), Arc::clone(&disk) as _);
    let mut mailroom = opened.expect("a start").0;
    (0..4).for_each(|n| turn(&mut mailroom, 2 * n));
    disk.set(None);
    turn(&mut mailroom, 8);
    disk.looks()
}

fn request(room: &Room, number: usize) {
    let text = format!(
        "id: \"r-{number}\"\nfrom: claude\nto: codex\ntype: review_request\npriority: P1\n\
         created_at_utc: \"2026-02-13T10:00:00Z\"\nsubject: \"Review\"\nbody: |\n  pr: {number}\n  \
         branch: main\n  diff_summary: A change.\n"
    );
    room.put(&format!("agents/claude/outbox/r-{number:03}.yaml"), &text);
}

/// The reads of an idle daemon in a workspace where `lie` has put `count` things.
fn looks_at(count: usize, lie: impl Fn(&Room, usize)) -> u64 {
    let room = Room::new();
    (1..=count).for_each(|number| lie(&room, number));
    let looks = looks(&room);
    let inbox = std::fs::read_dir(room.path("agents/codex/inbox")).expect("an inbox");
    assert_eq!(inbox.count(), count);
    looks
}

#[test]
fn fifty_untaken_requests_cost_what_one_costs() {
    assert_eq!(looks_at(50, request), looks_at(1, request));
}

#[test]
fn fifty_unread_messages_cost_what_one_costs() {
    let ask = |room: &Room, number| room.ask("claude", "codex", &format!("q-{number:03}"));
    assert_eq!(looks_at(50, ask), looks_at(1, ask));
}

#[test]
fn a_request_that_leaves_a_quiet_inbox_is_taken_in_the_next_turn() {
    let room = Room::new();
    request(&room, 1);
    request(&room, 2);
    let mut mailroom = Mailroom::open(room.root()).expect("a start").0;
    (0..4).for_each(|n| turn(&mut mailroom, 2 * n));
    std::fs::remove_file(room.path("agents/codex/inbox/r-002.yaml")).expect("it was delivered");
    turn(&mut mailroom, 8);
    let mut taken = Vec::new();
    spool::read_ledger(room.root(), &mut |entry| {
        taken.extend(
            (entry.kind == "taken")
                .then(|| entry.review.clone())
                .flatten(),
        );
        Ok(())
    })
    .expect("a ledger");
    assert_eq!(taken, ["#2 claude -> codex"]);
}

#[test]
fn forged_files_among_a_thousand_unread_messages_are_told_as_fast_as_the_files_can_be_read() {
    let room = Room::new();
    let config = "[limits]\nmessages_per_hour = 10000\n";
    std::fs::write(room.path("settled.toml"), config).expect("a config");
    (0..1_000).for_each(|number| room.ask("claude", "codex", &format!("q-{number:03}")));
    let mut mailroom = Mailroom::open(room.root()).expect("a start").0;
    turn(&mut mailroom, 0);
    drop(mailroom);
    let inbox = std::fs::read_dir(room.path("agents/codex/inbox")).expect("an inbox");
    assert_eq!(inbox.count(), 1_000);
    (0..10).for_each(|n| room.put(&format!("agents/codex/inbox/forged-{n}.yaml"), "id: x\n"));
    let mut mailroom = Mailroom::open(room.root()).expect("a start").0;
    // Each scan reads 64 files, and the daemon reports a file at the second scan that finds no sender.
    (1..=18).for_each(|n| turn(&mut mailroom, 2 * n));
    assert_eq!(workspace::operator_alerts::read(room.root()).len(), 10);
}

#[test]
fn forged_files_in_one_inbox_hide_none_in_another_and_each_is_told_once_there_is_room() {
    let room = Room::new();
    let forge = |agent: &str, number: usize| {
        room.put(
            &format!("agents/{agent}/inbox/f-{number:03}.yaml"),
            "id: x\n",
        );
    };
    (0..150).for_each(|number| forge("claude", number));
    let mut mailroom = Mailroom::open(room.root()).expect("a start").0;
    (0..12).for_each(|n| turn(&mut mailroom, 2 * n));
    forge("codex", 0);
    (12..16).for_each(|n| turn(&mut mailroom, 2 * n));
    let alerts = || workspace::operator_alerts::read(room.root());
    let of_claude = |alert: &Alert| alert.path.starts_with(room.path("agents/claude"));
    let first: Vec<Alert> = alerts().into_iter().filter(of_claude).collect();
    assert_eq!((alerts().len(), first.len()), (101, 100));
    for alert in first {
        std::fs::remove_file(alert.path).expect("a forged file");
    }
    (16..26).for_each(|n| turn(&mut mailroom, 2 * n));
    assert_eq!(alerts().len(), 51);
}

#[test]
fn forged_files_that_one_listing_leaves_to_the_next_are_told_within_two_minutes() {
    let room = Room::new();
    room.ask("claude", "codex", "q-1");
    let mut mailroom = Mailroom::open(room.root()).expect("a start").0;
    turn(&mut mailroom, 0);
    let inbox = room.path("agents/codex/inbox");
    for n in 0..1_500 {
        // Copies of what was delivered are known, and a listing chooses 1 024 files.
        let copy = inbox.join(format!("copy-{n:04}.yaml"));
        std::fs::copy(inbox.join("q-1.yaml"), copy).expect("a copy");
    }
    (0..10).for_each(|n| room.put(&format!("agents/codex/inbox/forged-{n}.yaml"), "id: x\n"));
    (1..=60).for_each(|n| turn(&mut mailroom, 2 * n));
    assert_eq!(workspace::operator_alerts::read(room.root()).len(), 10);
}

#[test]
fn an_inbox_full_of_files_too_large_to_read_rests_between_scans() {
    let room = Room::new();
    room.ask("claude", "codex", "q-1");
    let disk = Arc::new(FaultyDisk::new("boot"));
    let opened = Mailroom::open_on(room.root(), Arc::clone(&disk) as _);
    let mut mailroom = opened.expect("a start").0;
    // The scans know the delivered message before the large files come: a scan that judges a file does not rest.
    (0..4).for_each(|n| turn(&mut mailroom, 2 * n));
    let mut looks_at = |second| {
        disk.set(None);
        mailroom.look_for_unknown_senders(at(second));
        disk.looks()
    };
    let quiet = looks_at(8);
    for n in 0..2_000 {
        let path = room.path(&format!("agents/codex/inbox/large-{n:04}.yaml"));
        let file = std::fs::File::create(path).expect("a file");
        file.set_len(2 << 20).expect("a sparse file");
    }
    assert!(looks_at(10) > 64);
    // Two milliseconds for each name, so four seconds in which only the other inbox is scanned.
    assert!(looks_at(12) < quiet);
    assert!(looks_at(15) > 64, "scanned again after its rest");
}

#[test]
fn forged_files_among_thousands_that_cannot_be_judged_are_told() {
    let room = Room::new();
    for n in 0..2_000 {
        let path = room.path(&format!("agents/codex/inbox/large-{n:04}.yaml"));
        let file = std::fs::File::create(path).expect("a file");
        file.set_len(2 << 20).expect("a sparse file");
    }
    for number in 0..10 {
        room.put(&format!("agents/codex/inbox/f-{number}.yaml"), "id: x\n");
    }
    let mut mailroom = Mailroom::open(room.root()).expect("a start").0;
    // Each scan reads 64 files and rests for four seconds; those before and after the cut of a listing come in turn.
    (0..80).for_each(|n| mailroom.look_for_unknown_senders(at(5 * n)));
    assert_eq!(workspace::operator_alerts::read(room.root()).len(), 10);
}

#[test]
fn an_inbox_of_which_some_was_read_is_not_listed_again() {
    let room = Room::new();
    let config = "[limits]\nmessages_per_hour = 10000\n";
    std::fs::write(room.path("settled.toml"), config).expect("a config");
    (0..300).for_each(|number| room.ask("claude", "codex", &format!("q-{number:03}")));
    let disk = Arc::new(FaultyDisk::new("boot"));
    let opened = Mailroom::open_on(room.root(), Arc::clone(&disk) as _);
    let mut mailroom = opened.expect("a start").0;
    turn(&mut mailroom, 0);
    let mut looks_at = |second| {
        disk.set(None);
        mailroom.look_for_unknown_senders(at(second));
        disk.looks()
    };
    let first = looks_at(2);
    assert!((2..=4).all(|n| looks_at(2 * n) < first), "each reads 64");
}

#[test]
fn what_was_sent_is_looked_after_less_and_less_often() {
    let room = Room::new();
    (1..=50).for_each(|number| request(&room, number));
    drop(Mailroom::open(room.root()).map(|mut opened| turn(&mut opened.0, 0)));
    let disk = Arc::new(FaultyDisk::new("boot"));
    let opened = Mailroom::open_on(room.root(), Arc::clone(&disk) as _);
    let mut mailroom = opened.expect("a start").0;
    let mut looks_at = |second| {
        disk.set(None);
        mailroom
            .look_for_changed_originals(at(second))
            .expect("a look");
        disk.looks()
    };
    let often: Vec<bool> = (0..16).map(|n| looks_at(2 * n) >= 50).collect();
    let looked: Vec<usize> = (0..16).filter(|n| often[*n]).map(|n| 2 * n).collect();
    assert_eq!(looked, [0, 2, 6, 14, 30]);
}
