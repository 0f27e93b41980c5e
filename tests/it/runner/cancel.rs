//! A person cancels a request, or its author replaces it: the process ends with its request.

use settled_tests::mailroom::said;
use settled_tests::{golden, seed, wait};

use super::{Room, lines, runs};

#[test]
fn a_person_calls_the_reviewer_off_and_its_process_is_ended() {
    let room = Room::new(&["silent"], "");
    let daemon = room.serve();
    room.ask("86", "request-1", 3600, 8);
    wait::until("the reviewer to be started", || room.starts() == 1);
    let by_script = room
        .mailroom
        .run(&["review", "cancel", "86", "--reason", "enough"]);
    assert_eq!(by_script.status.code(), Some(5), "{}", said(&by_script));
    let output = room.mailroom.at_terminal(
        &["review", "cancel", "86", "--by", "ann"],
        "the branch is gone",
    );
    assert!(output.status.success(), "{}", said(&output));
    let review = room.review();
    assert_eq!(
        (&review["phase"], &review["reason"]),
        (&"escalated".into(), &"cancelled".into())
    );
    let pid = lines(&room.notes)[0]
        .split(' ')
        .nth(1)
        .expect("a number")
        .to_owned();
    wait::until("the reviewer to be ended", || !runs(&pid));
    assert_eq!(room.starts(), 1, "it is not started again");
    let again = room
        .mailroom
        .at_terminal(&["review", "cancel", "86", "--by", "ann"], "once more");
    assert_eq!(again.status.code(), Some(1), "{}", said(&again));
    drop(daemon);
    let log = room.mailroom.run(&["log"]);
    let log = String::from_utf8_lossy(&log.stdout).into_owned();
    let told: String = log
        .lines()
        .filter_map(|line| line.split_once("Z  "))
        .map(|(_, rest)| format!("{}\n", rest.trim_end()))
        .collect();
    golden::check("log-cancelled.txt", &told);
}

#[test]
fn a_replaced_request_is_answered_by_a_process_of_its_own() {
    let room = Room::new(&["silent"], "");
    let daemon = room.serve();
    room.ask("86", "request-1", 3600, 8);
    wait::until("the reviewer to be started", || room.starts() == 1);
    let body = "pr: 86\nbranch: b\ndiff_summary: another\nsupersedes_message_id: request-1";
    room.post(
        "claude",
        "request-2",
        &seed::review_message("review_request", "request-2", "claude", "codex", "86", body),
    );
    wait::until("the process of the second request", || room.starts() == 2);
    let pids: Vec<String> = lines(&room.notes)
        .iter()
        .filter_map(|line| line.split(' ').nth(1).map(str::to_owned))
        .collect();
    assert!(!runs(&pids[0]) && runs(&pids[1]), "{pids:?}");
    assert!(daemon.terminate().success());
    assert!(!runs(&pids[1]));
}
