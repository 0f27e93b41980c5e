//! Notifications to a supervisor: this test binds the socket as systemd would, and applies the watchdog's time like it.

use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::Duration;

use settled_tests::mailroom::{Daemon, Mailroom};
use settled_tests::{names, read, seed, wait, write};

/// The limit for a message without a limit of its own.
const SOON: Duration = Duration::from_secs(20);

/// The watchdog's patience: far more than a turn of the loop takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(4);

/// The supervisor's end of the socket.
struct Supervisor {
    socket: UnixDatagram,
    path: String,
}

impl Supervisor {
    fn of(mailroom: &Mailroom) -> Self {
        let path = mailroom.root().with_extension("notify");
        let socket = UnixDatagram::bind(&path).expect("a socket in a temporary directory");
        Self {
            socket,
            path: path
                .to_str()
                .expect("temporary directories are named in ASCII")
                .to_owned(),
        }
    }

    fn start(&self, mailroom: &Mailroom) -> Daemon {
        let usec = PATIENCE.as_micros().to_string();
        mailroom.spawn_with(&[("NOTIFY_SOCKET", &self.path), ("WATCHDOG_USEC", &usec)])
    }

    /// The next notification, if one arrives in time.
    fn next_within(&self, time: Duration) -> Option<String> {
        let mut bytes = [0; 4096];
        self.socket
            .set_read_timeout(Some(time))
            .expect("a time-out can be set");
        loop {
            match self.socket.recv(&mut bytes) {
                Ok(length) => return Some(String::from_utf8_lossy(&bytes[..length]).into_owned()),
                // A signal for another test ends a call with a time-out, whatever its handler asks for.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    return None;
                }
                Err(error) => panic!("the notify socket: {error}"),
            }
        }
    }

    /// Waits for a notification that contains this, skipping others.
    fn hears(&self, what: &str) -> String {
        wait::for_some(what, || {
            self.next_within(SOON).filter(|said| said.contains(what))
        })
    }
}

#[test]
fn ready_is_said_once_after_the_first_sweep_and_then_the_counts() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let supervisor = Supervisor::of(&mailroom);
    mailroom.post("claude", "request.yaml", &seed::review()[0].text);
    let daemon = supervisor.start(&mailroom);
    let first = supervisor.next_within(SOON).expect("a notification");
    // The sweep has seen the file in the outbox and not judged it yet.
    assert_eq!(
        first,
        "READY=1\nSTATUS=2 agents, 0 reviews open, 0 messages accepted, 1 waiting"
    );
    let then = supervisor.hears("STATUS=");
    assert!(!then.contains("READY"), "{then}");
    assert!(
        then.contains("1 reviews open, 1 messages accepted"),
        "{then}"
    );
    assert!(daemon.terminate().success());
    supervisor.hears("STOPPING=1");
}

#[test]
fn a_daemon_that_cannot_start_never_says_that_it_is_ready() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let first = mailroom.serve();
    let supervisor = Supervisor::of(&mailroom);
    let second = supervisor.start(&mailroom);
    assert_eq!(
        second.ended().code(),
        Some(9),
        "another daemon serves the workspace"
    );
    assert_eq!(supervisor.next_within(Duration::from_millis(1)), None);
    assert!(first.terminate().success());
}

/// A sync of the ledger takes ten seconds: the loop hangs while the process lives.
#[test]
fn a_loop_that_hangs_gives_no_sign_of_life() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let supervisor = Supervisor::of(&mailroom);
    let daemon = supervisor.start(&mailroom);
    supervisor.hears("READY=1");
    for beat in 0..3 {
        let said = supervisor.next_within(PATIENCE);
        assert!(
            said.is_some_and(|said| said == "WATCHDOG=1"),
            "beat {beat} did not come in time"
        );
    }

    let pid = daemon.pid().as_raw_nonzero().to_string();
    let mut tracer = Command::new("strace")
        .args(["-e", "trace=fdatasync", "-o", "/dev/null"])
        .args(["-e", "inject=fdatasync:delay_enter=10s", "-p", &pid])
        .stderr(Stdio::null())
        .spawn()
        .expect("strace can be run");
    wait::until("strace to hold it", || {
        !read(format!("/proc/{pid}/status")).contains("TracerPid:\t0\n")
    });
    let note = seed::note("question", "q-1", "claude", "codex", "?");
    mailroom.post("claude", "a.yaml", &note);
    let ledger = mailroom
        .root()
        .join(".settled/ledger/00000000000000000001.jsonl");
    wait::until("the batch to be written", || {
        ledger.metadata().is_ok_and(|data| data.len() > 0)
    });
    while supervisor.next_within(Duration::from_millis(1)).is_some() {}
    assert_eq!(
        supervisor.next_within(PATIENCE),
        None,
        "the watchdog's time is up"
    );

    // The supervisor's reaction.
    assert!(!daemon.kill().success());
    tracer.wait().expect("our child");
    let daemon = supervisor.start(&mailroom);
    supervisor.hears("READY=1");
    assert!(daemon.terminate().success());
}

