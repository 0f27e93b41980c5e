//! The ledger does not take a batch, because the disk is full or failing. Nothing of the batch remains, and once there
//! is room the same files and orders are judged as if they came then.

use std::sync::Arc;

use daemon::mailroom::Mailroom;
use message_schema::id::{AgentName, PrNumber};
use review::{Review, ReviewKey};
use spool::{DiskFault, FaultyDisk};
use workspace::clock::Moment;

use crate::room::{Room, at};

/// No space left on device.
const ENOSPC: i32 = 28;

/// Disk quota exceeded.
const EDQUOT: i32 = 122;

/// The second at which everything happens; only the monotonic clock advances.
const SECOND: i64 = 100;

/// A mailroom on a disk that can fail, with an open review, a used name and waiting mail: enough for one batch to touch
/// everything that a batch can.
struct Office {
    room: Room,
    disk: Arc<FaultyDisk>,
    mailroom: Mailroom,
    mono: u64,
}

impl Office {
    fn new() -> Self {
        let room = Room::new();
        room.ask("codex", "claude", "q-1");
        request(&room, ("claude", "codex"), 86, "r-1");
        let disk = Arc::new(FaultyDisk::new("boot"));
        let mut mailroom = open(&room, &disk);
        assert_eq!(mailroom.pass(at(1)).expect("a pass").accepted, 2);
        // All in one outbox, since outboxes take turns: a duplicate, a used name under another id, a review that moves
        // on with its packet, a new review, a refusal that costs an attempt, and others that cost none. Also an order.
        room.ask("codex", "claude", "q-1");
        room.put("agents/codex/outbox/bare.yaml", "no message");
        respond(&room, 2, "f-1");
        respond(&room, 1, "f-2");
        request(&room, ("codex", "claude"), 87, "r-1");
        let order = r#"{"schema_version":1,"id":"o-1","asked_at":"2026-02-13T16:26:40Z","event":{"turns":{"pr":"87","count":2}}}"#;
        room.put(".settled/orders/o-1.json", order);
        Self {
            room,
            disk,
            mailroom,
            mono: 0,
        }
    }

    fn moment(&mut self) -> Moment {
        // Late enough for every file that waits.
        self.mono += 60_000;
        Moment {
            mono: self.mono,
            ..at(SECOND)
        }
    }

    /// Makes a pass; true if the ledger took everything.
    fn pass(&mut self) -> bool {
        let moment = self.moment();
        let done = self.mailroom.sweep().and_then(|()| {
            self.mailroom.pass(moment)?;
            self.mailroom.keep_deadlines(moment.utc, moment)
        });
        done.is_ok()
    }

    /// Frees the disk. If the mailroom no longer trusts its ledger, another start opens it.
    fn recover(mut self) -> Room {
        self.disk.set(None);
        if !self.pass() {
            drop(self.mailroom);
            self.mailroom = open(&self.room, &self.disk);
        }
        for _ in 0..3 {
            assert!(self.pass(), "the disk has room");
        }
        assert_eq!(self.mailroom.undelivered(), 0);
        self.room
    }
}

fn open(room: &Room, disk: &Arc<FaultyDisk>) -> Mailroom {
    let disk = Arc::clone(disk);
    let mut mailroom = Mailroom::open_on(room.root(), disk).expect("a start").0;
    mailroom.sweep().expect("a sweep");
    mailroom
}

fn request(room: &Room, (author, reviewer): (&str, &str), pr: u32, id: &str) {
    room.put(
        &format!("agents/{author}/outbox/{id}.yaml"),
        &format!(
            "id: \"{id}\"\nfrom: {author}\nto: {reviewer}\ntype: review_request\npriority: P1\n\
             created_at_utc: \"2026-02-13T10:00:00Z\"\nrelated_pr: \"{pr}\"\nconversation_id: \"conv-20260213-claude-{pr}\"\n\
             subject: \"Please review\"\nbody: |\n  pr: {pr}\n  branch: x\n  diff_summary: y\n"
        ),
    );
}

