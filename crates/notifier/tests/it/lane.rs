//! One channel's progress through the notices of a recorded ledger: each is sent once and in order, whenever the
//! notifier is killed; a failing receiver is tried again later; a daemon that stays away is reported once.

use std::path::Path;

use chrono::{DateTime, FixedOffset};
use notifier::{Channel, Lane, LaneError, Step};
use serde_json::{Value, json};
use workspace::config::{NotifySection, QuietHours};

use super::recorded::{KEEP, told, workspace};

fn lane(root: &Path, script: &str, section: &NotifySection) -> Lane {
    let channel = Channel::Command(["sh", "-c", script].map(str::to_owned).to_vec());
    Lane::open(root, channel, section).expect("a lane")
}

fn hour(hour: u32) -> DateTime<FixedOffset> {
    let at = format!("2026-11-25T{hour:02}:00:00+01:00");
    at.parse().expect("an instant")
}

/// Noon, `mono` milliseconds after the notifier began.
fn step(mono: u64, serving: Option<bool>) -> Step {
    Step {
        mono,
        at: hour(12),
        serving,
    }
}

#[test]
fn each_notice_is_sent_once_and_in_order_whenever_the_notifier_is_killed() {
    let section = NotifySection::default();
    for kills in 0..8_u32 {
        let root = workspace(Some(0));
        let mut sending = lane(root.path(), KEEP, &section);
        for sent in 0..3 {
            let is_more = sending.step(step(0, None)).expect("a step");
            assert!(is_more, "{kills:b}: notice {sent}");
            if kills >> sent & 1 == 1 {
                sending = lane(root.path(), KEEP, &section);
            }
        }
        assert!(!sending.step(step(0, None)).expect("a step"), "{kills:b}");
        assert!(sending.is_idle());
        let told = told(root.path());
        let shown: Vec<Value> = told
            .iter()
            .map(|notice| {
                json!([
                    notice["kind"],
                    notice["seq"],
                    notice["pr"],
                    notice["repo"],
                    notice["reviewer"],
                    notice["thread"],
                    notice["reason"]
                ])
            })
            .collect();
        assert_eq!(
            Value::from(shown),
            json!([
                [
                    "thread_held",
                    5,
                    "86",
                    "example/parser",
                    "codex",
                    "F-001",
                    "held (escalate)"
                ],
                [
                    "thread_held",
                    5,
                    "86",
                    "example/parser",
                    "codex",
                    "F-002",
                    "held (veto)"
                ],
                [
                    "escalated",
                    7,
                    "87",
                    null,
                    "codex",
                    null,
                    "reviewer_budget_exceeded"
                ],
            ]),
            "{kills:b}"
        );
        let root = root.path().display().to_string();
        assert_eq!(told[2]["workspace"], *root);
        assert_eq!(told[2]["command"], format!("settled why 87 --root {root}"));
        let mut ids: Vec<String> = told.iter().map(|notice| notice["id"].to_string()).collect();
        ids.dedup();
        assert_eq!(ids.len(), 3, "each has an id of its own");
    }
}

#[test]
fn what_was_told_before_is_not_told_again() {
    for (seq, count) in [(4, 3), (5, 1), (6, 1), (7, 0)] {
        let root = workspace(Some(seq));
        let mut lane = lane(root.path(), KEEP, &NotifySection::default());
        while lane.step(step(0, None)).expect("a step") {}
        assert_eq!(told(root.path()).len(), count, "after record {seq}");
    }
}

#[test]
fn a_new_channel_begins_at_the_end_of_the_ledger() {
    let root = workspace(None);
    let mut lane = lane(root.path(), KEEP, &NotifySection::default());
    assert!(!lane.step(step(0, None)).expect("a step"));
    assert!(told(root.path()).is_empty());
    let cursor = std::fs::read_to_string(root.path().join(".settled/notify/command.json"));
    let cursor: Value = serde_json::from_str(&cursor.expect("a cursor")).expect("JSON");
    assert_eq!(cursor["seq"], 7);
}

#[test]
fn a_receiver_that_fails_is_asked_again_after_twice_as_long_each_time() {
    let root = workspace(Some(6));
    let mut lane = lane(
        root.path(),
        "echo >> tried; false",
        &NotifySection::default(),
    );
    let tried = |root: &Path| {
        let tried = std::fs::read_to_string(root.join("tried"));
        tried.unwrap_or_default().lines().count()
    };
    let mut mono = 0;
    for (count, pause) in (1..).zip([1_000, 2_000, 4_000, 8_000]) {
        assert!(!lane.step(step(mono, None)).expect("a step"));
        assert_eq!(tried(root.path()), count);
        assert!(!lane.step(step(mono + pause - 1, None)).expect("a step"));
        assert_eq!(tried(root.path()), count, "not within {pause} ms");
        assert!(!lane.is_idle());
        mono += pause;
    }
    // The pause is at most five minutes.
    let mut count = 4;
    for _ in 0..12 {
        lane.step(step(mono, None)).expect("a step");
        count += 1;
        assert_eq!(tried(root.path()), count, "after five minutes");
        mono += 300_000;
    }
    lane.step(step(mono, None)).expect("a step");
    lane.step(step(mono + 299_999, None)).expect("a step");
    assert_eq!(tried(root.path()), count + 1, "not within five minutes");
}

