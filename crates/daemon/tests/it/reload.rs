//! Tests the effects of the config on the ledger, at the start and when it is reloaded.

use daemon::mailroom::Mailroom;
use workspace::config::Config;

use crate::room::{Room, at};

/// The number of segments of the ledger.
fn segments(room: &Room) -> usize {
    let listed = std::fs::read_dir(room.path(".settled/ledger")).expect("a ledger");
    listed.count()
}

/// Delivers a question with the longest body, 60 kB, in its own batch.
fn deliver(room: &Room, mailroom: &mut Mailroom, id: &str) {
    room.put(
        &format!("agents/claude/outbox/{id}.yaml"),
        &format!(
            "id: \"{id}\"\nfrom: claude\nto: codex\ntype: question\npriority: P2\n\
             created_at_utc: \"2026-02-13T10:00:00Z\"\nsubject: \"Which?\"\nbody: \"{}\"\n",
            "長".repeat(20_000)
        ),
    );
    mailroom.sweep().expect("a sweep");
    assert_eq!(mailroom.pass(at(1)).expect("a pass").accepted, 1);
}

#[test]
fn after_a_reload_segments_are_as_long_as_the_config_says() {
    let room = Room::new();
    let mut mailroom = Mailroom::open(room.root()).expect("a start").0;
    let mut config = Config::default();
    config.ledger.segment_mib = 2;
    assert!(mailroom.reconfigure(config.clone()).expect("a config"));
    for number in 0..24 {
        deliver(&room, &mut mailroom, &format!("q-{number}"));
    }
    assert_eq!(segments(&room), 1, "1.4 MB are less than 2 MiB");

    config.ledger.segment_mib = 1;
    assert!(mailroom.reconfigure(config).expect("a config"));
    deliver(&room, &mut mailroom, "last");
    assert_eq!(segments(&room), 2, "1.4 MB are more than 1 MiB");
    deliver(&room, &mut mailroom, "one-more");
    assert_eq!(segments(&room), 2, "the new one has room");
}

#[test]
fn from_the_start_segments_are_as_long_as_the_config_says() {
    let room = Room::new();
    room.put("settled.toml", "[ledger]\nsegment_mib = 1\n");
    let mut mailroom = Mailroom::open(room.root()).expect("a start").0;
    for number in 0..17 {
        deliver(&room, &mut mailroom, &format!("q-{number}"));
    }
    assert_eq!(segments(&room), 1, "1.02 MB are less than 1 MiB");
    deliver(&room, &mut mailroom, "another");
    deliver(&room, &mut mailroom, "last");
    assert_eq!(segments(&room), 2, "1.1 MB are more than 1 MiB");
}
