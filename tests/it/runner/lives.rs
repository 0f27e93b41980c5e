//! One process per request, whatever happens to the daemon: no start is forgotten or repeated, and processes of an
//! earlier daemon are identified by what they are, not by their pid.

use settled_tests::mailroom::Daemon;
use settled_tests::{wait, write};

use super::{Room, lines, runs};

/// A room whose reviewer works until the file exists; and the file.
fn working(more: &str) -> (Room, std::path::PathBuf, tempfile::TempDir) {
    let directory = settled_tests::scratch();
    let go = directory.path().join("go");
    let room = Room::new(&["wait", &go.display().to_string()], more);
    (room, go, directory)
}

fn first_pid(room: &Room) -> String {
    wait::until("the reviewer to be started", || room.starts() > 0);
    lines(&room.notes)[0]
        .split(' ')
        .nth(1)
        .expect("a number")
        .to_owned()
}

#[test]
fn a_daemon_that_stops_ends_its_agents_and_the_next_one_starts_them_once_more() {
    let (room, go, _directory) = working("");
    let daemon = room.serve();
    room.ask("86", "request-1", 20, 8);
    let pid = first_pid(&room);
    assert!(daemon.terminate().success());
    assert!(!runs(&pid), "it is ended before the daemon is");
    let daemon = room.serve();
    wait::until("the second start", || room.starts() == 2);
    write(&go, "");
    assert_eq!(room.end().0["phase"], "approved");
    assert_eq!((room.starts(), room.events("started")), (2, 2));
    drop(daemon);
}

#[test]
fn what_a_killed_daemon_left_is_ended_before_its_request_is_served_again() {
    let (room, go, _directory) = working("");
    let daemon = room.serve();
    room.ask("86", "request-1", 20, 8);
    let pid = first_pid(&room);
    daemon.kill();
    let daemon = room.serve();
    wait::until("the second start", || room.starts() == 2);
    assert!(!runs(&pid), "two never run at a time");
    write(&go, "");
    assert_eq!(room.end().0["phase"], "approved");
    drop(daemon);
}

#[test]
fn a_third_start_is_never_made_however_often_the_daemon_is_killed() {
    let (room, _, _directory) = working("");
    room.ask("86", "request-1", 20, 8);
    for start in 1..=2 {
        let daemon = room.serve();
        wait::until("the reviewer to be started", || room.starts() == start);
        daemon.kill();
    }
    let daemon = room.serve();
    let (review, _) = room.end();
    assert_eq!(
        (&review["reason"], room.starts()),
        (&"invocation_failed".into(), 2)
    );
    drop(daemon);
}

#[test]
fn a_start_that_was_lost_with_its_daemon_is_a_failed_one() {
    let (room, _, _directory) = working("");
    room.ask("86", "request-1", 20, 8);
    for start in 1..=2 {
        let daemon = room.serve();
        wait::until("the reviewer to be started", || room.starts() == start);
        daemon.kill();
    }
    // The last one looks like a kill right after its record: without a folder.
    let runs = room.mailroom.root().join(".settled/runs");
    let last = settled_tests::list(&runs).pop().expect("two runs");
    wait::until("its keeper to end", || last.join("end.json").exists());
    std::fs::remove_dir_all(&last).expect("it is ours");
    let daemon = room.serve();
    let (review, _) = room.end();
    drop(daemon);
    assert_eq!(review["reason"], "invocation_failed", "{review}");
    let why = review["failed"]["why"].as_str().expect("words");
    assert!(why.contains("lost with an earlier daemon"), "{why}");
    assert_eq!(room.starts(), 2);
}

#[test]
fn an_agent_whose_keeper_was_killed_with_the_daemon_is_ended_by_the_next() {
    let (room, go, _directory) = working("");
    let daemon = room.serve();
    room.ask("86", "request-1", 20, 8);
    let pid = first_pid(&room);
    kill_both(&room, daemon);
    assert!(runs(&pid), "nobody has ended it");
    let daemon = room.serve();
    wait::until("the second start", || room.starts() == 2);
    assert!(!runs(&pid));
    write(&go, "");
    assert_eq!(room.end().0["phase"], "approved");
    drop(daemon);
}

