//! A ledger on a ref of a real repository: what the conformance suite cannot ask because it knows no git.

use std::path::Path;
use std::time::Duration;

use settled_host::Git;
use settled_tests::{sh, wait, write};
use spool::log::{Appended, Head, Log, LogError};

use super::{batch, follows};

/// The time between two looks: short, so that no test waits for one.
const POLL: Duration = Duration::from_millis(50);

fn open(directory: &Path, host: &str) -> Git {
    let remote = directory.join("remote.git");
    if !remote.exists() {
        sh(directory, "git init --quiet --bare remote.git");
    }
    let remote = remote.to_str().expect("a path in UTF-8");
    Git::polling(&directory.join(host), remote, "w", POLL).expect("a log")
}

fn append(log: &mut Git, signed: &spool::log::Signed) -> Result<Appended, LogError> {
    wait::for_some("the push to end", || match log.append(signed) {
        Ok(Appended::Unknown(_)) => None,
        other => Some(other),
    })
}

#[test]
fn a_ledger_goes_through_a_real_repository_and_comes_back_byte_for_byte() {
    let directory = settled_tests::scratch();
    let (mut one, mut other) = (
        open(directory.path(), "one"),
        open(directory.path(), "other"),
    );
    assert_eq!(one.head(), Ok(Head::EMPTY));
    let first = batch(Head::EMPTY, 3, "a");
    assert_eq!(append(&mut one, &first), Ok(Appended::Committed));
    assert_eq!(append(&mut one, &first), Ok(Appended::Committed));
    let second = batch(first.batch.head(), 1, "b");
    let late = batch(first.batch.head(), 1, "c");
    assert_eq!(append(&mut other, &second), Ok(Appended::Committed));
    assert_eq!(
        append(&mut one, &late),
        Ok(Appended::Moved(second.batch.head()))
    );
    let all = follows(&mut other, Head::EMPTY, 2);
    for (given, put) in all.iter().zip([&first, &second]) {
        assert_eq!(given.batch.bytes(), put.batch.bytes());
        assert_eq!(given.host, put.host);
        assert_eq!(given.signature, put.signature);
    }
    // Plain git shows the same lines.
    let file = "git --git-dir remote.git show refs/settled/w:batch.jsonl";
    let shown = sh(directory.path(), file);
    assert_eq!(shown.as_bytes(), second.batch.bytes().trim_ascii_end());
}

#[test]
fn a_push_whose_answer_was_lost_is_the_same_commit_again() {
    let directory = settled_tests::scratch();
    let first = batch(Head::EMPTY, 1, "a");
    let mut one = open(directory.path(), "one");
    assert_eq!(append(&mut one, &first), Ok(Appended::Committed));
    // A host that knows nothing of its own push: its copy is another directory.
    let mut again = open(directory.path(), "again");
    assert_eq!(append(&mut again, &first), Ok(Appended::Committed));
    let count = "git --git-dir remote.git rev-list --count refs/settled/w";
    assert_eq!(sh(directory.path(), count), "1");
}

#[test]
fn a_ref_that_was_set_back_or_rewritten_is_told() {
    let directory = settled_tests::scratch();
    let mut log = open(directory.path(), "one");
    let first = batch(Head::EMPTY, 1, "a");
    let second = batch(first.batch.head(), 1, "b");
    let other = batch(first.batch.head(), 1, "c");
    assert_eq!(append(&mut log, &first), Ok(Appended::Committed));
    assert_eq!(append(&mut log, &second), Ok(Appended::Committed));
    sh(
        directory.path(),
        "git --git-dir remote.git update-ref refs/settled/w refs/settled/w~1",
    );
    let ours = second.batch.head();
    let back = LogError::RolledBack {
        log: first.batch.head(),
        ours,
    };
    wait::until("the missing commit to be seen", || {
        log.follow(ours).is_err_and(|error| error == back)
    });
    assert_eq!(
        append(&mut open(directory.path(), "two"), &other),
        Ok(Appended::Committed)
    );
    let forked = LogError::Forked {
        at: 2,
        ours: ours.digest,
        theirs: other.batch.head().digest,
    };
    wait::until("the other commit to be seen", || {
        log.follow(ours).is_err_and(|error| error == forked)
    });
}

#[test]
fn a_remote_that_is_away_takes_nothing_and_is_told() {
    let directory = settled_tests::scratch();
    let mut log = open(directory.path(), "one");
    assert_eq!(log.head(), Ok(Head::EMPTY));
    sh(directory.path(), "mv remote.git away.git");
    wait::until("the remote to be missed", || {
        matches!(log.follow(Head::EMPTY), Err(LogError::Unreachable { .. }))
    });
    let first = batch(Head::EMPTY, 1, "a");
    let lost = log.append(&first);
    assert!(
        matches!(
            lost,
            Ok(Appended::Unknown(_)) | Err(LogError::Unreachable { .. })
        ),
        "{lost:?}"
    );
    sh(directory.path(), "mv away.git remote.git");
    wait::until("the push once it is there again", || {
        log.append(&first) == Ok(Appended::Committed)
    });
}

#[test]
fn no_hook_of_this_host_runs() {
    let directory = settled_tests::scratch();
    let mut log = open(directory.path(), "one");
    let hook = directory.path().join("one/hooks/pre-push");
    std::fs::create_dir_all(hook.parent().expect("a directory")).expect("a directory");
    write(&hook, "#!/bin/sh\ntouch ran\nexit 1\n");
    sh(directory.path(), "chmod +x one/hooks/pre-push");
    let first = batch(Head::EMPTY, 1, "a");
    assert_eq!(append(&mut log, &first), Ok(Appended::Committed));
    assert!(!directory.path().join("one/ran").exists());
}
