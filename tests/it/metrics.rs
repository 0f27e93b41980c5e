//! The metrics and the health as a scraper reads them; the alert rules and the dashboard ask only for existing metrics.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use settled_tests::mailroom::Mailroom;
use settled_tests::{debian, read, repository, seed, wait, write};

const AT_SOCKET: &str = "[metrics]\nlisten = \"unix:.settled/metrics.sock\"\n";

/// More than the daemon's patience with any client.
const PATIENCE: Duration = Duration::from_secs(20);

fn connect(mailroom: &Mailroom) -> UnixStream {
    let stream = UnixStream::connect(mailroom.root().join(".settled/metrics.sock"))
        .expect("the socket is there");
    stream
        .set_read_timeout(Some(PATIENCE))
        .expect("a time-out can be set");
    stream
}

/// Returns the answer to these bytes.
fn answer(mut stream: UnixStream, request: &[u8]) -> String {
    // The server may answer before it has read everything, and then the rest cannot be sent.
    let _ = stream.write_all(request);
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => panic!("no answer: {error}"),
    }
    String::from_utf8(bytes).expect("we answer in UTF-8")
}

fn get(mailroom: &Mailroom, path: &str) -> String {
    answer(
        connect(mailroom),
        format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes(),
    )
}

/// A mailroom with one approved review and one refusal, its daemon, and the page of metrics.
fn after_a_review() -> (Mailroom, settled_tests::mailroom::Daemon, String) {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    mailroom.put("settled.toml", AT_SOCKET);
    seed::lay_packet(mailroom.root());
    let daemon = mailroom.serve();
    for post in &seed::review() {
        mailroom.post(post.from, post.file, &post.text);
        mailroom.cleared(post.from);
    }
    mailroom.post(
        "claude",
        "lost.yaml",
        &seed::note("question", "q-1", "claude", "nobody", "?"),
    );
    mailroom.refused("claude", "lost.yaml");
    let page = wait::for_some("the counts of the review", || {
        let page = get(&mailroom, "/metrics");
        let has = |line: &str| page.lines().any(|found| found == line);
        let is_all = has("settled_reviews{phase=\"approved\"} 1")
            && has("settled_messages_refused_total{code=\"unknown_recipient\"} 1")
            && has("settled_files_undelivered 0");
        is_all.then_some(page)
    });
    (mailroom, daemon, page)
}

#[test]
fn the_page_counts_what_happened() {
    let (mailroom, daemon, page) = after_a_review();
    for line in [
        "settled_messages_accepted_total{type=\"review_request\"} 2",
        "settled_messages_accepted_total{type=\"review_feedback\"} 1",
        "settled_messages_accepted_total{type=\"review_lgtm\"} 1",
        "settled_messages_refused_total{code=\"unknown_recipient\"} 1",
        "settled_reviews_ended_total{outcome=\"approved\"} 1",
        "settled_reviews_ended_total{outcome=\"escalated\"} 0",
        "settled_review_rounds_bucket{le=\"1\"} 0",
        "settled_review_rounds_bucket{le=\"2\"} 1",
        "settled_delivery_seconds_count 5",
        "settled_agents 2",
        "settled_mailboxes_parked 0",
    ] {
        assert!(
            page.lines().any(|found| found == line),
            "no `{line}` in\n{page}"
        );
    }
    for measured in ["commit", "sweep", "checkpoint"] {
        let count = format!("settled_{measured}_seconds_count ");
        // The daemon makes a checkpoint when it is idle, after it counted everything above.
        wait::until(measured, || {
            let page = get(&mailroom, "/metrics");
            let count = page.lines().find_map(|line| line.strip_prefix(&count));
            count.and_then(|count| count.parse().ok()) > Some(0_u64)
        });
    }
    assert!(
        !page.contains("claude"),
        "numbers and our own words, no names:\n{page}"
    );
    assert!(daemon.terminate().success());
}

