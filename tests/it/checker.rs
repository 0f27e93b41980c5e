//! The checker itself: it accepts an honest run and notices each kind of damage.

use std::path::Path;

use settled_tests::mailroom::Mailroom;
use settled_torture::checker::{Case, check};
use settled_torture::letters::{self, AGENTS, Letter, Mix};
use settled_torture::taker::{Take, take_all};

/// A run without damage.
fn honest(mix: Mix) -> (Mailroom, Vec<Letter>, Vec<Take>) {
    let mailroom = Mailroom::new(&AGENTS);
    let letters = mix.letters(8, 1);
    for letter in &letters {
        letters::post(mailroom.root(), letter);
    }
    mailroom.once();
    let mut takes = Vec::new();
    take_all(mailroom.root(), "codex", &mut takes);
    (mailroom, letters, takes)
}

fn wrong(root: &Path, letters: &[Letter], takes: &[Take]) -> Vec<String> {
    check(&Case {
        root,
        letters,
        takes,
        may_repeat: false,
    })
}

#[test]
fn an_honest_run_of_every_mix_adds_up() {
    for mix in Mix::ALL {
        let (mailroom, letters, takes) = honest(mix);
        assert_eq!(wrong(mailroom.root(), &letters, &takes), [""; 0], "{mix:?}");
    }
}

#[test]
fn every_kind_of_damage_is_seen() {
    let (mailroom, letters, takes) = honest(Mix::Several);
    let root = mailroom.root();
    assert!(takes.len() >= 3 && wrong(root, &letters, &takes).is_empty());

    let lost = wrong(root, &letters, &takes[1..]);
    assert!(
        lost.iter().any(|what| what.contains("0 times, expected 1")),
        "{lost:?}"
    );
    let twice = [&takes[..], &takes[..1]].concat();
    let twice = wrong(root, &letters, &twice);
    assert!(
        twice
            .iter()
            .any(|what| what.contains("2 times, expected 1")),
        "{twice:?}"
    );
    let mut partial = takes.clone();
    partial[0].bytes.pop();
    let partial = wrong(root, &letters, &partial);
    assert!(
        partial
            .iter()
            .any(|what| what.contains("that no record names")),
        "{partial:?}"
    );
    let unwritten = wrong(root, &letters[1..], &takes);
    assert!(
        unwritten
            .iter()
            .any(|what| what.contains("which nobody wrote")),
        "{unwritten:?}"
    );

    let sent = mailroom
        .agent(letters[0].from, "sent")
        .join(&letters[0].file);
    std::fs::remove_file(sent).expect("it was put away");
    let gone = wrong(root, &letters, &takes);
    assert!(
        gone.iter().any(|what| what.starts_with("sent/")),
        "{gone:?}"
    );
    std::fs::write(mailroom.agent("codex", "inbox").join(".settled-9.tmp"), "x").expect("a file");
    let left = wrong(root, &letters, &takes);
    assert!(
        left.iter()
            .any(|what| what.contains("is left in codex/inbox")),
        "{left:?}"
    );
}

#[test]
fn a_changed_ledger_is_seen() {
    let (mailroom, letters, takes) = honest(Mix::Notes);
    let segment = settled_tests::list(mailroom.root().join(".settled/ledger")).remove(0);
    let text = settled_tests::read(&segment);
    settled_tests::write(&segment, &text.replacen("accepted", "refused.", 1));
    let changed = wrong(mailroom.root(), &letters, &takes);
    assert!(
        changed
            .iter()
            .any(|what| what.contains("the chain is broken")),
        "{changed:?}"
    );
}
