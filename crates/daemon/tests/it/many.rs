//! However many agents there are, a step of the sweep handles a few of them, and the others' mail goes on.

use std::time::Duration;

use daemon::mailroom::Mailroom;

use crate::room::{Room, at, at_ms};

/// A workspace with `count` more agents, who have only an outbox.
fn many(count: usize) -> Room {
    let room = Room::new();
    for number in 0..count {
        std::fs::create_dir_all(room.path(&format!("agents/crowd-{number:03}/outbox")))
            .expect("an outbox");
    }
    room
}

#[test]
fn mail_goes_on_between_the_steps_of_a_sweep() {
    let room = many(100);
    let mut mailroom = Mailroom::open(room.root()).expect("a start").0;
    mailroom.limit_step_time(Duration::ZERO);
    let round = mailroom.next_sweep();
    let (mut steps, mut watched) = (1, 0);
    while !mailroom
        .sweep_on(round, &mut |_, _| watched += 1)
        .expect("a step")
    {
        if steps == 102 {
            assert_eq!(watched, 102, "all outboxes are seen before");
            assert!(!room.path("agents/crowd-000/inbox").exists());
        }
        steps += 1;
        if steps == 20 {
            room.ask("claude", "codex", "q-1");
            mailroom.hint("claude", &"q-1.yaml".parse().expect("a name"));
            let pass = mailroom.pass(at(1)).expect("a pass");
            assert_eq!((pass.accepted, mailroom.next_sweep()), (1, round + 1));
        }
    }
    // Each step did one thing, but the last that listed an outbox also completed an agent's mailboxes.
    assert_eq!((steps, watched), (203, 102));
    assert!(room.path("agents/crowd-099/inbox").is_dir());
}

#[test]
fn an_outbox_of_any_number_of_names_leaves_the_round_and_is_listed_to_its_end_beside_it() {
    let room = Room::new();
    for number in 0..6_000 {
        room.put(&format!("agents/claude/outbox/junk-{number}"), "");
    }
    room.ask("claude", "codex", "q-1");
    room.ask("codex", "claude", "q-2");
    let mut mailroom = Mailroom::open(room.root()).expect("a start").0;
    mailroom.limit_step_time(Duration::ZERO);
    // Nobody passes on a hint.
    let round = |mailroom: &mut Mailroom| {
        let round = mailroom.next_sweep();
        let (mut steps, mut watched) = (1, 0);
        while !mailroom
            .sweep_on(round, &mut |_, _| watched += 1)
            .expect("a step")
        {
            steps += 1;
        }
        assert!(steps < 20, "{steps} steps");
        assert_eq!(watched, 2);
    };
    let pass = |mailroom: &mut Mailroom, ms| mailroom.pass(at_ms(ms)).expect("a pass").accepted;
    round(&mut mailroom);
    let accepted: usize = (1..=20).map(|n| pass(&mut mailroom, 100 * n)).sum();
    assert_eq!(accepted, 2);
    room.ask("claude", "codex", "q-3");
    room.ask("codex", "claude", "q-4");
    round(&mut mailroom);
    let accepted: usize = (21..=40).map(|n| pass(&mut mailroom, 100 * n)).sum();
    assert_eq!(accepted, 1, "the next round passes over it");
    mailroom.hint("claude", &"q-3.yaml".parse().expect("a name"));
    assert_eq!(pass(&mut mailroom, 5_000), 1);
}

#[test]
fn a_message_to_an_agent_that_a_step_has_not_reached_is_accepted() {
    let room = many(100);
    room.ask("claude", "crowd-099", "q-1");
    let mut mailroom = Mailroom::open(room.root()).expect("a start").0;
    mailroom.limit_step_time(Duration::ZERO);
    mailroom.hint("claude", &"q-1.yaml".parse().expect("a name"));
    assert_eq!(mailroom.pass(at(1)).expect("a pass").accepted, 1);
    mailroom.finish(at(1)).expect("deliveries");
    assert!(room.path("agents/crowd-099/inbox/q-1.yaml").exists());
}

#[test]
fn agents_that_come_and_go_are_known_after_the_next_sweep() {
    let room = many(3);
    let mut mailroom = Mailroom::open(room.root()).expect("a start").0;
    let names = |mailroom: &Mailroom| mailroom.agents().len();
    mailroom.sweep().expect("a sweep");
    assert_eq!(names(&mailroom), 5);
    std::fs::create_dir(room.path("agents/late")).expect("a directory that is no agent's yet");
    mailroom.sweep().expect("a sweep");
    assert_eq!(names(&mailroom), 5);
    std::fs::create_dir(room.path("agents/late/outbox")).expect("an outbox");
    std::fs::remove_dir_all(room.path("agents/crowd-000")).expect("an agent that leaves");
    mailroom.sweep().expect("a sweep");
    assert_eq!(names(&mailroom), 5);
    assert!(room.path("agents/late/inbox").is_dir());
    // Without a mailbox the directory belongs to no agent.
    for directory in ["outbox", "inbox"] {
        std::fs::remove_dir(room.path(&format!("agents/late/{directory}"))).expect("a mailbox");
    }
    mailroom.sweep().expect("a sweep");
    mailroom.sweep().expect("a sweep");
    assert_eq!(names(&mailroom), 4);
}

#[test]
fn an_outbox_that_is_listed_because_of_an_order_is_watched_first() {
    let room = many(1);
    let mut mailroom = Mailroom::open(room.root()).expect("a start").0;
    mailroom.sweep().expect("a sweep");
    std::fs::create_dir_all(room.path("agents/late/outbox")).expect("an outbox");
    let order = r#"{"schema_version":1,"id":"o-1","asked_at":"2026-02-13T16:26:40Z","event":{"turns":{"pr":"87","count":2}}}"#;
    room.put(".settled/orders/o-1.json", order);
    mailroom.hint_order();
    let mut watched = Vec::new();
    mailroom
        .pass_watching(at(1), &mut |agent, _| watched.push(agent.to_string()))
        .expect("a pass");
    assert_eq!(watched, ["claude", "codex", "crowd-000", "late"]);
}

#[test]
fn a_round_through_the_outboxes_holds_an_order_up_for_three_seconds_at_most() {
    let room = many(40);
    let mut mailroom = Mailroom::open(room.root()).expect("a start").0;
    mailroom.sweep().expect("a sweep");
    mailroom.limit_step_time(Duration::ZERO);
    let order = r#"{"schema_version":1,"id":"o-1","asked_at":"2026-02-13T16:26:40Z","event":{"turns":{"pr":"87","count":2}}}"#;
    room.put(".settled/orders/o-1.json", order);
    mailroom.hint_order();
    // There is a message in each outbox and each pass takes 400 ms, so a round takes 17 s.
    for number in 0..40 {
        let agent = format!("crowd-{number:03}");
        room.ask(&agent, "codex", &format!("q-{number}"));
    }
    let mut pass_at = |ms| {
        mailroom.pass(at_ms(ms)).expect("a pass");
        !room.path(".settled/orders/o-1.json").exists()
    };
    let done = (0..40).map(|pass| 400 * pass).find(|ms| pass_at(*ms));
    assert!(done.is_some_and(|ms| ms <= 3_400), "{done:?}");
}
