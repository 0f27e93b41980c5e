//! Tests the effect of time on a review with clocks that the test sets: deadlines that pass while no daemon runs, and
//! files that are in an outbox or have left an inbox by then.
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use chrono::{DateTime, TimeDelta, Utc};
use daemon::mailroom::{Mailroom, Pass};
use daemon::schedule::Wakeup;
use tempfile::TempDir;
use workspace::clock::Moment;
use workspace::directory;

use crate::scratch::scratch;

/// The time at which every test begins, in seconds since 1970: 2026-02-13T16:26:40Z.
const BEGIN: i64 = 1_771_000_000;

/// The request's runtime, in seconds.
const RUNTIME_S: i64 = 600;

/// The time that the reviewer of a P1 request has to pick it up, in seconds.
const PICK_UP_S: i64 = 24 * 3600;

/// The two agents of another review.
const OTHERS: [&str; 2] = ["gemini", "qwen"];

/// A workspace that is served only when a test says so.
struct Room {
    root: TempDir,
}

impl Room {
    fn new() -> Self {
        let root = scratch();
        let agents = ["claude", "codex", "gemini", "qwen"];
        let agents = agents.map(|name| name.parse().expect("a name"));
        directory::init(root.path(), &agents).expect("a workspace");
        Self { root }
    }

