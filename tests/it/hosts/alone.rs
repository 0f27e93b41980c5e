//! With one host nothing of a network runs in the daemon.

use std::process::{Command, Stdio};

use settled_tests::mailroom::Mailroom;
use settled_tests::{binaries, read};

/// The pair through which signals reach the loop, and what is written to it and read from it.
const SIGNALS: [&str; 3] = ["socketpair(AF_UNIX", "sendto(", "recvfrom("];

#[test]
fn with_one_host_the_daemon_opens_no_socket_but_the_one_of_its_signals() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let trace = mailroom.root().with_extension("trace");
    let mut daemon = Command::new("strace")
        .args([
            "-f",
            "-qq",
            "-e",
            "trace=%network",
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
    assert_eq!(trace.matches("socketpair(").count(), 1, "{trace}");
    for line in trace.lines() {
        // A process id, and the call.
        let call = line.split_once(' ').map_or(line, |(_, call)| call.trim());
        let is_known =
            SIGNALS.iter().any(|known| call.starts_with(known)) || call.contains("resumed>");
        assert!(is_known, "{line}\n\nin:\n{trace}");
    }
}
