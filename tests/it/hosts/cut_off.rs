//! A host that cannot reach its broker says so to people, agents and programs, accepts nothing, loses nothing, and
//! catches up.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use settled_tests::mailroom::{Mailroom, said};
use settled_tests::{names, read, wait};

use super::programs::{Hosts, Place, done, ledger, question, review};
use crate::page::Page;

/// A place where a host reports that it is cut off, and the check of it.
type Said = (&'static str, fn(&Mailroom, &Page) -> bool);

/// Places that have 2 s.
const SAID_IN_TIME: [Said; 5] = [
    ("the metric", |tower, _| {
        metrics(tower).contains("settled_shared_ledger{standing=\"waiting\"} 1")
    }),
    ("status", |tower, _| {
        done(tower, &["status"]).contains(WAITS)
    }),
    ("status --json", |tower, _| {
        let status = tower.status();
        let mut alerts = status["alerts"].as_array().into_iter().flatten();
        alerts.any(|alert| alert["kind"] == "shared_ledger" && waits(&alert["what"]))
    }),
    ("the hook", |tower, _| {
        let hook = done(tower, &["hook", "session-start", "--agent", "claude"]);
        hook.contains("this host cannot follow the shared ledger now")
    }),
    ("host list", |tower, _| {
        waits(&tower.json(&["host", "list"])["data"]["trouble"])
    }),
];

/// Places that show the same alert.
const SAID: [Said; 4] = [
    ("problems", |tower, _| {
        said(&tower.run(&["problems"])).contains(WAITS)
    }),
    ("watch", |tower, _| {
        done(tower, &["watch", "--once"]).contains(WAITS)
    }),
    ("watch --json", |tower, _| {
        let watch = tower.json(&["watch", "--once"]);
        let needs = watch["data"]["needs"].as_array();
        let mut needs = needs.expect("a list of needs").iter();
        needs.any(|need| need["kind"] == "shared_ledger" && waits(&need["missing"]))
    }),
    ("the page", |_, page| {
        let shown = format!("Missing: </span>{WAITS}");
        page.get("/").body.contains(&shown)
    }),
];

/// The beginning of the alert.
const WAITS: &str = "waiting for the shared ledger since ";

#[test]
fn cut_off_a_host_says_so_within_two_seconds_and_catches_up_within_five() {
    let hosts = Hosts::on_a_broker();
    let config = hosts.tower.root().join("settled.toml");
    let metrics = "[metrics]\nlisten = \"unix:.settled/metrics.sock\"\n";
    hosts
        .tower
        .put("settled.toml", &format!("{}{metrics}", read(config)));
    let (_tower, _laptop) = (hosts.tower.serve(), hosts.laptop.serve());
    review(&hosts, "86");
    hosts.have_the_same_ledger();
    let page = Page::open(&hosts.tower, &[]);
    // A busy machine may take longer once, but not three times.
    let in_time = (0..3).any(|time| cut_off(&hosts, &page, time));
    assert!(in_time, "a host took too long three times");
}

/// Stops the broker and lets it continue; true if the tower reported both in time.
fn cut_off(hosts: &Hosts, page: &Page, time: usize) -> bool {
    let Place::Broker(broker) = &hosts.place else {
        unreachable!("it is on a broker");
    };
    let tower = &hosts.tower;
    let before = (ledger(tower.root()), tower.status()["accepted"].clone());
    for (place, is_said) in SAID_IN_TIME.iter().chain(&SAID) {
        // On a busy machine the ledger can be late for a moment without this.
        wait::until(&format!("{place} to say nothing yet"), || {
            !is_said(tower, page)
        });
    }

    broker.signal(Signal::STOP);
    let cut = Instant::now();
    let mut is_in_time = true;
    for (place, is_said) in SAID_IN_TIME {
        wait::until(&format!("{place} to say it"), || is_said(tower, page));
        is_in_time &= in_time(place, cut, Duration::from_secs(2));
    }
    let (id, file) = (format!("q-{time}"), format!("q-{time}.yaml"));
    tower.post("claude", &file, &question("claude", "codex", &id));
    for (place, is_said) in SAID {
        wait::until(&format!("{place} to say it"), || is_said(tower, page));
    }
    let status = tower.status();
    assert_eq!(status["waiting"], 1, "{status}");
    assert_eq!(
        (ledger(tower.root()), status["accepted"].clone()),
        before,
        "it accepts nothing"
    );
    assert_eq!(names(tower.agent("claude", "outbox")), [file.as_str()]);
    assert_eq!(names(tower.agent("claude", "dead_letter")), [""; 0]);

    broker.signal(Signal::CONT);
    let healed = Instant::now();
    hosts.laptop.delivered("codex", &file);
    is_in_time &= in_time("the file", healed, Duration::from_secs(5));
    for (place, is_said) in SAID_IN_TIME.iter().chain(&SAID) {
        wait::until(&format!("{place} to say no more"), || !is_said(tower, page));
    }
    is_in_time &= in_time("its end, everywhere", healed, Duration::from_secs(5));
    hosts.have_the_same_ledger();
    tower.cleared("claude");
    assert_eq!(hosts.laptop.with_id("codex", "inbox", &id).len(), 1);
    assert!(ledger(tower.root()).starts_with(&before.0));
    is_in_time
}

fn waits(told: &Value) -> bool {
    told.as_str().is_some_and(|told| told.starts_with(WAITS))
}

/// Prints the time a host took; true if that was in time.
#[expect(
    clippy::print_stdout,
    reason = "a figure for a developer who runs this with --nocapture"
)]
fn in_time(what: &str, began: Instant, limit: Duration) -> bool {
    let took = began.elapsed();
    println!("{what} after {took:?}");
    took < limit
}

/// The page of a daemon's metrics.
fn metrics(host: &Mailroom) -> String {
    let socket = host.root().join(".settled/metrics.sock");
    let mut stream = UnixStream::connect(socket).expect("the daemon listens");
    let asked =
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n");
    asked.expect("it takes a question");
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("it answers");
    page
}