#[test]
fn a_config_read_anew_is_applied_whole_or_refused_whole() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let supervisor = Supervisor::of(&mailroom);
    let daemon = supervisor.start(&mailroom);
    supervisor.hears("READY=1");
    let config = mailroom.root().join("settled.toml");
    let note = |id: &str| seed::note("question", id, "claude", "codex", "?");

    write(&config, "[limits]\nmessages_per_hour = 1\n");
    daemon.hang_up();
    let reloading = supervisor.hears("RELOADING=1");
    let usec = reloading
        .lines()
        .find_map(|line| line.strip_prefix("MONOTONIC_USEC="));
    assert!(
        usec.is_some_and(|usec| usec.parse::<u64>().is_ok_and(|usec| usec > 0)),
        "{reloading}"
    );
    supervisor.hears("READY=1");
    mailroom.post("claude", "one.yaml", &note("q-1"));
    mailroom.delivered("codex", "one.yaml");
    mailroom.post("claude", "two.yaml", &note("q-2"));
    assert_eq!(
        mailroom.refused("claude", "two.yaml")["refused"],
        "rate_limited"
    );

    // If only its first half counted, the limit would be gone.
    write(
        &config,
        "[limits]\nmessages_per_hour = 60\n[rounds]\nmax = 4\n",
    );
    daemon.hang_up();
    let refused = supervisor.hears("READY=1");
    assert!(
        refused.contains("the old config still applies"),
        "{refused}"
    );
    assert!(
        refused.contains("settled.toml:4:7: config_invalid: rounds.max is 4"),
        "{refused}"
    );
    assert!(
        daemon.log().contains("settled.toml is invalid"),
        "{}",
        daemon.log()
    );
    mailroom.post("claude", "three.yaml", &note("q-3"));
    assert_eq!(
        mailroom.refused("claude", "three.yaml")["refused"],
        "rate_limited"
    );
    mailroom.post(
        "codex",
        "five.yaml",
        &seed::note("question", "q-5", "codex", "claude", "?"),
    );
    let later = supervisor.hears("STATUS=");
    assert!(
        later.contains("the old config still applies"),
        "said as long as it lasts: {later}"
    );

    write(&config, "[limits]\nmessages_per_hour = 60\n");
    daemon.hang_up();
    let applied = supervisor.hears("READY=1");
    assert!(!applied.contains("still applies"), "{applied}");
    mailroom.post("claude", "four.yaml", &note("q-4"));
    mailroom.delivered("codex", "four.yaml");
    assert!(daemon.terminate().success());
}

#[test]
fn a_stop_finishes_the_current_batch_and_leaves_the_rest() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    mailroom.put("settled.toml", "[limits]\nmessages_per_hour = 10000\n");
    let supervisor = Supervisor::of(&mailroom);
    let count = 1500;
    for number in 0..count {
        let file = format!("n-{number}.yaml");
        mailroom.post(
            "claude",
            &file,
            &seed::note("question", &format!("q-{number}"), "claude", "codex", "?"),
        );
    }
    let daemon = supervisor.start(&mailroom);
    let inbox = mailroom.agent("codex", "inbox");
    wait::until("the first batch", || !names(&inbox).is_empty());
    assert!(daemon.terminate().success());
    supervisor.hears("STOPPING=1");

    let delivered = names(&inbox).len();
    assert!(
        (1..count).contains(&delivered),
        "it stopped in the middle: {delivered} of {count}"
    );
    let accepted = mailroom.json(&["status"])["data"]["accepted"].as_u64();
    assert_eq!(
        accepted,
        Some(delivered as u64),
        "what was promised is there, and nothing else"
    );
    assert_eq!(
        names(mailroom.agent("claude", "outbox")).len(),
        count - delivered
    );
    assert!(mailroom.once().status.success());
    assert_eq!(names(&inbox).len(), count);
}