    /// A room with a review that was opened at second 1.
    fn with_an_open_review() -> Self {
        let room = Self::new();
        room.request();
        assert_eq!(room.visit(1).accepted, 1);
        room
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    /// Writes a message that was finished at this second.
    fn post(&self, from: &str, to: &str, kind: &str, body: &str, second: u64) {
        let path = self.path(&format!("agents/{from}/outbox/{kind}.yaml"));
        let pr = if [from, to] == OTHERS { "87" } else { "86" };
        let text = format!(
            "id: \"{kind}\"\nfrom: {from}\nto: {to}\ntype: {kind}\npriority: P1\n\
             created_at_utc: \"2026-02-13T10:00:00Z\"\nrelated_pr: \"{pr}\"\nsubject: \"{kind}\"\nbody: |\n  {body}\n"
        );
        std::fs::write(&path, text).expect("a message");
        finish(&path, second);
    }

    fn request(&self) {
        self.ask(["claude", "codex"], "86");
    }

    fn ask(&self, [from, to]: [&str; 2], pr: &str) {
        let body = format!(
            "pr: {pr}\n  branch: x\n  diff_summary: y\n  max_runtime_s_reviewer: {RUNTIME_S}"
        );
        self.post(from, to, "review_request", &body, 0);
    }

    /// Approves the review in a message finished at this second.
    fn approve(&self, second: u64) {
        self.post(
            "codex",
            "claude",
            "review_lgtm",
            "quality_gate_result: pass\n  merge_ready: true",
            second,
        );
    }

    /// The same, but the approval names a packet that does not exist.
    fn approve_without_packet(&self, second: u64) {
        let body = "quality_gate_result: pass\n  merge_ready: true\n  findings_packet: packets/findings/r1.yaml";
        self.post("codex", "claude", "review_lgtm", body, second);
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

    /// Starts a daemon at this second, which does all its work and ends.
    fn visit(&self, second: i64) -> Pass {
        let (mut mailroom, now) = (self.open(), at(second));
        mailroom.sweep().expect("a sweep");
        let mut done = mailroom.pass(now).expect("a pass");
        done.events += mailroom
            .keep_deadlines(now.utc, now)
            .expect("deadlines")
            .events;
        mailroom.pass(now).expect("a pass");
        done
    }

    /// Puts more files into the reviewer's outbox than one batch takes, all finished at this second.
    fn flood(&self, wave: u64, second: u64) {
        for number in 0..300 {
            let path = self.path(&format!("agents/codex/outbox/{wave}-{number:03}.yaml"));
            std::fs::write(&path, "no message").expect("a file");
            finish(&path, second);
        }
    }

    /// Orders, as the reviewer's runner would, that all turns of the budget are used.
    fn order_turns(&self) {
        let order = format!(
            r#"{{"schema_version":1,"id":"o-1","asked_at":"{}","event":{{"turns":{{"pr":"86","count":8}}}}}}"#,
            begin().to_rfc3339()
        );
        std::fs::write(self.path(".settled/orders/o-1.json"), order).expect("an order");
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
    Moment {
        mono: ms.unsigned_abs(),
        utc: begin() + TimeDelta::milliseconds(ms),
    }
}

fn finish(path: &Path, second: u64) {
    let begin = UNIX_EPOCH + Duration::from_secs(BEGIN.unsigned_abs());
    let file = File::options().write(true).open(path).expect("the message");
    file.set_modified(begin + Duration::from_secs(second))
        .expect("a file's time can be set");
}

/// Makes one turn of the daemon's loop.
fn turn(mailroom: &mut Mailroom, ms: i64) -> Pass {
    mailroom.sweep().expect("a sweep");
    let mut done = mailroom.pass(at_ms(ms)).expect("a pass");
    done.events += mailroom
        .keep_deadlines_in_turn(at_ms(ms))
        .expect("deadlines")
        .events;
    done
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
    assert!(
        room.visit(PICK_UP_S).is_empty(),
        "it was opened at second 1"
    );
    assert_eq!(room.visit(PICK_UP_S + 1).events, 1);
    room.assert_last("deadline", "reviewer_timeout");
    room.approve(60);
    assert_eq!(room.visit(PICK_UP_S + 2).refused, 1, "too late");
}

#[test]
fn a_response_begun_after_a_deadline_comes_too_late_although_no_daemon_ran() {
    const DUE: u64 = 20 + RUNTIME_S.unsigned_abs();
    for (finished, [accepted, refused, events]) in [(DUE + 5, [1, 0, 0]), (DUE + 6, [0, 1, 1])] {
        let room = Room::with_an_open_review();
        room.take();
        assert_eq!(room.visit(20).events, 1, "it is taken");
        room.approve(finished);
        let mut mailroom = room.open();
        let mut found = [0; 3];
        for second in DUE + 60..DUE + 72 {
            let Pass {
                accepted,
                refused,
                events,
                ..
            } = turn(&mut mailroom, second.cast_signed() * 1_000);
            found = [found[0] + accepted, found[1] + refused, found[2] + events];
        }
        assert_eq!(found, [accepted, refused, events], "finished at {finished}");
    }
}

#[test]
fn a_request_that_leaves_its_inbox_is_taken_and_its_seconds_count() {
    let room = Room::with_an_open_review();
    assert_eq!(room.visit(10).events, 0, "it is still there");
    room.take();
    assert_eq!(room.visit(20).events, 1);
    room.assert_last("taken", "\"taken_at\":\"2026-02-13T16:27:00Z\"");
    assert!(room.visit(30).is_empty(), "it is taken once");

    assert!(room.visit(20 + RUNTIME_S - 1).is_empty());
    assert_eq!(room.visit(20 + RUNTIME_S).events, 1);
    room.assert_last("deadline", "reviewer_budget_exceeded");
}

#[test]
fn a_request_that_was_taken_counts_as_taken_also_when_another_replaces_it_before_the_next_sweep() {
    let room = Room::with_an_open_review();
    room.take();
    let body = format!(
        "pr: 86\n  branch: x\n  diff_summary: y\n  max_runtime_s_reviewer: {RUNTIME_S}\n  \
         supersedes_message_id: review_request"
    );
    room.post("claude", "codex", "review_request", &body, 10);
    let path = room.path("agents/claude/outbox/review_request.yaml");
    let text = std::fs::read_to_string(&path).expect("the request");
    std::fs::write(
        &path,
        text.replace("id: \"review_request\"", "id: \"again\""),
    )
    .expect("another id");
    finish(&path, 10);
    let pass = room.visit(20);
    assert_eq!((pass.accepted, pass.events), (1, 1));
    room.assert_last("taken", "\"taken_at\":\"2026-02-13T16:27:00Z\"");
    assert!(room.visit(30).is_empty(), "it is taken once");
    assert_eq!(room.visit(20 + RUNTIME_S).events, 1);
}

#[test]
fn an_agent_that_leaves_the_roll_and_comes_back_is_heard_after_the_next_sweep() {
    let room = Room::with_an_open_review();
    let mut mailroom = room.open();
    mailroom.sweep().expect("a sweep");
    let [codex, away] = [room.path("agents/codex"), room.path("away")];
    std::fs::rename(&codex, &away).expect("it leaves");
    mailroom.sweep().expect("a sweep");
    std::fs::rename(&away, &codex).expect("it comes back");
    room.approve(60);
    let file = spool::FileName::new("review_lgtm.yaml").expect("a name");
    mailroom.hint("codex", &file);
    assert!(mailroom.pass(at(61)).expect("a pass").is_empty());
    assert_eq!(turn(&mut mailroom, 63_000).accepted, 1);
}

#[test]
fn an_order_waits_for_the_next_sweep_while_the_outboxes_cannot_be_listed() {
    let room = Room::with_an_open_review();
    let mut mailroom = room.open();
    room.order_turns();
    let [agents, away] = [room.path("agents"), room.path("away")];
    std::fs::rename(&agents, &away).expect("they are gone");
    for second in [10, 12] {
        assert!(mailroom.pass(at(second)).expect("a pass").is_empty());
        let schedule = mailroom.schedule(at(second));
        assert_eq!(
            [Wakeup::Look, Wakeup::Orders, Wakeup::Retry].map(|wakeup| schedule.at(wakeup)),
            [None; 3],
            "nothing is to be done before the next sweep"
        );
    }
    std::fs::rename(&away, &agents).expect("they are back");
    assert_eq!(turn(&mut mailroom, 14_000).events, 1);
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
    assert_eq!(
        [1, 2].map(|second| look(&mut mailroom, second)),
        [(false, 0), (false, 0)],
        "parked"
    );
    std::fs::remove_file(&inbox).expect("what is in the way");
    assert_eq!(
        [60, 61].map(|second| look(&mut mailroom, second)),
        [(true, 0), (true, 0)],
        "it is there now"
    );
    room.take();
    assert_eq!(look(&mut mailroom, 62), (false, 1));
}

#[test]
fn a_file_in_doubt_holds_an_order_up_but_not_for_long() {
    let room = Room::with_an_open_review();
    let mut mailroom = room.open();
    // An answer whose packet does not exist yet.
    room.approve_without_packet(2);
    room.order_turns();
    let events = |mailroom: &mut Mailroom, ms| mailroom.pass(at_ms(ms)).expect("a pass").events;
    assert_eq!(
        events(&mut mailroom, 3_200),
        0,
        "the answer may be whole in a moment"
    );
    let next = mailroom.schedule(at_ms(3_200)).next();
    assert!(next.is_some_and(|due| due <= 4_200));
    assert_eq!(events(&mut mailroom, 4_199), 0);
    assert_eq!(events(&mut mailroom, 4_200), 1, "a second is enough");
    assert!(!room.path(".settled/orders/o-1.json").exists());
}

#[test]
fn an_answer_behind_a_backlog_is_judged_before_a_deadline_that_passed_long_ago() {
    let room = Room::with_an_open_review();
    (1..=2).for_each(|wave| room.flood(wave, 2));
    room.approve(60);
    let (mut mailroom, late) = (room.open(), 30 * PICK_UP_S * 1_000);
    let passes: Vec<Pass> = (0..4).map(|_| turn(&mut mailroom, late)).collect();
    let sum = |of: fn(&Pass) -> usize| passes.iter().map(of).sum::<usize>();
    assert_eq!(
        (
            sum(|pass| pass.accepted),
            sum(|pass| pass.refused),
            sum(|pass| pass.events)
        ),
        (1, 600, 0)
    );
}

#[test]
fn an_answer_that_looks_young_after_a_sleep_is_judged_before_a_deadline_that_passed_meanwhile() {
    let room = Room::with_an_open_review();
    let mut mailroom = room.open();
    assert!(turn(&mut mailroom, 2_000).is_empty());
    // The wall clock advanced without the daemon, and setting a clock makes no file older than it is.
    let awake = |mono| Moment {
        mono,
        utc: begin() + TimeDelta::seconds(2 * PICK_UP_S),
    };
    room.approve(4);
    let look = |mailroom: &mut Mailroom, mono| {
        mailroom.sweep().expect("a sweep");
        let mut done = mailroom.pass(awake(mono)).expect("a pass");
        let kept = mailroom.keep_deadlines_in_turn(awake(mono));
        done.events += kept.expect("deadlines").events;
        done
    };
    assert!(look(&mut mailroom, 4_010).is_empty(), "it is 10 ms old");
    assert_eq!(look(&mut mailroom, 4_100).accepted, 1);
    room.assert_last("accepted", "\"approved\"");
}

#[test]
fn a_file_in_doubt_holds_up_a_deadline_that_passed_in_a_sleep_but_not_for_long() {
    let room = Room::with_an_open_review();
    let mut mailroom = room.open();
    // An answer begun when the machine woke, whose packet never comes.
    let awake = 2 * PICK_UP_S;
    room.approve_without_packet(awake.unsigned_abs() - 1);
    let begin = awake * 1_000;
    let mut ended = (0..200)
        .map(|step| begin + step * 50)
        .filter(|ms| turn(&mut mailroom, *ms).events > 0);
    let after = ended.next().expect("an end") - begin;
    assert!((3_000..=5_000).contains(&after), "after {after} ms");
}

#[test]
fn a_deadline_looks_for_an_answer_that_no_sweep_has_found() {
    let room = Room::with_an_open_review();
    let mut mailroom = room.open();
    mailroom.sweep().expect("a sweep");
    room.approve(60);
    let late = at(30 * PICK_UP_S);
    assert!(mailroom.pass(late).expect("a pass").is_empty());
    let kept = mailroom.keep_deadlines_in_turn(late).expect("deadlines");
    assert_eq!(kept.events, 0, "its answer waits to be judged");
    assert_eq!(mailroom.pass(late).expect("a pass").accepted, 1);
    room.assert_last("accepted", "\"approved\"");
}

#[test]
fn a_deadline_comes_without_a_sweep() {
    let room = Room::with_an_open_review();
    let mut mailroom = room.open();
    let late = at(30 * PICK_UP_S);
    let kept = mailroom.keep_deadlines_in_turn(late).expect("deadlines");
    assert_eq!(kept.events, 1);
}

#[test]
fn a_deadline_that_waits_for_a_file_holds_up_no_other() {
    let room = Room::new();
    room.request();
    room.ask(OTHERS, "87");
    assert_eq!(room.visit(1).accepted, 2);
    let mut mailroom = room.open();
    // The reviewer of the first review, whose deadline comes first, has a file with a missing packet.
    let late = 2 * PICK_UP_S;
    room.approve_without_packet(late.unsigned_abs() - 1);
    assert_eq!(turn(&mut mailroom, late * 1_000).events, 1);
    room.assert_last("deadline", "\"87\"");
}

#[test]
fn an_answer_behind_a_backlog_is_judged_before_an_order() {
    let room = Room::with_an_open_review();
    (1..=2).for_each(|wave| room.flood(wave, 2));
    room.approve(60);
    room.order_turns();
    let mut mailroom = room.open();
    let passes: Vec<Pass> = (0..4)
        .map(|n| turn(&mut mailroom, 61_000 + n * 2_000))
        .collect();
    assert_eq!(passes.iter().map(|pass| pass.accepted).sum::<usize>(), 1);
    room.assert_last("declined", "o-1");
    assert!(!room.path(".settled/orders/o-1.json").exists());
}

#[test]
fn a_flood_of_newer_files_puts_off_neither_a_deadline_nor_an_order_nor_a_take() {
    for (what, ms) in [
        ("deadline", 2 * PICK_UP_S * 1_000),
        ("turns", 60_000),
        ("taken", 60_000),
    ] {
        let room = Room::with_an_open_review();
        match what {
            "turns" => room.order_turns(),
            "taken" => room.take(),
            _ => {}
        }
        let mut mailroom = room.open();
        let heard = (0..8).map(|wave| {
            room.flood(wave, 50);
            turn(
                &mut mailroom,
                ms + i64::try_from(wave).expect("few") * 1_000,
            )
            .events
        });
        assert_eq!(heard.sum::<usize>(), 1, "{what}");
        let look = mailroom.schedule(at_ms(ms + 7_000)).at(Wakeup::Look);
        assert_eq!(look, Some(0), "the flood goes on");
        let mut kinds = Vec::new();
        spool::read_ledger(room.root.path(), &mut |entry| {
            kinds.push(entry.kind.clone());
            Ok(())
        })
        .expect("a ledger");
        assert!(kinds.iter().any(|kind| kind == what), "{what}");
    }
}

#[test]
fn mail_is_delivered_by_a_clock_before_1970() {
    let room = crate::room::Room::new();
    room.ask("claude", "codex", "q-1");
    let file = File::options()
        .write(true)
        .open(room.path("agents/claude/outbox/q-1.yaml"));
    let day = Duration::from_secs(86_400);
    file.expect("the file")
        .set_modified(UNIX_EPOCH - 3 * day)
        .expect("a file's time can be set");
    room.visit(-BEGIN - 86_400);
    assert!(room.path("agents/codex/inbox/q-1.yaml").exists());
    let ledger = std::fs::read_to_string(room.path(".settled/ledger/00000000000000000001.jsonl"));
    let ledger = ledger.expect("a segment");
    assert!(ledger.contains("\"at\":\"1969-12-31T"), "{ledger}");
}