fn respond(room: &Room, round: u32, id: &str) {
    room.put(
        "packets/findings/f.yaml",
        "findings:\n  - id: F-001\n    severity: P1\n    title: A leak\n    status: open\n",
    );
    room.put(
        &format!("agents/codex/outbox/{id}.yaml"),
        &format!(
            "id: \"{id}\"\nfrom: codex\nto: claude\ntype: review_feedback\npriority: P1\n\
             created_at_utc: \"2026-02-13T10:00:00Z\"\nrelated_pr: \"86\"\nsubject: \"Findings\"\nbody: |\n  \
             findings_packet: packets/findings/f.yaml\n  round: {round}\n  blocking_count: 1\n"
        ),
    );
}

/// The ledger without what differs between two daemons: the ids they give, the digests of lines, and the identity of
/// files on the disk.
fn ledger(room: &Room) -> Vec<String> {
    let mut lines = Vec::new();
    spool::read_ledger(room.root(), &mut |entry| {
        let mut original = entry.original.clone();
        if let Some(original) = &mut original {
            original.stamp = None;
        }
        lines.push(format!(
            "{} {} {} {:?} {:?} {original:?} {:?} {}",
            entry.seq,
            entry.at,
            entry.kind,
            entry.review,
            entry.id,
            entry.deliveries,
            entry.decision
        ));
        Ok(())
    })
    .expect("a ledger");
    lines.iter().map(|line| without_ids(line)).collect()
}

/// The text with each id that the daemon gave cut to its prefix.
fn without_ids(text: &str) -> String {
    let mut parts = text.split("settled-01");
    let first = parts.next().unwrap_or_default().to_owned();
    let rest = parts.map(|part| part.trim_start_matches(|c: char| c.is_ascii_alphanumeric()));
    rest.fold(first, |text, part| text + "settled-" + part)
}

/// The mailroom's status, its review, and the number of committed files that are not yet made.
fn known(mailroom: &Mailroom) -> (String, Option<Review>, usize) {
    let pr = PrNumber::new("86").expect("a number");
    let [author, reviewer] = ["claude", "codex"].map(|name| AgentName::new(name).expect("a name"));
    let key = ReviewKey::new(None, &pr, author, reviewer);
    let line = mailroom.status_line();
    // The last number counts waiting files, which are not part of the state.
    let (counts, _) = line.rsplit_once(", ").expect("several numbers");
    (
        counts.to_owned(),
        mailroom.review(&key).cloned(),
        mailroom.undelivered(),
    )
}

#[test]
fn what_the_ledger_does_not_take_leaves_nothing_and_is_judged_as_if_it_came_later() {
    let expected = ledger(&Office::new().recover());
    assert_eq!(expected.len(), 8, "{expected:#?}");
    let faults: [fn(u64) -> DiskFault; 4] = [
        |n| DiskFault::Fail(n, ENOSPC),
        |n| DiskFault::FailWithin(n, ENOSPC),
        |n| DiskFault::FailFrom(n, ENOSPC),
        |n| DiskFault::FailFrom(n, EDQUOT),
    ];
    for fault in faults {
        let mut is_taken = false;
        // First the batch is committed, then the order; each stops before the 20th change.
        for n in 1..20 {
            let mut office = Office::new();
            let (records, state) = (ledger(&office.room).len(), known(&office.mailroom));
            office.disk.set(Some(fault(n)));
            office.pass();
            let taken = ledger(&office.room).len();
            assert!(
                n > 1 || taken == records,
                "{:?} stopped no commit",
                fault(n)
            );
            if taken == records {
                assert_eq!(known(&office.mailroom), state, "{:?}", fault(n));
            }
            assert_eq!(ledger(&office.recover()), expected, "{:?}", fault(n));
            is_taken = taken == expected.len();
            if is_taken {
                break;
            }
        }
        assert!(is_taken, "{:?} stops every commit", fault(20));
    }
}
