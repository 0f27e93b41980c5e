//! Events of the file system, unavailable or lost: the sweep finds everything.

use std::fs::File;

use rustix::process::Signal;
use settled_torture::faults::{Errno, Fault, Serving, Span, serve, striking};
use settled_torture::messages::Mix;

use super::{adds_up, cleared, mailroom, post};

/// Serves with this fault of the watcher; everything arrives by the sweeps.
fn without_events(call: &'static str, errno: Errno, says: &str) {
    let mailroom = mailroom();
    let root = mailroom.root();
    let words = striking(
        &Fault {
            call,
            errno,
            span: Span::From(1),
        },
        None,
    );
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let serving = Serving::start(root, serve(&words, root));
    serving.says("serving");
    serving.says(says);
    let messages = post(root, Mix::Several, 8, 1);
    cleared(root);
    assert_eq!(serving.terminate().0, Some(0));
    adds_up(root, &messages);
}

#[test]
fn without_any_events_the_sweep_finds_everything() {
    without_events(
        "inotify_init1",
        Errno::TooManyFiles,
        "no events from the file system; the sweep finds everything",
    );
}

#[test]
fn with_exhausted_watches_the_sweep_finds_everything() {
    without_events(
        "inotify_add_watch",
        Errno::NoSpace,
        "not watched; the sweep finds everything",
    );
}

#[test]
fn an_overflow_of_the_event_queue_loses_nothing() {
    let mailroom = mailroom();
    let root = mailroom.root();
    let serving = Serving::at(root);
    let mut messages = post(root, Mix::Notes, 3, 1);
    cleared(root);
    serving.signal(Signal::STOP);
    messages.extend(post(root, Mix::Notes, 5, 2));
    let queue = settled_tests::read("/proc/sys/fs/inotify/max_queued_events");
    let queue: usize = queue.trim().parse().expect("a number");
    let outbox = mailroom.agent("claude", "outbox");
    let noises = [".noise", ".other"].map(|name| outbox.join(name));
    // The kernel merges an event with an equal one that is last in the queue, so two files are closed in turn.
    for noise in noises.iter().cycle().take(queue + 1) {
        drop(File::create(noise).expect("a file"));
    }
    for noise in noises {
        std::fs::remove_file(noise).expect("the file");
    }
    // The queue has overflowed and reports none of these.
    messages.extend(post(root, Mix::Notes, 10, 3));
    serving.signal(Signal::CONT);
    cleared(root);
    assert_eq!(serving.terminate().0, Some(0));
    adds_up(root, &messages);
}
