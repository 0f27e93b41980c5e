//! A file that is not complete gets half a second, five or thirty, depending on what is missing.

use std::collections::BTreeSet;
use std::sync::Arc;

use daemon::mailroom::{Mailroom, Pass};
use daemon::schedule::Wakeup;
use spool::{DiskFault, FaultyDisk};

use crate::room::{Room, at_ms};

const WHOLE: &str = "id: \"q-1\"\nfrom: claude\nto: codex\ntype: question\npriority: P2\n\
                     created_at_utc: \"2026-02-13T10:00:00Z\"\nsubject: \"Which?\"\nbody: \"?\"\n";

const OUTBOX: &str = "agents/claude/outbox/q-1.yaml";

/// A mailroom that first sees a file with this text at 10 s, when it was written.
fn seeing(text: &str) -> (Room, Mailroom) {
    let room = Room::new();
    room.put(OUTBOX, text);
    room.finish(OUTBOX, 10);
    let mailroom = Mailroom::open(room.root()).expect("a start").0;
    (room, mailroom)
}

fn pass(mailroom: &mut Mailroom, ms: i64) -> Pass {
    mailroom.sweep().expect("a sweep");
    mailroom.pass(at_ms(ms)).expect("a pass")
}

#[test]
fn a_message_that_ends_in_the_middle_is_given_five_seconds() {
    // A quote is open, where nobody ends a message on purpose.
    let half = &WHOLE[..WHOLE.len() - 3];
    let (_room, mut refusing) = seeing(half);
    for ms in [10_200, 10_800, 14_999] {
        assert!(pass(&mut refusing, ms).is_empty(), "at {ms}");
    }
    assert_eq!(pass(&mut refusing, 15_300).refused, 1);

    let (room, mut accepting) = seeing(half);
    assert!(pass(&mut accepting, 10_800).is_empty());
    room.put(OUTBOX, WHOLE);
    room.finish(OUTBOX, 12);
    assert_eq!(pass(&mut accepting, 14_000).accepted, 1);
}

const REQUEST: &str = "id: \"r-1\"\nfrom: claude\nto: codex\ntype: review_request\npriority: P1\n\
                       created_at_utc: \"2026-02-13T10:00:00Z\"\nrelated_pr: \"86\"\nsubject: \"Please\"\nbody: |\n  \
                       pr: 86\n  branch: x\n  diff_summary: y\n";

const FEEDBACK: &str = "id: \"f-1\"\nfrom: codex\nto: claude\ntype: review_feedback\npriority: P1\n\
                        created_at_utc: \"2026-02-13T10:00:00Z\"\nrelated_pr: \"86\"\nsubject: \"Findings\"\nbody: |\n  \
                        findings_packet: packets/findings/f.yaml\n  round: 1\n  blocking_count: 0\n";

const PACKET: &str = "findings: [{id: F-001, severity: P3, status: open}]\n";

#[test]
fn a_message_whose_packet_is_missing_is_given_five_seconds_and_judged_once_it_is_there() {
    let waiting = || {
        let (room, mut mailroom) = seeing(REQUEST);
        assert_eq!(pass(&mut mailroom, 20_000).accepted, 1);
        room.put("agents/codex/outbox/f-1.yaml", FEEDBACK);
        room.finish("agents/codex/outbox/f-1.yaml", 20);
        for (at, next) in [(20_800, 20_805), (20_820, 20_840), (20_880, 20_930)] {
            assert!(pass(&mut mailroom, at).is_empty());
            let look = mailroom.schedule(at_ms(at)).at(Wakeup::Look);
            assert_eq!(look, Some(next), "a packet comes unseen");
        }
        (room, mailroom)
    };
    let (_room, mut refusing) = waiting();
    assert!(pass(&mut refusing, 24_999).is_empty());
    assert_eq!(pass(&mut refusing, 25_900).refused, 1);

    let (room, mut accepting) = waiting();
    room.put("packets/findings/f.yaml", PACKET);
    // The daemon judges a message that has waited before newer ones, whichever outbox has the turn.
    room.ask("claude", "codex", "q-2");
    assert_eq!(pass(&mut accepting, 20_930).accepted, 2);
    let mut judged = Vec::new();
    let read = spool::read_ledger(room.root(), &mut |entry| {
        judged.extend(entry.original.as_ref().and(entry.id.clone()));
        Ok(())
    });
    read.expect("a ledger");
    assert_eq!(judged, ["r-1", "f-1", "q-2"]);
}

