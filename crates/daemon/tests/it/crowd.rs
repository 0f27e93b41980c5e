//! One agent fills its outbox with messages that wait for packets nobody writes; nobody else is delayed.

use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use daemon::mailroom::{Mailroom, Pass};
use daemon::schedule::Wakeup;
use message_schema::id::{AgentName, PrNumber};
use review::{Review, ReviewKey};
use spool::FaultyDisk;

use crate::room::{Room, at_ms};

/// Less than an hour after the tests begin.
const IN_FUTURE_S: u64 = 1_771_003_000;

/// A workspace with a third agent, whose outbox holds `count` messages with missing packets.
fn crowd(count: usize) -> Room {
    let room = Room::new();
    std::fs::create_dir_all(room.path("agents/mallory/outbox")).expect("an outbox");
    for number in 0..count {
        feedback(&room, number);
    }
    room
}

/// Puts a feedback dated in the future, so that it takes two looks to tell that it is finished.
fn feedback(room: &Room, number: usize) {
    let path = format!("agents/mallory/outbox/f-{number:04}.yaml");
    let text = format!(
        "id: \"f-{number}\"\nfrom: mallory\nto: claude\ntype: review_feedback\npriority: P1\n\
         created_at_utc: \"2026-02-13T10:00:00Z\"\nrelated_pr: \"86\"\nsubject: \"Findings\"\nbody: |\n  \
         findings_packet: packets/findings/none-{number}.yaml\n  round: 1\n  blocking_count: 0\n"
    );
    std::fs::write(room.path(&path), text).expect("a message");
    let file = File::options().write(true).open(room.path(&path));
    file.expect("the message")
        .set_modified(UNIX_EPOCH + Duration::from_secs(IN_FUTURE_S))
        .expect("a file's time can be set");
}

fn open(room: &Room) -> Mailroom {
    let mut mailroom = Mailroom::open(room.root()).expect("a start").0;
    mailroom.sweep().expect("a sweep");
    mailroom
}

/// Makes every pass that has something to do from `ms` to `until`; returns their sum and number.
fn passes(mailroom: &mut Mailroom, mut ms: i64, until: i64) -> (Pass, usize) {
    let (mut sum, mut count) = (Pass::default(), 0);
    while ms < until {
        let pass = mailroom.pass(at_ms(ms)).expect("a pass");
        sum.accepted += pass.accepted;
        sum.refused += pass.refused;
        count += 1;
        let next = mailroom.schedule(at_ms(ms)).at(Wakeup::Look);
        let next = next.and_then(|at| i64::try_from(at).ok());
        ms = next.map_or(until, |at| at.max(ms));
    }
    (sum, count)
}

#[test]
fn an_outbox_may_have_256_that_wait_and_all_are_refused_five_seconds_after_they_were_seen() {
    let room = crowd(300);
    let mut mailroom = open(&room);
    let (pass, _) = passes(&mut mailroom, 10_000, 14_900);
    assert_eq!(pass.refused, 44, "those for which there is no room");
    let (pass, _) = passes(&mut mailroom, 14_900, 15_400);
    assert_eq!(pass.refused, 256, "each had its five seconds");
    assert_eq!(mailroom.unread(), 0);
}

#[test]
fn while_a_crowd_waits_only_its_head_is_looked_at() {
    let of_one = looks_beside(1);
    assert!(of_one > 0, "a message that waits is looked at");
    assert_eq!(looks_beside(200), of_one);
}

/// The reads of the disk within the second second in which `count` messages wait.
fn looks_beside(count: usize) -> u64 {
    let room = crowd(count);
    let disk = Arc::new(FaultyDisk::new("boot"));
    let opened = Mailroom::open_on(room.root(), Arc::clone(&disk) as _);
    let mut mailroom = opened.expect("a start").0;
    mailroom.sweep().expect("a sweep");
    passes(&mut mailroom, 10_000, 11_000);
    disk.set(None);
    passes(&mut mailroom, 11_000, 12_000);
    disk.looks()
}

#[test]
fn a_review_message_to_nobody_or_to_many_waits_behind_none_and_is_refused_within_two_seconds() {
    let room = crowd(2);
    let many: Vec<String> = (0..300).map(|n| format!("n{n}")).collect();
    for (number, to) in [
        (0, "\"\"".to_owned()),
        (1, "[claude, codex]".to_owned()),
        (2, format!("[{}]", many.join(", "))),
        (3, "x".repeat(100_000)),
    ] {
        feedback(&room, 10 + number);
        let path = room.path(&format!("agents/mallory/outbox/f-{:04}.yaml", 10 + number));
        let text = std::fs::read_to_string(&path).expect("the message");
        let text = text.replace("to: claude", &format!("to: {to}"));
        std::fs::write(&path, text).expect("the message");
    }
    let mut mailroom = open(&room);
    let (pass, _) = passes(&mut mailroom, 10_000, 12_000);
    assert_eq!(pass.refused, 4);
    assert_eq!(mailroom.unread(), 2, "they wait for their packets");
}

#[test]
fn when_the_head_is_withdrawn_the_next_is_judged_at_once() {
    let room = crowd(2);
    let mut mailroom = open(&room);
    passes(&mut mailroom, 10_000, 11_000);
    // The packet arrives while its message waits behind the other.
    room.put("packets/findings/none-1.yaml", "findings: []\n");
    assert_eq!(passes(&mut mailroom, 11_000, 11_500).0.refused, 0);
    std::fs::remove_file(room.path("agents/mallory/outbox/f-0000.yaml")).expect("the head");
    let (pass, _) = passes(&mut mailroom, 11_500, 11_700);
    assert_eq!(pass.refused, 1, "no request of claude's waits for it");
    assert_eq!(mailroom.unread(), 0);
}

#[test]
fn a_deadline_of_others_comes_while_a_crowd_waits() {
    let room = crowd(200);
    room.put(
        "agents/claude/outbox/r-1.yaml",
        "id: \"r-1\"\nfrom: claude\nto: codex\ntype: review_request\npriority: P1\n\
         created_at_utc: \"2026-02-13T10:00:00Z\"\nrelated_pr: \"7\"\nsubject: \"Please\"\nbody: |\n  \
         pr: 7\n  branch: x\n  diff_summary: y\n  max_runtime_s_reviewer: 3\n",
    );
    let mut mailroom = open(&room);
    passes(&mut mailroom, 10_000, 10_500);
    let [inbox, taken] = ["inbox", "archive"].map(|to| room.path(&format!("agents/codex/{to}")));
    std::fs::create_dir_all(&taken).expect("a place to keep it");
    std::fs::rename(inbox.join("r-1.yaml"), taken.join("r-1.yaml")).expect("the request");
    mailroom.sweep().expect("a sweep");
    passes(&mut mailroom, 10_500, 10_600);
    let [author, reviewer] = ["claude", "codex"].map(|name| AgentName::new(name).expect("a name"));
    let pr = PrNumber::new("7").expect("a number");
    let review = mailroom.review(&ReviewKey::new(None, &pr, author, reviewer));
    let (at, _) = review.and_then(Review::deadline).expect("its seconds run");
    let now = at_ms((at - at_ms(0).utc).num_milliseconds());
    let look = mailroom.schedule(now).at(Wakeup::Look);
    assert!(look.is_some(), "the crowd still waits");
    mailroom.sweep().expect("a sweep");
    let kept = mailroom.keep_deadlines_in_turn(now);
    assert_eq!(kept.expect("a deadline").events, 1);
}
