//! What time does to a review, with clocks that the test sets: deadlines that pass while no daemon
//! runs, and what lies in an outbox or has left an inbox by then.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use chrono::{DateTime, TimeDelta, Utc};
use settled::clock::Moment;
use settled::mailroom::{Mailroom, Pass};
use settled::workspace;
use tempfile::TempDir;

/// When every test begins, in seconds since 1970: 2026-02-13T16:26:40Z.
const BEGIN: i64 = 1_771_000_000;

/// The request's runtime, in seconds.
const RUNTIME_S: i64 = 600;

/// How long the reviewer of a P1 request may take to pick it up, in seconds.
const PICK_UP_S: i64 = 24 * 3600;

/// A workspace that nobody serves but when the test says so.
struct Room {
    root: TempDir,
}

impl Room {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a directory");
        let agents = ["claude", "codex"].map(|name| name.parse().expect("a name"));
        workspace::init(root.path(), &agents).expect("a workspace");
        Self { root }
    }

    /// One in which a review is open since second 1.
    fn with_an_open_review() -> Self {
        let room = Self::new();
        room.request();
        assert_eq!(room.visit(1).accepted, 1);
        room
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    /// Writes a message so that it was finished at this second.
    fn post(&self, from: &str, to: &str, kind: &str, body: &str, second: u64) {
        let path = self.path(&format!("agents/{from}/outbox/{kind}.yaml"));
        let text = format!(
            "id: \"{kind}\"\nfrom: {from}\nto: {to}\ntype: {kind}\npriority: P1\n\
             created_at_utc: \"2026-02-13T10:00:00Z\"\nrelated_pr: \"86\"\nsubject: \"{kind}\"\nbody: |\n  {body}\n"
        );
        std::fs::write(&path, text).expect("a message");
        finish(&path, second);
    }

    fn request(&self) {
        let body = format!("pr: 86\n  branch: x\n  diff_summary: y\n  max_runtime_s_reviewer: {RUNTIME_S}");
        self.post("claude", "codex", "review_request", &body, 0);
    }

    /// An approval, finished at this second.
    fn approve(&self, second: u64) {
        self.post("codex", "claude", "review_lgtm", "quality_gate_result: pass\n  merge_ready: true", second);
    }

    /// The reviewer moves its request out of the inbox.
    fn take(&self) {
        let [inbox, archive] = ["inbox", "archive"]
            .map(|directory| self.path(&format!("agents/codex/{directory}/review_request.yaml")));
        std::fs::rename(inbox, archive).expect("the reviewer takes its request");
    }

    fn open(&self) -> Mailroom {
        Mailroom::open(self.root.path()).expect("a start").0
    }

    /// A daemon that starts at this second, does what there is to do, and ends.
    fn visit(&self, second: i64) -> Pass {
        let (mut mailroom, now) = (self.open(), at(second));
        mailroom.sweep().expect("a sweep");
        let mut done = mailroom.pass(now).expect("a pass");
        done.events += mailroom.keep_deadlines(now).expect("deadlines").events;
        mailroom.pass(now).expect("a pass");
        done
    }

    /// The last record's kind and decision, as the ledger has them.
    fn last(&self) -> (String, String) {
        let mut last = (String::new(), String::new());
        spool::read_ledger(self.root.path(), &mut |entry| {
            last = (entry.kind.clone(), entry.decision.get().to_owned());
            Ok(())
        })
        .expect("a ledger");
        last
    }

    fn assert_last(&self, kind: &str, part: &str) {
        let (last, decision) = self.last();
        assert!(
            last == kind && decision.contains(part),
            "expected {kind} with {part}, found {last} {decision}"
        );
    }
}

fn begin() -> DateTime<Utc> {
    DateTime::from_timestamp(BEGIN, 0).expect("an instant")
}

fn at(second: i64) -> Moment {
    at_ms(second * 1_000)
}

fn at_ms(ms: i64) -> Moment {
    Moment { mono: ms.unsigned_abs(), utc: begin() + TimeDelta::milliseconds(ms) }
}

fn finish(path: &Path, second: u64) {
    let begin = UNIX_EPOCH + Duration::from_secs(BEGIN.unsigned_abs());
    let file = File::options().write(true).open(path).expect("the message");
    file.set_modified(begin + Duration::from_secs(second)).expect("a file's time can be set");
}