/// The secret in the subject and the body of a message.
const SECRET: &str = "hunter2-is-my-password";

/// The log, in this form, of a daemon that gets one good and two wrong messages.
fn log_of(settings: &[(&str, &str)]) -> String {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let settings = [&[("SETTLED_LOG", "debug")], settings].concat();
    let daemon = mailroom.spawn_with(&settings);
    let note = seed::note("question", "q-1", "claude", "codex", SECRET)
        .replace("subject: \"", &format!("subject: \"{SECRET} "));
    mailroom.post("claude", "a\nb.yaml", &note);
    mailroom.post(
        "claude",
        "unknown.yaml",
        &note
            .replace("q-1", "q-2")
            .replace("to: codex", "to: nobody"),
    );
    mailroom.post(
        "claude",
        "broken.yaml",
        &format!("id: q-3\nfrom: \"{SECRET}\n"),
    );
    mailroom.delivered("codex", "a\nb.yaml");
    mailroom.refused("claude", "unknown.yaml");
    mailroom.refused("claude", "broken.yaml");
    let log = daemon.log();
    assert!(daemon.terminate().success());
    assert!(
        !log.contains(SECRET),
        "the log tells what messages say:\n{log}"
    );
    log
}

#[test]
fn a_log_in_json_is_one_object_a_line_and_tells_no_secrets() {
    let log = log_of(&[("SETTLED_LOG_FORMAT", "json")]);
    let line = |line: &str| {
        serde_json::from_str::<serde_json::Value>(line)
            .unwrap_or_else(|error| panic!("{error}: {line}"))
    };
    let lines: Vec<serde_json::Value> = log.lines().map(line).collect();
    assert!(
        lines
            .iter()
            .all(|line| line["time"].is_string() && line["level"].is_string()),
        "{log}"
    );
    let fact = |verdict: &str| lines.iter().find(|line| line["verdict"] == verdict);
    let accepted = fact("accepted").unwrap_or_else(|| panic!("no acceptance in\n{log}"));
    assert_eq!(
        (&accepted["level"], &accepted["from"], &accepted["id"]),
        (&"info".into(), &"claude".into(), &"q-1".into())
    );
    assert!(accepted["seq"].is_u64(), "{accepted}");
    assert!(
        lines.iter().any(|line| line["code"] == "unknown_recipient"),
        "{log}"
    );
}

#[test]
fn a_log_for_the_journal_has_a_priority_before_every_line() {
    let log = log_of(&[("SETTLED_LOG_FORMAT", "journald")]);
    for line in log.lines() {
        let priority = line.strip_prefix('<').and_then(|line| line.split_once('>'));
        assert!(
            priority.is_some_and(|(number, rest)| "3467".contains(number) && !rest.is_empty()),
            "{line}"
        );
    }
    assert!(
        log.contains("<6>seq=") || log.contains("verdict=accepted"),
        "{log}"
    );
    let text = log_of(&[("SETTLED_LOG_FORMAT", "text")]);
    assert!(
        text.lines().all(|line| line.starts_with("20")),
        "one line a fact:\n{text}"
    );
}

#[test]
fn the_journal_is_known_by_its_stream_and_nothing_else() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let elsewhere = mailroom.spawn_with(&[("JOURNAL_STREAM", "1:1")]);
    wait::until("the daemon to serve", || {
        elsewhere.log().contains("serving")
    });
    assert!(!elsewhere.log().starts_with('<'), "{}", elsewhere.log());
    assert!(elsewhere.terminate().success());
    // The shell passes the stream's numbers as systemd would.
    let log = mailroom.root().with_extension("log");
    let script = "exec 2>\"$1\"; export JOURNAL_STREAM=$(stat -L -c %d:%i \"$1\"); exec \"$2\" serve --once \"$3\"";
    let status = Command::new("bash")
        .args(["-c", script, "bash"])
        .arg(&log)
        .arg(settled_tests::binaries::settled())
        .arg(mailroom.root())
        .env_remove("SETTLED_LOG_FORMAT")
        .status()
        .expect("bash can be run");
    assert!(status.success(), "{status}");
    let log = settled_tests::read(log);
    assert!(
        !log.is_empty() && log.lines().all(|line| line.starts_with("<6>")),
        "{log}"
    );
}