#[test]
fn whoever_asks_badly_or_slowly_holds_up_nobody() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    mailroom.put("settled.toml", AT_SOCKET);
    let daemon = mailroom.serve();
    assert!(get(&mailroom, "/health").starts_with("HTTP/1.1 200 OK\r\n"));
    assert!(get(&mailroom, "/else").starts_with("HTTP/1.1 404 "));
    assert!(
        answer(connect(&mailroom), b"POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 ")
    );
    assert!(answer(connect(&mailroom), b"\0\xff\r\n\r\n").starts_with("HTTP/1.1 405 "));
    let long = [b"GET /".as_slice(), &[b'a'; 100_000]].concat();
    let said = answer(connect(&mailroom), &long);
    assert!(
        said.is_empty() || said.starts_with("HTTP/1.1 404 "),
        "{said}"
    );

    // More silent connections than the daemon answers at once.
    let silent: Vec<UnixStream> = (0..8).map(|_| connect(&mailroom)).collect();
    assert!(get(&mailroom, "/health").ends_with("\r\n\r\nok\n"));
    for stream in silent {
        assert_eq!(answer(stream, b""), "", "it was hung up on");
    }
    mailroom.post(
        "claude",
        "note.yaml",
        &seed::note("question", "q-1", "claude", "codex", "?"),
    );
    mailroom.delivered("codex", "note.yaml");
    assert!(daemon.terminate().success());
    assert!(
        !mailroom.root().join(".settled/metrics.sock").exists(),
        "it goes with the daemon"
    );
}

#[test]
fn a_socket_left_by_a_kill_is_replaced_and_a_place_that_is_taken_is_refused() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    mailroom.put("settled.toml", AT_SOCKET);
    mailroom.serve().kill();
    assert!(mailroom.root().join(".settled/metrics.sock").exists());
    let daemon = mailroom.serve();
    assert!(get(&mailroom, "/health").ends_with("ok\n"));

    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = taken.local_addr().expect("it has one");
    let config = mailroom.root().join("settled.toml");
    write(&config, &format!("[metrics]\nlisten = \"{at}\"\n"));
    daemon.hang_up();
    wait::until("the refusal", || {
        daemon.log().contains("settled.toml is invalid")
    });
    assert!(
        daemon.log().contains("cannot listen on metrics.listen"),
        "{}",
        daemon.log()
    );
    wait::until("the gauge", || {
        get(&mailroom, "/metrics").contains("settled_config_refused 1")
    });

    drop(taken);
    daemon.hang_up();
    let health = wait::for_some("the new place", || {
        let mut stream = TcpStream::connect(at).ok()?;
        stream.write_all(b"GET /health HTTP/1.1\r\n\r\n").ok()?;
        let mut said = String::new();
        stream.read_to_string(&mut said).ok()?;
        Some(said)
    });
    assert!(health.ends_with("ok\n"), "{health}");
    let old = mailroom.root().join(".settled/metrics.sock");
    wait::until("the old place to be given up", || !old.exists());
    assert!(daemon.terminate().success());
}

/// Our metrics that a text names.
fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words
        .filter(|word| word.starts_with("settled_"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn rules_and_dashboard_ask_for_counts_there_are() {
    let (_mailroom, daemon, page) = after_a_review();
    assert!(daemon.terminate().success());
    let (_, body) = page.split_once("\r\n\r\n").expect("a head and a page");
    // A metric without samples still has its header lines.
    let known = names(body);
    let monitoring = repository().join("docs/monitoring");
    let rules = read(monitoring.join("alerts.yml"));
    let dashboard = read(monitoring.join("grafana.json"));
    let parsed: serde_json::Value =
        serde_json::from_str(&dashboard).expect("the dashboard is JSON");
    assert!(
        parsed["panels"]
            .as_array()
            .is_some_and(|panels| panels.len() >= 10)
    );
    for name in names(&rules).union(&names(&dashboard)) {
        assert!(known.contains(name), "{name} is on no page:\n{body}");
    }
    let groups: serde_json::Value = serde_yaml::from_str(&rules).expect("the rules are YAML");
    let operations = read(repository().join("docs/operations.md"));
    for rule in groups["groups"][0]["rules"]
        .as_array()
        .expect("a list of rules")
    {
        let alert = rule["alert"].as_str().expect("a name");
        assert!(
            operations.contains(&format!("#### {alert}\n")),
            "{alert} is not explained"
        );
        let runbook = rule["annotations"]["runbook"].as_str().expect("a runbook");
        assert_eq!(
            runbook,
            format!("docs/operations.md#{}", alert.to_lowercase())
        );
    }
    check_with_promtool(&monitoring.join("alerts.yml"), body);
}

/// Runs Prometheus's own parser.
fn check_with_promtool(rules: &std::path::Path, page: &str) {
    let promtool = debian::program("promtool", "prometheus");
    let checked = Command::new(&promtool)
        .args(["check", "rules"])
        .arg(rules)
        .output()
        .expect("promtool");
    assert!(
        checked.status.success(),
        "{}",
        String::from_utf8_lossy(&checked.stderr)
    );
    let mut lint = Command::new(&promtool)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("promtool");
    lint.stdin
        .take()
        .expect("a pipe")
        .write_all(page.as_bytes())
        .expect("it reads");
    assert!(lint.wait().expect("it is our child").success());
}
