//! The limits of runs: their number at a time, their order, the number of kept folders, what happens while no run can
//! start, and the warning before a run's time is over.

use std::fs::{create_dir, remove_file};
use std::time::Duration;

use settled_tests::{ledger, list, names, read, seed, wait, write};

use super::{Room, lines, runs};

/// The log's warning before the time of a command is over.
const WARNING: &str = "the time of a command is nearly over";

/// A room whose reviewer works until the file exists, with another line for the runner.
fn working(runner: &str, more: &str) -> (Room, std::path::PathBuf, tempfile::TempDir) {
    let directory = settled_tests::scratch();
    let go = directory.path().join("go");
    let room = Room::new(&["wait", &go.display().to_string()], more);
    let config = room.mailroom.root().join("settled.toml");
    let text = read(&config).replace("[runner]\n", &format!("[runner]\n{runner}\n"));
    write(&config, &text);
    (room, go, directory)
}

fn said(log: &str) -> usize {
    log.lines().filter(|line| line.contains(WARNING)).count()
}

#[test]
fn the_end_of_its_time_is_told_once_before_it_comes_and_not_again_after_a_restart() {
    let (room, _, _directory) = working("warn_s = 6", "");
    let daemon = room.serve();
    room.ask("86", "request-1", 10, 8);
    wait::until("the reviewer to be started", || room.starts() == 1);
    assert_eq!(said(&daemon.log()), 0, "{}", daemon.log());
    wait::until("the warning", || said(&daemon.log()) == 1);
    assert_eq!(
        room.review()["phase"],
        "reviewing",
        "it comes before the end"
    );
    let log = daemon.log();
    assert!(daemon.terminate().success());
    assert_eq!(said(&log), 1);
    let daemon = room.serve();
    wait::until("the second start", || room.starts() == 2);
    assert_eq!(room.end().0["reason"], "reviewer_budget_exceeded");
    assert_eq!(said(&daemon.log()), 0, "{}", daemon.log());
}

#[test]
fn a_restart_before_the_warning_does_not_lose_it() {
    let (room, _, _directory) = working("warn_s = 2", "");
    let daemon = room.serve();
    room.ask("86", "request-1", 8, 8);
    wait::until("the reviewer to be started", || room.starts() == 1);
    daemon.kill();
    let daemon = room.serve();
    assert_eq!(room.end().0["reason"], "reviewer_budget_exceeded");
    assert_eq!(
        (room.starts(), said(&daemon.log())),
        (2, 1),
        "{}",
        daemon.log()
    );
}

#[test]
fn no_warning_is_given_where_none_is_wanted() {
    let (room, _, _directory) = working("warn_s = 0", "");
    let daemon = room.serve();
    room.ask("86", "request-1", 1, 8);
    assert_eq!(room.end().0["reason"], "reviewer_budget_exceeded");
    assert_eq!(said(&daemon.log()), 0, "{}", daemon.log());
}

#[test]
fn the_newest_two_hundred_folders_are_kept_and_never_one_that_runs_is_removed() {
    let (room, go, _directory) = working("", "concurrent = 2");
    let daemon = room.serve();
    room.ask("86", "request-1", 20, 8);
    wait::until("the first start", || room.starts() == 1);
    let folders = room.mailroom.root().join(".settled/runs");
    let first = names(&folders).remove(0);
    // Newer by their names: the running one is the oldest.
    for n in 0..205 {
        let folder = folders.join(format!("zzz{n:03}"));
        create_dir(&folder).expect("a folder");
        write(folder.join("stdout"), "PASS\n");
    }
    // Other files in the directory delay nobody.
    write(folders.join("a note"), "keep out");
    room.ask("87", "request-2", 20, 8);
    wait::until("the second start", || room.starts() == 2);
    let left = names(&folders);
    assert!(
        left.contains(&first) && left.contains(&"a note".to_owned()),
        "{left:?}"
    );
    assert_eq!(
        left.iter()
            .find(|name| name.starts_with("zzz"))
            .map(String::as_str),
        Some("zzz006")
    );
    assert_eq!(left.len(), 202, "200, the one that runs and the note");
    let pid = lines(&room.notes)[0]
        .split(' ')
        .nth(1)
        .expect("a number")
        .to_owned();
    assert!(runs(&pid));
    write(&go, "");
    wait::until("both to be approved", || approved(&room) == 2);
    drop(daemon);
}

