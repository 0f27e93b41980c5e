//! The daemon reports an accepted original that its writer changes in `sent/` once over all starts.

use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;

use daemon::mailroom::Mailroom;
use workspace::operator_alerts;

use crate::room::{Room, at};

/// The notices about changed originals in claude's inbox.
fn notices(room: &Room) -> usize {
    let inbox = std::fs::read_dir(room.path("agents/claude/inbox")).expect("an inbox");
    inbox
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().contains("sent_differs"))
        .count()
}

#[test]
fn a_changed_original_is_told_once_over_all_starts() {
    let room = Room::new();
    room.ask("claude", "codex", "q-1");
    room.visit(60);
    room.visit(90);
    assert_eq!(notices(&room), 0, "nothing changed");
    let original = std::fs::File::options()
        .append(true)
        .open(room.path("agents/claude/sent/q-1.yaml"));
    let mut original = original.expect("the original");
    original.write_all(b"more\n").expect("room");
    for second in [120, 150, 180] {
        room.visit(second);
        assert_eq!(notices(&room), 1, "after {second} s");
    }
}

#[test]
fn an_original_of_a_terabyte_is_told_at_a_start_however_late() {
    for second in [90, 600, 601, 3_600 * 24] {
        let room = Room::new();
        room.ask("claude", "codex", "q-1");
        room.visit(0);
        lengthen(&room);
        room.visit(second);
        assert_eq!(notices(&room), 1, "after {second} s");
    }
}

#[test]
fn an_original_of_an_earlier_hour_gets_one_look_at_a_start_and_no_more() {
    let room = Room::new();
    room.ask("claude", "codex", "q-1");
    room.visit(0);
    let mut mailroom = Mailroom::open(room.root()).expect("a start").0;
    let mut look_at = |second| {
        let looked = mailroom.look_for_changed_originals(at(second));
        looked.expect("a look at what was sent");
    };
    look_at(3_600);
    lengthen(&room);
    (1..9).for_each(|n| look_at(3_600 + 600 * n));
    assert_eq!(notices(&room), 0);
    drop(mailroom);
    room.visit(9_000);
    assert_eq!(notices(&room), 1, "the next start looks again");
}

/// Makes claude's original a sparse file of a terabyte.
fn lengthen(room: &Room) {
    let original = std::fs::File::options()
        .write(true)
        .open(room.path("agents/claude/sent/q-1.yaml"));
    original
        .and_then(|original| original.set_len(1 << 40))
        .expect("a sparse file");
}

#[test]
fn an_original_that_was_only_touched_removed_or_replaced_is_not_told() {
    let room = Room::new();
    for id in ["q-1", "q-2", "q-3"] {
        room.ask("claude", "codex", id);
    }
    room.visit(60);
    room.finish("agents/claude/sent/q-1.yaml", 90);
    std::fs::remove_file(room.path("agents/claude/sent/q-2.yaml")).expect("a file");
    let other = room.path("agents/claude/sent/other");
    std::fs::write(&other, "other").expect("a file");
    std::fs::rename(other, room.path("agents/claude/sent/q-3.yaml")).expect("a rename");
    room.visit(120);
    assert_eq!(notices(&room), 0);
}

#[test]
fn the_alert_about_a_changed_original_names_its_path_whatever_its_name_is() {
    let room = Room::new();
    room.ask("claude", "codex", "q-1");
    let name = std::ffi::OsStr::from_bytes(b"a\n%\xff.yaml");
    let at = |directory: &str| room.path("agents/claude").join(directory).join(name);
    std::fs::rename(room.path("agents/claude/outbox/q-1.yaml"), at("outbox")).expect("a rename");
    room.visit(60);
    std::fs::write(at("sent"), "other").expect("the original");
    room.visit(90);
    let alerts = operator_alerts::read(room.root());
    let paths: Vec<_> = alerts.into_iter().map(|alert| alert.path).collect();
    assert_eq!(paths, [at("sent")]);
}