#[test]
fn a_message_whose_packet_cannot_be_read_is_tried_again_half_a_second_later() {
    const EIO: i32 = 5;
    let mut pauses = BTreeSet::new();
    for look in 1.. {
        let room = Room::new();
        room.put(OUTBOX, REQUEST);
        room.visit(0);
        room.put("agents/codex/outbox/f-1.yaml", FEEDBACK);
        room.put("packets/findings/f.yaml", PACKET);
        let disk = Arc::new(FaultyDisk::new("boot"));
        let opened = Mailroom::open_on(room.root(), Arc::clone(&disk) as _);
        let mut mailroom = opened.expect("a start").0;
        mailroom.sweep().expect("a sweep");
        disk.set(Some(DiskFault::FailLook(look, EIO)));
        let passed = mailroom.pass(at_ms(20_000));
        if disk.looks() < look {
            assert_eq!(passed.expect("a pass without a fault").accepted, 1);
            break;
        }
        if passed.is_ok_and(|pass| pass.is_empty()) {
            let next = mailroom.schedule(at_ms(20_000)).at(Wakeup::Look);
            pauses.insert(next.map(|next| next.cast_signed() - 20_000));
        }
    }
    // A file that cannot be read is looked at again after a tenth of a second, and one whose packet cannot after half.
    assert_eq!(pauses, BTreeSet::from([Some(100), Some(500)]));
}

/// A request to codex, and its feedback, first seen at 20 s without its packet.
fn awaiting_packet() -> (Room, Mailroom) {
    let (room, mut mailroom) = seeing(REQUEST);
    assert_eq!(pass(&mut mailroom, 20_000).accepted, 1);
    room.put("agents/codex/outbox/f-1.yaml", FEEDBACK);
    room.finish("agents/codex/outbox/f-1.yaml", 20);
    assert!(pass(&mut mailroom, 20_500).is_empty());
    (room, mailroom)
}

#[test]
fn a_message_that_is_touched_again_and_again_waits_no_longer_for_its_packet() {
    let (room, mut mailroom) = awaiting_packet();
    for second in 21..25 {
        room.finish("agents/codex/outbox/f-1.yaml", second);
        assert!(pass(&mut mailroom, 1_000 * second + 400).is_empty());
    }
    room.finish("agents/codex/outbox/f-1.yaml", 25);
    assert_eq!(pass(&mut mailroom, 25_800).refused, 1);
}

#[test]
fn a_packet_that_its_writer_has_open_is_waited_for_and_never_judged() {
    const PLACE: &str = "packets/findings/f.yaml";
    let writing = || {
        let (room, mut mailroom) = awaiting_packet();
        room.put(PLACE, "findings: [{id: F-001, severity: P3, status: open}");
        let writer = std::fs::File::options().append(true).open(room.path(PLACE));
        for ms in [20_900, 26_000, 49_000] {
            assert!(pass(&mut mailroom, ms).is_empty(), "at {ms}");
        }
        (room, mailroom, writer.expect("the packet"))
    };
    let (_room, mut mailroom, writer) = writing();
    assert_eq!(pass(&mut mailroom, 51_000).refused, 1, "after 30 s");
    drop(writer);

    let (room, mut mailroom, mut writer) = writing();
    std::io::Write::write_all(&mut writer, b"]\n").expect("its end");
    drop(writer);
    room.finish(PLACE, 49);
    assert_eq!(pass(&mut mailroom, 49_900).accepted, 1);
}