#[test]
fn an_answer_that_lay_in_the_outbox_counts_however_late_the_daemon_looks() {
    let room = Room::with_an_open_review();
    room.approve(60);
    let pass = room.visit(30 * PICK_UP_S);
    assert_eq!((pass.accepted, pass.events), (1, 0));
    room.assert_last("accepted", "\"approved\"");
}

#[test]
fn without_an_answer_the_review_is_escalated_at_the_next_start() {
    let room = Room::with_an_open_review();
    assert!(room.visit(PICK_UP_S).is_empty(), "it was opened at second 1");
    assert_eq!(room.visit(PICK_UP_S + 1).events, 1);
    room.assert_last("deadline", "reviewer_timeout");
    room.approve(60);
    assert_eq!(room.visit(PICK_UP_S + 2).refused, 1, "too late");
}

#[test]
fn a_request_that_leaves_its_inbox_is_taken_and_its_seconds_count() {
    let room = Room::with_an_open_review();
    assert_eq!(room.visit(10).events, 0, "it still lies there");
    room.take();
    assert_eq!(room.visit(20).events, 1);
    room.assert_last("taken", "\"taken_at\":\"2026-02-13T16:27:00Z\"");
    assert!(room.visit(30).is_empty(), "it is taken once");

    assert!(room.visit(20 + RUNTIME_S - 1).is_empty());
    assert_eq!(room.visit(20 + RUNTIME_S).events, 1);
    room.assert_last("deadline", "reviewer_budget_exceeded");
}

#[test]
fn a_request_that_left_while_no_daemon_ran_was_picked_up() {
    let room = Room::with_an_open_review();
    room.take();
    assert_eq!(room.visit(2 * PICK_UP_S).events, 1);
    room.assert_last("taken", "taken_at");
}

#[test]
fn a_request_that_was_not_delivered_yet_is_not_taken() {
    let room = Room::new();
    let inbox = room.path("agents/codex/inbox");
    std::fs::remove_dir(&inbox).expect("an empty inbox");
    std::fs::write(&inbox, "in the way").expect("a file");
    room.request();
    let mut mailroom = room.open();
    let look = |mailroom: &mut Mailroom, second| {
        mailroom.sweep().expect("a sweep");
        let pass = mailroom.pass(at(second)).expect("a pass");
        (inbox.join("review_request.yaml").exists(), pass.events)
    };
    assert_eq!([1, 2].map(|second| look(&mut mailroom, second)), [(false, 0), (false, 0)], "parked");
    std::fs::remove_file(&inbox).expect("what is in the way");
    assert_eq!(
        [60, 61].map(|second| look(&mut mailroom, second)),
        [(true, 0), (true, 0)],
        "it lies there now"
    );
    room.take();
    assert_eq!(look(&mut mailroom, 62), (false, 1));
}

#[test]
fn a_file_in_doubt_holds_an_order_up_but_not_for_long() {
    let room = Room::with_an_open_review();
    let mut mailroom = room.open();
    // An answer whose packet is not there yet.
    let body = "quality_gate_result: pass\n  merge_ready: true\n  findings_packet: packets/findings/r1.yaml";
    room.post("codex", "claude", "review_lgtm", body, 2);
    let order = format!(
        r#"{{"schema_version":1,"id":"o-1","asked_at":"{}","event":{{"turns":{{"pr":"86","count":8}}}}}}"#,
        begin().to_rfc3339()
    );
    std::fs::write(room.path(".settled/orders/o-1.json"), order).expect("an order");
    let events = |mailroom: &mut Mailroom, ms| mailroom.pass(at_ms(ms)).expect("a pass").events;
    assert_eq!(events(&mut mailroom, 3_200), 0, "the answer may be whole in a moment");
    assert!(mailroom.next_wakeup().is_some_and(|due| due <= 4_200));
    assert_eq!(events(&mut mailroom, 4_199), 0);
    assert_eq!(events(&mut mailroom, 4_200), 1, "a second is enough");
    assert!(!room.path(".settled/orders/o-1.json").exists());
}
