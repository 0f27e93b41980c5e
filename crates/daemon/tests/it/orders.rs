//! An order is recorded once, by the daemon or in its place, and work that nobody is left to do is not awaited.

use std::time::Duration;

use daemon::mailroom::{Mailroom, Pass};
use daemon::schedule::Wakeup;
use daemon::submit_order::{SubmitError, submit_as, wait_until};
use message_schema::id::{MessageId, PrNumber};
use review::{Act, Event, PersonsDecision, ReviewKey, Which};
use workspace::orders::{self, Order};

use crate::room::{Room, at, at_ms};

/// Ann calls off the review of pull request 86.
fn cancelled() -> Event {
    let pr = PrNumber::new("86").expect("a number");
    let [author, reviewer] = ["claude", "codex"].map(|name| name.parse().expect("a name"));
    Event::Person(PersonsDecision {
        which: Which::of(&ReviewKey::new(None, &pr, author, reviewer)),
        by: "ann".to_owned(),
        reason: "the branch is gone".to_owned(),
        act: Act::Cancel,
    })
}

#[test]
fn an_order_where_nobody_serves_is_judged_by_who_gives_it_and_counts_once() {
    let room = Room::new();
    room.put(
        "agents/claude/outbox/r-1.yaml",
        "id: \"r-1\"\nfrom: claude\nto: codex\ntype: review_request\npriority: P1\n\
         created_at_utc: \"2026-02-13T10:00:00Z\"\nrelated_pr: \"86\"\nsubject: \"Please\"\nbody: |\n  \
         pr: 86\n  branch: x\n  diff_summary: y\n",
    );
    room.visit(0);
    let id = MessageId::new("order-1").expect("an id");
    let ordered = submit_as(room.root(), id.clone(), cancelled()).expect("its record");
    assert_eq!(
        (&ordered.id, ordered.entry.id.as_deref()),
        (&id, Some("order-1"))
    );
    let error = submit_as(room.root(), id, cancelled()).expect_err("it was known");
    assert!(matches!(error, SubmitError::Gone { .. }), "{error}");
}

#[test]
fn who_waits_does_the_work_only_where_nobody_serves() {
    let room = Room::new();
    room.ask("claude", "codex", "q-1");
    let inbox = || {
        std::fs::read_dir(room.path("agents/codex/inbox"))
            .expect("an inbox")
            .count()
    };
    let mailroom = Mailroom::open(room.root()).expect("a start").0;
    let waited = |is_done: bool| wait_until(room.root(), Duration::ZERO, || is_done);
    assert!(!waited(false).expect("a look"));
    assert!(waited(true).expect("a look"));
    assert_eq!(inbox(), 0, "the daemon has not passed");
    drop(mailroom);
    assert!(waited(false).expect("its work"));
    assert_eq!(inbox(), 1);
}

#[test]
fn nothing_is_left_over_once_everything_is_judged_and_delivered() {
    let room = Room::new();
    room.ask("claude", "codex", "q-1");
    let mut mailroom = Mailroom::open(room.root()).expect("a start").0;
    mailroom.sweep().expect("a sweep");
    assert_eq!(mailroom.left_over().next(), Some(0));
    assert_eq!(mailroom.pass(at(1)).expect("a pass").accepted, 1);
    assert_eq!(mailroom.left_over().next(), None);
}

#[test]
fn a_batch_ends_once_it_makes_and_puts_away_as_many_files_as_it_may() {
    let room = Room::new();
    (0..12).for_each(|n| room.ask("claude", "codex", &format!("q-{n:02}")));
    let mut mailroom = Mailroom::open(room.root()).expect("a start").0;
    // Each message is a file in an inbox and one to put away.
    mailroom.limit_batches(Duration::MAX, 8, usize::MAX);
    mailroom.sweep().expect("a sweep");
    assert_eq!(mailroom.pass(at(1)).expect("a pass").accepted, 4);
}

