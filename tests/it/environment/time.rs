//! Clocks that are set, and a system that sleeps. `libfaketime` fakes the time of day; the monotonic clock is real, as
//! on a machine whose clock is set.

use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Signal;
use settled_tests::mailroom::Mailroom;
use settled_tests::{debian, names, wait};
use settled_torture::faults::{Serving, serve};
use settled_torture::messages::{Mix, post as post_one};

use super::{cleared, mailroom, post};

/// A daemon that reads its time of day from a file.
struct Timed {
    serving: Serving,
    clock: PathBuf,
}

impl Timed {
    fn at(mailroom: &Mailroom) -> Timed {
        let clock = mailroom.root().with_extension("clock");
        settled_tests::write(&clock, "+0");
        let mut command = serve(&[], mailroom.root());
        command
            .env("LD_PRELOAD", debian::faketime())
            .env("FAKETIME_TIMESTAMP_FILE", &clock);
        command
            .env("FAKETIME_NO_CACHE", "1")
            .env("DONT_FAKE_MONOTONIC", "1");
        let serving = Serving::start(mailroom.root(), command);
        serving.says("serving");
        Timed { serving, clock }
    }

    fn set(&self, offset: &str) {
        let temporary = self.clock.with_extension("new");
        settled_tests::write(&temporary, offset);
        std::fs::rename(temporary, &self.clock).expect("a rename");
    }
}

fn phase(mailroom: &Mailroom) -> String {
    mailroom.status()["reviews"][0]["phase"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// A request of priority P0, with a pick-up time of two hours.
fn urgent_request(mailroom: &Mailroom) {
    let mut request = Mix::Requests.messages(1, 1).remove(0);
    let urgent = request
        .text
        .replace("priority: P1", "priority: P0")
        .replace("priority: P2", "priority: P0");
    assert!(urgent.contains("priority: P0"));
    request.text = urgent;
    post_one(mailroom.root(), &request);
    cleared(mailroom.root());
    assert_eq!(phase(mailroom), "reviewing");
}

#[test]
fn a_clock_set_forward_and_back_fires_no_deadline_early_and_holds_up_nothing() {
    let mailroom = mailroom();
    let timed = Timed::at(&mailroom);
    urgent_request(&mailroom);
    for (lot, offset) in [(2, "+3600"), (3, "-3600"), (4, "+0")] {
        timed.set(offset);
        let messages = post(mailroom.root(), Mix::Notes, 3, lot);
        cleared(mailroom.root());
        let inbox = names(mailroom.agent("codex", "inbox"));
        let theirs = messages.iter().filter(|message| message.to == "codex");
        assert!(
            theirs.clone().all(|message| inbox.contains(&message.file)),
            "{offset}: {inbox:?}"
        );
        assert_eq!(phase(&mailroom), "reviewing", "{offset}");
    }
    // Two hours by the time of day, which the deadline refers to.
    timed.set("+7300");
    wait::until("the deadline to be kept", || {
        phase(&mailroom) == "escalated"
    });
    assert_eq!(timed.serving.terminate().0, Some(0));
}

#[test]
fn after_the_system_slept_what_lay_finished_is_judged_before_a_deadline_that_passed() {
    let mailroom = mailroom();
    let timed = Timed::at(&mailroom);
    urgent_request(&mailroom);
    timed.serving.signal(Signal::STOP);
    // Longer than a sweep; the time of day passes without the daemon.
    wait::a_moment(Duration::from_millis(2_500));
    timed.set("+10800");
    let lgtm = settled_tests::seed::review_message(
        "review_lgtm",
        "answer-1",
        "codex",
        "claude",
        "100001",
        "pr: 100001\nquality_gate_result: pass\nmerge_ready: true",
    );
    mailroom.post("codex", "answer.yaml", &lgtm);
    let messages = post(mailroom.root(), Mix::Notes, 3, 2);
    timed.serving.signal(Signal::CONT);
    cleared(mailroom.root());
    assert_eq!(phase(&mailroom), "approved", "{}", timed.serving.log());
    let inbox = names(mailroom.agent("codex", "inbox"));
    assert!(
        messages
            .iter()
            .filter(|message| message.to == "codex")
            .all(|message| inbox.contains(&message.file))
    );
    assert_eq!(timed.serving.terminate().0, Some(0));
}
