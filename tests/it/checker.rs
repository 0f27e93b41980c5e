//! The checker itself: it accepts an honest run and notices each kind of damage.

use std::path::Path;

use settled_tests::mailroom::Mailroom;
use settled_torture::checker::{Case, check};
use settled_torture::messages::{self, AGENTS, Message, Mix};
use settled_torture::taker::{Take, take_all};

/// A run without damage.
fn honest(mix: Mix) -> (Mailroom, Vec<Message>, Vec<Take>) {
    let mailroom = Mailroom::new(&AGENTS);
    let messages = mix.messages(8, 1);
    for message in &messages {
        messages::post(mailroom.root(), message);
    }
    mailroom.once();
    let mut takes = Vec::new();
    take_all(mailroom.root(), "codex", &mut takes);
    (mailroom, messages, takes)
}

fn wrong(root: &Path, messages: &[Message], takes: &[Take]) -> Vec<String> {
    check(&Case {
        root,
        messages,
        takes,
        may_repeat: false,
    })
}

#[test]
fn an_honest_run_of_every_mix_adds_up() {
    for mix in Mix::ALL {
        let (mailroom, messages, takes) = honest(mix);
        assert_eq!(
            wrong(mailroom.root(), &messages, &takes),
            [""; 0],
            "{mix:?}"
        );
    }
}

#[test]
fn every_kind_of_damage_is_seen() {
    let (mailroom, messages, takes) = honest(Mix::Several);
    let root = mailroom.root();
    assert!(takes.len() >= 3 && wrong(root, &messages, &takes).is_empty());

    let lost = wrong(root, &messages, &takes[1..]);
    assert!(
        lost.iter().any(|what| what.contains("0 times, expected 1")),
        "{lost:?}"
    );
    let twice = [&takes[..], &takes[..1]].concat();
    let twice = wrong(root, &messages, &twice);
    assert!(
        twice
            .iter()
            .any(|what| what.contains("2 times, expected 1")),
        "{twice:?}"
    );
    let mut partial = takes.clone();
    partial[0].bytes.pop();
    let partial = wrong(root, &messages, &partial);
    assert!(
        partial
            .iter()
            .any(|what| what.contains("that no record names")),
        "{partial:?}"
    );
    let unwritten = wrong(root, &messages[1..], &takes);
    assert!(
        unwritten
            .iter()
            .any(|what| what.contains("which nobody wrote")),
        "{unwritten:?}"
    );

    let sent = mailroom
        .agent(messages[0].from, "sent")
        .join(&messages[0].file);
    std::fs::remove_file(sent).expect("it was put away");
    let gone = wrong(root, &messages, &takes);
    assert!(
        gone.iter().any(|what| what.starts_with("sent/")),
        "{gone:?}"
    );
    std::fs::write(mailroom.agent("codex", "inbox").join(".settled-9.tmp"), "x").expect("a file");
    let left = wrong(root, &messages, &takes);
    assert!(
        left.iter()
            .any(|what| what.contains("is left in codex/inbox")),
        "{left:?}"
    );
}

#[test]
fn a_changed_ledger_is_seen() {
    let (mailroom, messages, takes) = honest(Mix::Notes);
    let segment = settled_tests::list(mailroom.root().join(".settled/ledger")).remove(0);
    let text = settled_tests::read(&segment);
    settled_tests::write(&segment, &text.replacen("accepted", "refused.", 1));
    let changed = wrong(mailroom.root(), &messages, &takes);
    assert!(
        changed
            .iter()
            .any(|what| what.contains("the chain is broken")),
        "{changed:?}"
    );
}