#[test]
fn while_no_folder_can_be_made_nothing_is_started_and_no_start_is_lost() {
    let room = Room::new(&["agree"], "");
    let folders = room.mailroom.root().join(".settled/runs");
    write(&folders, "in the way");
    let daemon = room.serve();
    room.ask("86", "request-1", 20, 8);
    let trouble = "cannot start a command; will retry";
    wait::until("word of it", || daemon.log().contains(trouble));
    room.mailroom.run(&[
        "send",
        "notification",
        "--agent",
        "gemini",
        "--to",
        "claude",
        "--body",
        "hello",
    ]);
    wait::a_moment(Duration::from_millis(1_500));
    assert_eq!(
        (room.starts(), room.events("started"), room.events("failed")),
        (0, 0, 0)
    );
    assert_eq!(room.review()["phase"], "reviewing");
    remove_file(&folders).expect("it was ours");
    assert_eq!(room.end().0["phase"], "approved");
    assert_eq!((room.starts(), room.events("started")), (1, 1));
    assert_eq!(daemon.log().matches(trouble).count(), 1, "{}", daemon.log());
}

#[test]
fn ten_waiting_requests_are_served_the_urgent_one_first_within_both_limits() {
    let script = "d=$FAKE_NOTES.d; mkdir -p $d; touch $d/$SETTLED_AGENT-$$
        echo $SETTLED_AGENT $(ls $d | grep -c $SETTLED_AGENT) $(ls $d | wc -l) >> $FAKE_NOTES
        sleep 0.3; rm $d/$SETTLED_AGENT-$$; echo PASS";
    let command = format!("'sh', '-c', '''{script}'''");
    let room = Room::with_command(&command, "concurrent = 2");
    let config = read(room.mailroom.root().join("settled.toml"));
    let (_, section) = config
        .split_once("[agents.codex]")
        .expect("it has a section");
    let of_gemini = section.replace("concurrent = 2", "concurrent = 1");
    room.mailroom.put(
        "settled.toml",
        &format!("{config}\n[agents.gemini]{of_gemini}"),
    );
    for (n, pr) in (86..96).enumerate() {
        let reviewer = if n % 2 == 0 { "codex" } else { "gemini" };
        let (id, body) = (
            format!("request-{pr}"),
            format!("pr: {pr}\nbranch: b\ndiff_summary: a change"),
        );
        let text = seed::review_message(
            "review_request",
            &id,
            "claude",
            reviewer,
            &pr.to_string(),
            &body,
        );
        room.post(
            "claude",
            &id,
            &if pr == 87 {
                text.replace("priority: P2", "priority: P0")
            } else {
                text
            },
        );
    }
    let daemon = room.serve();
    wait::until("all ten to be approved", || approved(&room) == 10);
    drop(daemon);
    let seen = lines(&room.notes);
    let most = |agent: &str, column: usize| {
        let of = seen.iter().filter(|line| line.starts_with(agent));
        of.filter_map(|line| line.split(' ').nth(column)?.parse::<u32>().ok())
            .max()
    };
    assert_eq!((seen.len(), room.events("started")), (10, 10), "{seen:?}");
    assert_eq!(
        (most("", 2), most("gemini", 1)),
        (Some(2), Some(1)),
        "{seen:?}"
    );
    let records = ledger::records(room.mailroom.root());
    let first = records
        .iter()
        .find(|record| record["kind"] == "started")
        .expect("ten were started");
    assert_eq!(
        first["decision"]["happened"]["event"]["started"]["pr"], "87",
        "the others are not as urgent"
    );
    assert_eq!(list(room.mailroom.root().join(".settled/runs")).len(), 10);
}

fn approved(room: &Room) -> usize {
    // Each check is a process, and the daemon and its agents need the machine too.
    wait::a_moment(Duration::from_millis(50));
    let status = room.mailroom.status();
    let reviews = status["reviews"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    reviews
        .iter()
        .filter(|review| review["phase"] == "approved")
        .count()
}
