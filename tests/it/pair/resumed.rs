//! A pair that is interrupted or whose driver is killed continues exactly where it was, with what it had left.

use rustix::process::{Signal, kill_process};

use super::*;

/// A pair whose author waits for a file.
fn waiting(room: &Room, more: &[&str]) -> (Going, PathBuf) {
    let file = room.place.join("go");
    let going = Going::start(room.pair(&format!("wait '{}'", file.display()), "agree", more));
    wait::until("the author to be at work", || room.starts("author") == 1);
    (going, file)
}

fn resume(room: &Room) -> Held {
    Held::of(
        &room
            .command(&["--resume"])
            .output()
            .expect("settled can be run"),
    )
}

/// The pids of the fakes.
fn pids(room: &Room) -> Vec<String> {
    let notes = settled_tests::read(room.place.join("notes"));
    notes
        .lines()
        .filter_map(|line| Some(line.rsplit(' ').next()?.to_owned()))
        .collect()
}

#[test]
fn ctrl_c_is_recorded_with_its_reason_and_ends_what_runs() {
    let room = Room::new();
    let (going, file) = waiting(&room, &["--max-iterations", "3"]);
    kill_process(going.pid(), Signal::INT).expect("it runs");
    let held = going.ended();
    assert_eq!(
        (held.code, held.word()),
        (Some(9), "interrupted"),
        "{held:?}"
    );
    assert_eq!(held.reasons(), ["a person ended it with Ctrl-C"]);
    assert!(pids(&room).iter().all(|pid| !runs(pid)));
    let ms = held
        .lines
        .iter()
        .find_map(|line| line["data"]["used"]["ms"].as_u64())
        .expect("a number");
    assert!(
        ms < 4_000,
        "it ended when it was asked to, and nothing more was waited for: {ms} ms"
    );
    assert_eq!(
        room.steps().last().map(String::as_str),
        Some("failed interrupted")
    );

    let status = room.mailroom.run(&["status"]);
    let line = format!(
        "{}: claude and codex, iteration 1 of 3, interrupted, can be resumed\n",
        held.id()
    );
    assert!(said(&status).contains(&line), "{}", said(&status));
    write(&file, "");
    let resumed = resume(&room);
    assert_eq!(
        (resumed.code, resumed.word()),
        (Some(0), "complete"),
        "{resumed:?}"
    );
    assert_eq!(resumed.id(), held.id());
    assert_eq!(
        resumed.end()["iteration"],
        1,
        "the iteration goes on, and costs no other"
    );
    let used = |held: &Held| held.end()["seconds_left"].as_u64().expect("a number");
    assert!(used(&resumed) <= used(&held), "what was used stays used");
    assert_eq!((room.starts("author"), room.starts("agree")), (2, 1));
}

#[test]
fn a_driver_that_was_killed_leaves_nothing_running_and_its_pair_goes_on() {
    let room = Room::new();
    let (going, file) = waiting(&room, &[]);
    kill_process(going.pid(), Signal::KILL).expect("it runs");
    drop(going);
    assert_eq!(
        room.steps().last().map(String::as_str),
        Some("working began"),
        "nobody could tell more"
    );
    wait::until("its keeper to end the author", || {
        pids(&room).iter().all(|pid| !runs(pid))
    });
    write(&file, "");
    let resumed = resume(&room);
    assert_eq!(
        (resumed.code, resumed.word()),
        (Some(0), "complete"),
        "{resumed:?}"
    );
    assert_eq!(resumed.reasons(), ["the process that drove it was ended"]);
    let steps = room.steps();
    assert_eq!(
        steps[3..6],
        ["failed interrupted", "working resumed", "working began"],
        "{steps:?}"
    );
}

#[test]
fn two_do_not_drive_one_pair() {
    let room = Room::new();
    let (going, file) = waiting(&room, &[]);
    let other = resume(&room);
    assert_eq!(other.code, Some(9), "{other:?}");
    assert!(
        other.said.contains("another process drives the pair"),
        "{other:?}"
    );
    write(&file, "");
    assert_eq!(going.ended().word(), "complete");
    assert_eq!(room.starts("author"), 1);
}

#[test]
fn what_was_left_is_all_there_is_after_an_interruption() {
    let room = Room::new();
    let (going, _) = waiting(&room, &["--seconds", "1"]);
    // The command is ended after its second; the crash uses up what the pair had left.
    let held = going.ended();
    assert_eq!(held.word(), "budget_spent", "{held:?}");
    let none = resume(&room);
    assert_eq!(
        none.code,
        Some(3),
        "only what was interrupted goes on: {none:?}"
    );
}

#[test]
fn of_several_none_is_guessed() {
    let room = Room::new();
    for _ in 0..2 {
        let started = room.starts("author");
        let going = Going::start(room.pair("wait /not/there", "", &[]));
        wait::until("the author to be at work", || {
            room.starts("author") == started + 1
        });
        kill_process(going.pid(), Signal::TERM).expect("it runs");
        assert_eq!(going.ended().word(), "interrupted");
    }
    let held = resume(&room);
    assert_eq!(held.code, Some(2), "{held:?}");
    assert!(held.said.contains("2 pairs can be resumed"), "{held:?}");
    let newest = held
        .said
        .split_whitespace()
        .find(|word| word.starts_with("pair-"))
        .expect("it names the newest");
    let dropped = Held::of(
        &room
            .command(&["--drop", newest])
            .output()
            .expect("settled can be run"),
    );
    assert_eq!(
        (dropped.code, dropped.id()),
        (Some(0), newest),
        "{dropped:?}"
    );
    // Now that one exists, it is the one meant; its waiting command is not restarted.
    let dropped = Held::of(
        &room
            .command(&["--drop"])
            .output()
            .expect("settled can be run"),
    );
    assert_eq!(dropped.code, Some(0), "{dropped:?}");
    assert_eq!(room.mailroom.status()["pairs"], Value::Null);
    assert_eq!((resume(&room).code, room.starts("author")), (Some(3), 2));
}
