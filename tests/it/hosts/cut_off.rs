//! A host that cannot reach its broker says so to people, agents and programs, accepts nothing, loses nothing, and
//! catches up.

use std::collections::BTreeMap;
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
        metrics(tower).contains("settled_shared_ledger{state=\"waiting\"} 1")
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
fn cut_off_from_its_broker_a_host_says_so_within_two_seconds_and_catches_up_within_five() {
    says_so_and_catches_up(&Hosts::on_a_broker(), |_| TOLD);
}

#[test]
fn cut_off_from_its_repository_a_host_says_so_within_two_seconds_and_catches_up_within_five() {
    says_so_and_catches_up(&Hosts::on_a_served_repository(), |hosts| {
        let Place::Served(daemon) = &hosts.place else {
            unreachable!("it is a served repository");
        };
        let looks = (0..5).map(|_| daemon.look(hosts.directory.path()));
        let slowest = looks.max().expect("five looks");
        // Where a busy machine makes the repository slow, docs/hosts.md allows what a slow one has.
        if slowest < Duration::from_millis(200) {
            TOLD
        } else {
            Duration::from_secs(4) + 3 * slowest
        }
    });
}

/// The time in which a host says that it is cut off, and that in which it has caught up.
const TOLD: Duration = Duration::from_secs(2);
const CAUGHT_UP: Duration = Duration::from_secs(5);

/// Cuts the tower off three times, and checks each time what it says. The fastest of the three is in time.
fn says_so_and_catches_up(hosts: &Hosts, told: impl Fn(&Hosts) -> Duration) {
    let config = hosts.tower.root().join("settled.toml");
    let metrics = "[metrics]\nlisten = \"unix:.settled/metrics.sock\"\n";
    hosts
        .tower
        .put("settled.toml", &format!("{}{metrics}", read(config)));
    let (_tower, _laptop) = (hosts.tower.serve(), hosts.laptop.serve());
    review(hosts, "86");
    hosts.have_the_same_ledger();
    let page = Page::open(&hosts.tower, &[]);
    let (mut said, mut caught_up) = (Fastest::default(), Fastest::default());
    for time in 0..3 {
        cut_off(hosts, &page, time, &mut said, &mut caught_up);
    }
    said.are_within(told(hosts));
    caught_up.are_within(CAUGHT_UP);
}

/// Stops what has the log, and lets it continue.
fn cut_off(hosts: &Hosts, page: &Page, time: usize, said: &mut Fastest, caught_up: &mut Fastest) {
    let signal = |signal| match &hosts.place {
        Place::Broker(broker) => broker.signal(signal),
        Place::Served(daemon) => daemon.signal(signal),
        Place::Repository => unreachable!("nothing serves it"),
    };
    let tower = &hosts.tower;
    let before = (ledger(tower.root()), tower.status()["accepted"].clone());
    for (place, is_said) in SAID_IN_TIME.iter().chain(&SAID) {
        // On a busy machine the ledger can be late for a moment without this.
        wait::until(&format!("{place} to say nothing yet"), || {
            !is_said(tower, page)
        });
    }

    signal(Signal::STOP);
    let cut = Instant::now();
    for (place, is_said) in SAID_IN_TIME {
        said.wait(cut, format!("{place} to say it"), || is_said(tower, page));
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

    signal(Signal::CONT);
    let healed = Instant::now();
    let inbox = hosts.laptop.agent("codex", "inbox");
    caught_up.wait(healed, "the file".to_owned(), || inbox.join(&file).exists());
    for (place, is_said) in SAID_IN_TIME.iter().chain(&SAID) {
        let what = format!("{place} to say no more");
        caught_up.wait(healed, what, || !is_said(tower, page));
    }
    hosts.have_the_same_ledger();
    tower.cleared("claude");
    assert_eq!(hosts.laptop.with_id("codex", "inbox", &id).len(), 1);
    assert!(ledger(tower.root()).starts_with(&before.0));
}

fn waits(told: &Value) -> bool {
    told.as_str().is_some_and(|told| told.starts_with(WAITS))
}

/// The least time that each of several waits took, over all times at which the hosts were cut off: a busy machine only
/// adds to what a host needs.
#[derive(Default)]
struct Fastest(BTreeMap<String, Duration>);

impl Fastest {
    /// Waits until it holds.
    fn wait(&mut self, began: Instant, what: String, holds: impl FnMut() -> bool) {
        wait::until(&what, holds);
        let took = began.elapsed();
        let least = self.0.entry(what).or_insert(took);
        *least = took.min(*least);
    }

    fn are_within(self, limit: Duration) {
        for (what, took) in self.0 {
            assert!(took < limit, "{what}: not before {took:?}");
        }
    }
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