/// Gives this many orders, each a millisecond after the one before.
fn order(room: &Room, count: i64) {
    for n in 0..count {
        let id = MessageId::new(format!("order-{n:02}")).expect("an id");
        let order = Order::new(id, at_ms(n).utc, cancelled());
        orders::write(room.root(), &order).expect("an order");
    }
}

/// The ids of the ledger's records.
fn recorded(room: &Room) -> Vec<String> {
    let mut ids = Vec::new();
    let read = spool::read_ledger(room.root(), &mut |entry| {
        ids.extend(entry.id.clone());
        Ok(())
    });
    read.expect("a ledger");
    ids
}

#[test]
fn a_backlog_of_orders_is_processed_a_batch_a_pass_and_holds_up_no_message() {
    let room = Room::new();
    order(&room, 70);
    let mut mailroom = Mailroom::open(room.root()).expect("a start").0;
    mailroom.limit_step_time(Duration::from_secs(3_600));
    mailroom.sweep().expect("a sweep");
    assert_eq!(mailroom.pass(at(1)).expect("a pass").events, 64);
    assert_eq!(mailroom.schedule(at(1)).at(Wakeup::Orders), Some(0));

    room.ask("claude", "codex", "q-1");
    mailroom.sweep().expect("a sweep");
    let Pass {
        accepted, events, ..
    } = mailroom.pass(at(1)).expect("a pass");
    assert_eq!((accepted, events), (1, 6));
    assert_eq!(mailroom.schedule(at(1)).at(Wakeup::Orders), None);
    let mut expected: Vec<_> = (0..70).map(|n| format!("order-{n:02}")).collect();
    expected.insert(64, "q-1".to_owned());
    assert_eq!(recorded(&room), expected);
}

#[test]
fn files_that_are_no_orders_are_put_aside_a_batch_a_pass() {
    let room = Room::new();
    let mut mailroom = Mailroom::open(room.root()).expect("a start").0;
    (0..70).for_each(|n| room.put(&format!(".settled/orders/{n:02}.json"), "junk"));
    mailroom.limit_step_time(Duration::from_secs(3_600));
    mailroom.sweep().expect("a sweep");
    let mut aside = || {
        mailroom.pass(at(1)).expect("a pass");
        let aside = room.path(".settled/orders/unreadable");
        std::fs::read_dir(aside).expect("a directory").count()
    };
    assert_eq!([aside(), aside()], [64, 70]);
}

#[test]
fn a_pass_ends_its_orders_with_its_step_after_one_at_least() {
    let room = Room::new();
    order(&room, 3);
    let mut mailroom = Mailroom::open(room.root()).expect("a start").0;
    mailroom.limit_step_time(Duration::ZERO);
    let passes = (0..100).map(|_| mailroom.pass(at(1)).expect("a pass").events);
    let events: Vec<_> = passes.filter(|events| *events > 0).collect();
    assert_eq!(events, [1, 1, 1]);
}

#[test]
fn without_a_limit_a_pass_processes_all_orders() {
    let room = Room::new();
    order(&room, 70);
    let mut mailroom = Mailroom::open(room.root()).expect("a start").0;
    assert_eq!(mailroom.pass(at(1)).expect("a pass").events, 70);
}

#[test]
fn orders_that_cannot_be_listed_count_as_unread_until_they_can() {
    let room = Room::new();
    let mut mailroom = Mailroom::open(room.root()).expect("a start").0;
    let [place, aside] = [".settled/orders", "aside"].map(|path| room.path(path));
    std::fs::rename(&place, &aside).expect("a directory to move");
    std::fs::write(&place, "").expect("a file in its place");
    mailroom.pass(at(1)).expect("a pass");
    assert_eq!(mailroom.unread(), 1);
    std::fs::remove_file(&place).expect("the file");
    std::fs::rename(&aside, &place).expect("a directory to move");
    mailroom.pass(at(2)).expect("a pass");
    assert_eq!(mailroom.unread(), 0);
}