/// Kills the daemon and its only keeper; stops the keeper first, so that it does not notice the end of its daemon.
fn kill_both(room: &Room, daemon: Daemon) {
    let folder = settled_tests::list(room.mailroom.root().join(".settled/runs")).remove(0);
    let processes: serde_json::Value =
        serde_json::from_str(&settled_tests::read(folder.join("process.json"))).expect("JSON");
    let keeper =
        i32::try_from(processes["keeper"]["pid"].as_i64().expect("a number")).expect("a pid");
    let keeper = rustix::process::Pid::from_raw(keeper).expect("a pid");
    rustix::process::kill_process(keeper, rustix::process::Signal::STOP).expect("it runs");
    daemon.kill();
    rustix::process::kill_process(keeper, rustix::process::Signal::KILL).expect("it runs");
}

#[test]
fn a_process_that_hides_from_its_keeper_is_ended_where_the_kernel_keeps_it_in_a_group() {
    let hides =
        "env -i setsid sh -c \"echo pid \\$\\$ >> $FAKE_NOTES; exec sleep 3600\" & sleep 3600";
    let room = Room::with_command(&format!("'sh', '-c', '''{hides}'''"), "");
    let daemon = room.serve();
    room.ask("86", "request-1", 20, 8);
    wait::until("the hidden process", || room.starts() == 1);
    let pid = first_pid(&room);
    let has_group = settled_tests::list(room.mailroom.root().join(".settled/runs"))
        .iter()
        .any(|folder| settled_tests::read(folder.join("process.json")).contains("\"group\""));
    kill_both(&room, daemon);
    let daemon = room.serve();
    wait::until("the second start", || room.starts() == 2);
    assert_eq!(runs(&pid), !has_group, "{pid}");
    drop(daemon);
    if !has_group {
        let pid = rustix::process::Pid::from_raw(pid.parse().expect("a number")).expect("a pid");
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it runs");
    }
}

#[test]
fn no_more_run_at_a_time_than_the_config_says() {
    let (room, go, _directory) = working("");
    let daemon = room.serve();
    for pr in ["86", "87", "88"] {
        room.ask(pr, &format!("request-{pr}"), 20, 8);
    }
    room.mailroom.cleared("claude");
    wait::until("the first start", || room.starts() == 1);
    // By default an agent runs one command at a time, and the others wait for its end.
    wait::a_moment(std::time::Duration::from_millis(500));
    assert_eq!((room.starts(), room.events("started")), (1, 1));
    write(&go, "");
    wait::until("all three to be approved", || {
        let reviews = room.mailroom.status()["reviews"].clone();
        reviews
            .as_array()
            .is_some_and(|reviews| reviews.iter().all(|review| review["phase"] == "approved"))
    });
    assert_eq!(room.starts(), 3);
    drop(daemon);
}

#[test]
fn a_request_that_somebody_took_is_left_to_them_and_without_a_command_nothing_is_started() {
    let (room, _, _directory) = working("");
    room.ask("86", "request-1", 20, 8);
    room.mailroom.once();
    let taken = room.mailroom.run(&["take", "--pr", "86"]);
    assert!(
        taken.status.success(),
        "{}",
        settled_tests::mailroom::said(&taken)
    );
    let daemon = room.serve();
    room.ask("87", "request-2", 20, 8);
    wait::until("the other request to be started", || room.starts() == 1);
    assert_eq!(room.events("started"), 1);
    drop(daemon);
}

#[test]
fn the_program_of_a_run_runs_only_what_an_agent_needs_in_it() {
    let tried = [
        "agent add mine --program custom -- id",
        "pair --help",
        "--root . pair",
        "",
        // No other agent's name, and no other workspace.
        "lgtm --agent gemini",
        "inbox --agent=claude",
        "why 86 --root .",
        "status --root=.",
    ];
    let lines: Vec<String> = tried
        .iter()
        .map(|words| format!("{{settled}} {words}; echo $? >> \"$FAKE_NOTES\""))
        .collect();
    let command = format!("'sh', '-c', '''{}; {{settled}} lgtm'''", lines.join("; "));
    let room = Room::with_command(&command, "");
    let daemon = room.serve();
    room.ask("86", "request-1", 20, 8);
    assert_eq!(room.end().0["phase"], "approved");
    assert_eq!(super::lines(&room.notes), ["5"; 8]);
    assert!(!room.mailroom.agent("mine", "inbox").exists());
    drop(daemon);
}
