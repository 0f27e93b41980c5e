//! A file that is not complete gets half a second or five, depending on what is missing.

use daemon::mailroom::{Mailroom, Pass};
use daemon::schedule::Wakeup;

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

#[test]
fn a_message_whose_packet_is_missing_is_given_five_seconds_and_judged_once_it_is_there() {
    let feedback = "id: \"f-1\"\nfrom: codex\nto: claude\ntype: review_feedback\npriority: P1\n\
                    created_at_utc: \"2026-02-13T10:00:00Z\"\nrelated_pr: \"86\"\nsubject: \"Findings\"\nbody: |\n  \
                    findings_packet: packets/findings/f.yaml\n  round: 1\n  blocking_count: 0\n";
    let waiting = || {
        let (room, mut mailroom) = seeing(
            "id: \"r-1\"\nfrom: claude\nto: codex\ntype: review_request\npriority: P1\n\
             created_at_utc: \"2026-02-13T10:00:00Z\"\nrelated_pr: \"86\"\nsubject: \"Please\"\nbody: |\n  \
             pr: 86\n  branch: x\n  diff_summary: y\n",
        );
        assert_eq!(pass(&mut mailroom, 20_000).accepted, 1);
        room.put("agents/codex/outbox/f-1.yaml", feedback);
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
    let packet = "findings: [{id: F-001, severity: P3, status: open}]\n";
    room.put("packets/findings/f.yaml", packet);
    assert_eq!(pass(&mut accepting, 20_930).accepted, 1);
}