#[test]
fn nobody_is_told_in_quiet_hours_and_everything_behind_them() {
    let minute = |hour| chrono::NaiveTime::from_hms_opt(hour, 0, 0).expect("a time");
    let section = NotifySection {
        quiet_hours: Some(QuietHours {
            from: minute(22),
            until: minute(7),
        }),
        ..NotifySection::default()
    };
    let root = workspace(Some(0));
    let mut lane = lane(root.path(), KEEP, &section);
    for at in [22, 23, 3, 6] {
        let night = Step {
            at: hour(at),
            ..step(0, None)
        };
        assert!(!lane.step(night).expect("a step"), "{at}");
    }
    assert!(told(root.path()).is_empty());
    while lane.step(step(0, None)).expect("a step") {}
    assert_eq!(told(root.path()).len(), 3);
}

#[test]
fn a_daemon_that_stays_away_is_told_of_once_each_time_it_served() {
    let section = NotifySection {
        stopped_after_s: 60,
        ..NotifySection::default()
    };
    let root = workspace(Some(7));
    let mut sending = lane(root.path(), KEEP, &section);
    let mut look = |mono, serving, count: usize, why: &str| {
        while sending.step(step(mono, serving)).expect("a step") {}
        assert_eq!(told(root.path()).len(), count, "at {mono} ms: {why}");
    };
    look(0, Some(false), 0, "none has served yet");
    look(100_000, Some(false), 0, "none has served yet");
    look(200_000, Some(true), 0, "");
    look(201_999, Some(true), 0, "");
    look(
        202_000,
        Some(false),
        0,
        "it held the lock for less than two seconds",
    );
    look(
        300_000,
        Some(false),
        0,
        "it held the lock for less than two seconds",
    );
    look(400_000, Some(true), 0, "");
    look(402_000, Some(true), 0, "it serves");
    look(410_000, None, 0, "nobody can see it");
    look(411_000, Some(false), 0, "it may be on its way back");
    look(470_999, Some(false), 0, "it may be on its way back");
    look(471_000, Some(false), 1, "a minute has passed");
    look(900_000, Some(false), 1, "it was told");
    look(901_000, Some(true), 1, "");
    look(903_000, Some(true), 1, "it serves again");
    look(904_000, Some(false), 1, "");
    look(930_000, Some(true), 1, "a restart");
    look(932_000, Some(true), 1, "a restart");
    look(1_000_000, Some(true), 1, "it serves");
    look(1_001_000, Some(false), 1, "");
    look(1_061_000, Some(false), 2, "a minute has passed");
    let told = told(root.path());
    assert!(told.iter().all(|notice| notice["kind"] == "daemon_stopped"));
    assert_eq!(told[0]["seq"], 7);
    let root = root.path().display();
    assert_eq!(told[0]["command"], format!("settled doctor --root {root}"));
}

#[test]
fn a_cursor_that_cannot_be_read_is_an_error_and_no_new_channel() {
    let root = workspace(Some(0));
    let path = root.path().join(".settled/notify/command.json");
    for unreadable in [&b"\xff"[..], b"{"] {
        std::fs::write(&path, unreadable).expect("a file");
        let channel = Channel::Command(vec!["true".to_owned()]);
        let lane = Lane::open(root.path(), channel, &NotifySection::default());
        assert!(matches!(lane, Err(LaneError::Cursor { .. })), "{lane:?}");
        assert_eq!(std::fs::read(&path).expect("a file"), unreadable);
    }
}

#[test]
fn a_daemon_that_was_gone_before_a_kill_is_told_of_under_the_same_id() {
    let section = NotifySection {
        stopped_after_s: 60,
        ..NotifySection::default()
    };
    let root = workspace(Some(7));
    let mut first = lane(root.path(), "false", &section);
    for (mono, serving) in [(0, true), (2_000, true), (3_000, false)] {
        first.step(step(mono, Some(serving))).expect("a step");
    }
    let cursor = std::fs::read_to_string(root.path().join(".settled/notify/command.json"));
    let cursor: Value = serde_json::from_str(&cursor.expect("a cursor")).expect("JSON");
    assert_eq!(cursor["gone"]["seq"], 7);
    let mut second = lane(root.path(), KEEP, &section);
    let later = |mono| Step {
        at: hour(13),
        ..step(mono, Some(false))
    };
    assert!(!second.step(later(0)).expect("a step"));
    assert!(second.step(later(60_000)).expect("a step"));
    let id = format!("daemon_stopped-7-{}", hour(12).timestamp_millis());
    assert_eq!(told(root.path())[0]["id"], *id);
}
