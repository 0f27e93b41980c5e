//! An injected fault does what it says; otherwise no run with one would prove anything.

use std::os::unix::process::ExitStatusExt as _;

use settled_tests::mailroom::Mailroom;
use settled_torture::messages::{self, AGENTS, Mix};
use settled_torture::traced::{self, Inject, Strike};

/// A workspace with mail in its outboxes, and the arguments that serve it once.
fn prepared() -> (Mailroom, [String; 3]) {
    let mailroom = Mailroom::new(&AGENTS);
    for message in Mix::Notes.messages(2, 1) {
        messages::post(mailroom.root(), &message);
    }
    let args = [
        "serve".to_owned(),
        mailroom.root().display().to_string(),
        "--once".to_owned(),
    ];
    (mailroom, args)
}

fn strike(call: &str, nth: usize, inject: Inject) -> traced::Ran {
    let (_mailroom, args) = prepared();
    let args = args.each_ref().map(String::as_str);
    traced::strike(
        &args,
        &Strike {
            call,
            nth,
            and_on: false,
            path: None,
            inject,
        },
    )
}

#[test]
fn every_call_of_a_run_is_seen_and_one_of_them_can_be_struck() {
    let (_mailroom, args) = prepared();
    let ran = traced::watch(&args.each_ref().map(String::as_str));
    assert!(ran.status.success() && ran.struck == 0, "{ran:?}");
    let counts = traced::counts(&ran.calls);
    for call in [
        "renameat2",
        "fdatasync",
        "openat2",
        "pwrite64",
        "getdents64",
    ] {
        assert!(counts.contains_key(call), "{call} is not among {counts:?}");
    }

    let killed = strike("renameat2", 1, Inject::Kill);
    assert_eq!(
        (killed.status.signal(), killed.struck),
        (Some(9), 1),
        "{killed:?}"
    );
    let failed = strike("fdatasync", 1, Inject::Error("EIO"));
    assert!(failed.struck >= 1 && !failed.status.success(), "{failed:?}");
    let beyond = strike("renameat2", 60_000, Inject::Kill);
    assert!(beyond.status.success() && beyond.struck == 0, "{beyond:?}");
}
