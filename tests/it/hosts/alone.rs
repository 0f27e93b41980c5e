//! With only one host, the daemon runs no network code.

use std::process::{Command, Stdio};

use settled_tests::mailroom::Mailroom;
use settled_tests::{binaries, read};

/// The socket pair through which signals reach the loop.
const SIGNALS: &str = "socketpair(AF_UNIX";

/// Lines of `strace` without a call of their own: a thread ended before its call could be read, or an earlier call
/// returns.
const NO_CALL: [&str; 2] = ["???(", "<... "];

#[test]
fn with_one_host_the_daemon_opens_no_socket_but_the_one_of_its_signals() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let trace = mailroom.root().with_extension("trace");
    let mut daemon = Command::new("strace")
        .args([
            "-f",
            "-qq",
            "-e",
            // The calls that make or open a socket; without one nothing can be sent.
            "trace=socket,socketpair,bind,listen,accept,accept4,connect",
            "-e",
            "signal=none",
            "-o",
        ])
        .arg(&trace)
        .arg(binaries::settled())
        .args(["serve", "--until-eof"])
        .arg(mailroom.root())
        .env_remove("SETTLED_ROOT")
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("this test needs `strace`: {error}"));
    mailroom.post(
        "claude",
        "q.yaml",
        "id: \"q-1\"\nfrom: claude\nto: codex\ntype: question\npriority: P2\n\
         created_at_utc: \"2026-02-13T10:00:00Z\"\nsubject: \"Which?\"\nbody: \"This?\"\n",
    );
    mailroom.delivered("codex", "q.yaml");
    drop(daemon.stdin.take());
    assert!(daemon.wait().expect("it is our child").success());
    let trace = read(&trace);
    let calls: Vec<&str> = trace
        .lines()
        // The pid, and the call.
        .map(|line| line.split_once(' ').map_or(line, |(_, call)| call.trim()))
        .filter(|call| !NO_CALL.iter().any(|start| call.starts_with(start)))
        .collect();
    assert!(
        matches!(calls[..], [call] if call.starts_with(SIGNALS)),
        "one pair of sockets and nothing else, found:\n{trace}"
    );
}
