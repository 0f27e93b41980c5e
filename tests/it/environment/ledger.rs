//! The ledger cut short, changed or removed, at rest and under a running daemon.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use settled_tests::{ledger::digest, list};
use settled_torture::faults::Serving;
use settled_torture::messages::Mix;

use super::{adds_up, cleared, mailroom, once, post};

fn segment(root: &Path) -> PathBuf {
    list(root.join(".settled/ledger"))
        .into_iter()
        .next()
        .expect("a segment")
}

/// Changes one character in the middle of the second record, keeping its length.
fn flip(root: &Path) -> u64 {
    let bytes = std::fs::read(segment(root)).expect("a ledger");
    let second = bytes
        .iter()
        .position(|byte| *byte == b'\n')
        .expect("a record")
        + 1;
    let at = second
        + bytes[second..]
            .iter()
            .position(|byte| *byte == b'\n')
            .expect("another")
            / 2;
    let file = File::options()
        .write(true)
        .open(segment(root))
        .expect("the segment");
    file.write_all_at(&[bytes[at] ^ 1], at as u64)
        .expect("one byte");
    at as u64
}

/// Every file below the root with its bytes, except the lock, which has the last pid.
fn contents(root: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for path in list(root) {
        if path.is_dir() {
            found.extend(contents(&path));
        } else if !path.ends_with(".settled/lock") {
            let bytes = std::fs::read(&path).expect("a file");
            found.push((path, digest(&bytes)));
        }
    }
    found
}

/// Checks that a start refuses, prints these words and the next command, and changes nothing.
fn refuses(root: &Path, says: &[&str]) {
    let before = contents(root);
    let (code, said) = once(root);
    assert_eq!(code, Some(6), "{said}");
    for words in says.iter().chain(&["  try: settled ledger verify"]) {
        assert!(said.contains(words), "`{words}` is not in: {said}");
    }
    assert_eq!(contents(root), before, "something was changed");
}

fn verify(root: &Path) -> (Option<i32>, String) {
    let mut settled = settled_tests::mailroom::settled();
    let output = settled
        .args(["ledger", "verify"])
        .arg(root)
        .output()
        .expect("settled can be run");
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[test]
fn a_ledger_cut_short_at_rest_is_refused_and_nothing_is_changed() {
    let mailroom = mailroom();
    let root = mailroom.root();
    post(root, Mix::Notes, 4, 1);
    assert_eq!(once(root).0, Some(0));
    let length = segment(root).metadata().expect("a segment").len();
    let file = File::options()
        .write(true)
        .open(segment(root))
        .expect("the segment");
    file.set_len(length - 10).expect("a cut");
    // The cursors know of a record that is now damaged.
    refuses(root, &["the ledger is damaged at", "speaks of record 4"]);
}

#[test]
fn a_byte_flipped_in_the_middle_names_segment_and_line() {
    let mailroom = mailroom();
    let root = mailroom.root();
    for lot in 1..4 {
        post(root, Mix::Notes, 2, lot);
        assert_eq!(once(root).0, Some(0));
    }
    flip(root);
    refuses(root, &["00000000000000000001.jsonl:"]);
    assert_eq!(verify(root).0, Some(1));
}

#[test]
fn a_byte_flipped_under_a_running_daemon_is_found_by_verify_and_by_the_next_start() {
    let mailroom = mailroom();
    let root = mailroom.root();
    let serving = Serving::at(root);
    post(root, Mix::Notes, 3, 1);
    cleared(root);
    flip(root);
    // The daemon reads the ledger only at its start, and its memory is right.
    post(root, Mix::Notes, 3, 2);
    cleared(root);
    let (code, said) = verify(root);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("00000000000000000001.jsonl:"), "{said}");
    assert_eq!(serving.terminate().0, Some(0));
    refuses(root, &["00000000000000000001.jsonl:"]);
}

#[test]
fn a_segment_removed_at_rest_is_refused() {
    let mailroom = mailroom();
    let root = mailroom.root();
    post(root, Mix::Notes, 2, 1);
    assert_eq!(once(root).0, Some(0));
    std::fs::remove_file(segment(root)).expect("a segment");
    refuses(
        root,
        &["the ledger ends with record 0", "speaks of record 2"],
    );
}

/// Checks that a daemon whose ledger changed stops before the next batch, and that posted mail waits.
fn stops_when(change: impl FnOnce(&Path), undo: impl FnOnce(&Path), says: &str) {
    let mailroom = mailroom();
    let root = mailroom.root();
    let serving = Serving::at(root);
    let mut messages = post(root, Mix::Notes, 3, 1);
    cleared(root);
    change(root);
    messages.extend(post(root, Mix::Notes, 3, 2));
    let (code, said) = serving.ended();
    assert_eq!(code, Some(6), "{said}");
    assert!(
        said.contains(says) && said.contains("  try: settled ledger verify"),
        "{said}"
    );
    undo(root);
    assert_eq!(once(root).0, Some(0));
    adds_up(root, &messages);
}

#[test]
fn a_segment_removed_under_a_running_daemon_stops_it() {
    let away = |root: &Path| root.join("kept.jsonl");
    stops_when(
        |root| std::fs::rename(segment(root), away(root)).expect("a rename"),
        |root| {
            let back = root.join(".settled/ledger/00000000000000000001.jsonl");
            std::fs::rename(away(root), back).expect("a rename");
        },
        "was removed or moved away while it was served",
    );
}

#[test]
fn a_segment_changed_in_length_under_a_running_daemon_stops_it() {
    stops_when(
        |root| {
            std::fs::copy(segment(root), root.join("kept.jsonl")).expect("a copy");
            let file = File::options()
                .write(true)
                .open(segment(root))
                .expect("the segment");
            file.set_len(100).expect("a cut");
        },
        |root| {
            std::fs::copy(root.join("kept.jsonl"), segment(root)).expect("a copy");
            std::fs::remove_file(root.join("kept.jsonl")).expect("a file");
        },
        "has 100 bytes, expected",
    );
}

#[test]
fn the_daemons_own_directory_moved_away_stops_it() {
    let own = |root: &Path| (root.join(".settled"), root.join("elsewhere"));
    stops_when(
        |root| std::fs::rename(own(root).0, own(root).1).expect("a rename"),
        |root| {
            // The files of the next start must not hide the old ones.
            std::fs::rename(own(root).1, own(root).0).expect("a rename");
        },
        "was removed or moved away while it was served",
    );
}
