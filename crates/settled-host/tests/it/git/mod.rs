//! A ledger on a ref of a real repository: the conformance suite, and the tests that need git.

mod suite;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use log_suite::fixture::batch;
use settled_host::Git;
use spool::log::{Appended, Head, Log, LogError, Signed};
use tempfile::TempDir;

use crate::sh::sh;
use crate::{DEADLINE, for_some};

/// The interval between two polls: short, so that no test waits for one.
const POLL: Duration = Duration::from_millis(50);

/// A directory with the bare repository of a log.
fn remote_in() -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    sh(directory.path(), "git init --quiet --bare remote.git");
    directory
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for_some(what, || holds().then_some(()));
}

fn open(directory: &Path, host: &str) -> Git {
    let remote = directory.join("remote.git");
    let remote = remote.to_str().expect("a path in UTF-8");
    Git::polling(&directory.join(host), remote, "w", POLL).expect("a log")
}

fn append(log: &mut Git, signed: &Signed) -> Result<Appended, LogError> {
    for_some("the push to end", || match log.append(signed) {
        Ok(Appended::Unknown(_)) => None,
        other => Some(other),
    })
}

/// Follows the log until `count` batches have come.
fn follows(log: &mut dyn Log, from: Head, count: usize) -> Vec<Signed> {
    let mut all: Vec<Signed> = Vec::new();
    until("all batches", || {
        let from = all.last().map_or(from, |signed| signed.batch.head());
        match log.follow(from) {
            Ok(batches) => all.extend(batches),
            Err(error) => assert!(error.is_retryable(), "{error}"),
        }
        all.len() >= count
    });
    all
}

#[test]
fn a_ledger_goes_through_a_real_repository_and_comes_back_byte_for_byte() {
    let directory = remote_in();
    let (mut one, mut other) = (
        open(directory.path(), "one"),
        open(directory.path(), "other"),
    );
    assert_eq!(one.head(), Ok(Head::EMPTY));
    let first = batch(Head::EMPTY, &["a", "b", "c"], "tower");
    assert_eq!(append(&mut one, &first), Ok(Appended::Committed));
    assert_eq!(append(&mut one, &first), Ok(Appended::Committed));
    let second = batch(first.batch.head(), &["b"], "tower");
    let late = batch(first.batch.head(), &["c"], "tower");
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
    let directory = remote_in();
    let first = batch(Head::EMPTY, &["a"], "tower");
    let mut one = open(directory.path(), "one");
    assert_eq!(append(&mut one, &first), Ok(Appended::Committed));
    // This host does not know of its own push: its copy is another directory.
    let mut again = open(directory.path(), "again");
    assert_eq!(append(&mut again, &first), Ok(Appended::Committed));
    let count = "git --git-dir remote.git rev-list --count refs/settled/w";
    assert_eq!(sh(directory.path(), count), "1");
}

#[test]
fn a_ref_that_was_set_back_or_rewritten_is_told() {
    let directory = remote_in();
    let mut log = open(directory.path(), "one");
    let first = batch(Head::EMPTY, &["a"], "tower");
    let second = batch(first.batch.head(), &["b"], "tower");
    let other = batch(first.batch.head(), &["c"], "tower");
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
    until("the missing commit to be seen", || {
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
    until("the other commit to be seen", || {
        log.follow(ours).is_err_and(|error| error == forked)
    });
}

#[test]
fn a_remote_that_is_away_takes_nothing_and_is_told() {
    let directory = remote_in();
    let mut log = open(directory.path(), "one");
    assert_eq!(log.head(), Ok(Head::EMPTY));
    sh(directory.path(), "mv remote.git away.git");
    until("the remote to be missed", || {
        matches!(log.follow(Head::EMPTY), Err(LogError::Unreachable { .. }))
    });
    let first = batch(Head::EMPTY, &["a"], "tower");
    let lost = log.append(&first);
    assert!(
        matches!(
            lost,
            Ok(Appended::Unknown(_)) | Err(LogError::Unreachable { .. })
        ),
        "{lost:?}"
    );
    sh(directory.path(), "mv away.git remote.git");
    until("the push once it is there again", || {
        log.append(&first) == Ok(Appended::Committed)
    });
}

#[test]
fn no_hook_of_this_host_runs() {
    let directory = remote_in();
    let mut log = open(directory.path(), "one");
    let hook = directory.path().join("one/hooks/pre-push");
    std::fs::create_dir_all(hook.parent().expect("a directory")).expect("a directory");
    std::fs::write(&hook, "#!/bin/sh\ntouch ran\nexit 1\n").expect("a hook");
    sh(directory.path(), "chmod +x one/hooks/pre-push");
    let first = batch(Head::EMPTY, &["a"], "tower");
    assert_eq!(append(&mut log, &first), Ok(Appended::Committed));
    assert!(!directory.path().join("one/ran").exists());
}

#[test]
fn a_commit_says_to_git_who_judged_its_records_and_when() {
    let directory = remote_in();
    let mut log = open(directory.path(), "one");
    let first = batch(Head::EMPTY, &["a"], "tower");
    let second = batch(first.batch.head(), &["b", "c"], "laptop");
    assert_eq!(append(&mut log, &first), Ok(Appended::Committed));
    assert_eq!(append(&mut log, &second), Ok(Appended::Committed));
    let show = "git --git-dir remote.git log --format='%an %ae %at %ct %s' refs/settled/w";
    assert_eq!(
        sh(directory.path(), show),
        "settled settled@localhost 1770976800 1770976800 records 2 to 3\n\
         settled settled@localhost 1770976800 1770976800 records 1 to 1"
    );
    let message = "git --git-dir remote.git show --no-patch --format=%b refs/settled/w";
    let message = sh(directory.path(), message);
    let head = second.batch.head();
    for line in [
        "Settled-Host: laptop".to_owned(),
        format!("Settled-Head: 3 {}", head.digest),
    ] {
        assert!(message.contains(&line), "{line} is not in\n{message}");
    }
}

#[test]
fn a_commit_that_is_no_batch_is_damage() {
    let directory = remote_in();
    let first = batch(Head::EMPTY, &["a"], "tower");
    let whole = append(&mut open(directory.path(), "one"), &first);
    assert_eq!(whole, Ok(Appended::Committed));
    // Each commit replaces the last one, with a changed file or message.
    for (change, told) in [
        ("s/^Settled-Host: .*//", "has no trailer `Settled-Host:`"),
        (
            "s/^Settled-Host: .*/Settled-Host: no host/",
            "the name of a host is",
        ),
        (
            "s/^Settled-Signature: .*/Settled-Signature: xy/",
            "its signature is not hexadecimal",
        ),
        (
            "s/^Settled-Head: .*/Settled-Head: first/",
            "is not a record's number and digest",
        ),
        (
            "s/^Settled-Head: 1/Settled-Head: 2/",
            "its message names record 2, its file another end",
        ),
    ] {
        let script = format!(
            "cd remote.git
             commit=$(git cat-file commit refs/settled/w | sed '{change}' | git hash-object -w -t commit --stdin)
             git update-ref refs/settled/broken $commit"
        );
        sh(directory.path(), &script);
        let remote = directory.path().join("remote.git");
        let remote = remote.to_str().expect("a path in UTF-8");
        let copy = tempfile::tempdir().expect("a directory");
        let mut log = Git::polling(copy.path(), remote, "broken", POLL).expect("a log");
        let error = for_some("an answer", || match log.follow(Head::EMPTY) {
            Err(error) if error.is_retryable() => None,
            other => Some(other.err()),
        });
        let Some(LogError::Broken { what }) = &error else {
            panic!("{change}: {error:?}");
        };
        assert!(what.contains(told), "{change}: {what}");
    }
}

#[test]
fn no_remote_names_a_program_to_run() {
    let directory = remote_in();
    let copy = directory.path().join("copy");
    let log = Git::polling(&copy, "ext::touch ran", "w", POLL);
    let told = log.expect("a log").head();
    assert!(
        matches!(&told, Err(LogError::Unreachable { why }) if why.contains("not allowed")),
        "{told:?}"
    );
    assert!(!copy.join("ran").exists());
}

#[test]
fn a_look_gives_all_that_is_there_and_a_change_rings() {
    let directory = remote_in();
    let (mut one, mut other) = (
        open(directory.path(), "one"),
        open(directory.path(), "other"),
    );
    let (give, changes) = std::sync::mpsc::channel();
    other.on_change(Box::new(move || {
        // A test that has ended no longer receives.
        let _ = give.send(());
    }));
    let mut end = Head::EMPTY;
    for text in ["a", "b", "c"] {
        let next = batch(end, &[text], "tower");
        assert_eq!(append(&mut one, &next), Ok(Appended::Committed));
        end = next.batch.head();
    }
    changes.recv_timeout(DEADLINE).expect("a change");
    until("the end to be seen", || other.head() == Ok(end));
    assert_eq!(other.follow(Head::EMPTY).map(|all| all.len()), Ok(3));
    assert_eq!(other.poll_ms(), 1_000);
    // Git tells no time and carries no heartbeats, so a host has only its own clock to judge a record's time by.
    assert_eq!(other.clock_ahead_ms(), None);
    assert!(other.heartbeats().is_empty());
}

/// A remote named `slow` in the copy of a host, which answers after `pause` as one behind ssh does.
fn slow(directory: &Path, host: &str, pause: Duration) -> Git {
    let seconds = pause.as_secs_f64();
    for (verb, program) in [("upload", "upload-pack"), ("receive", "receive-pack")] {
        let script = format!("#!/bin/sh\nsleep {seconds}\nexec git {program} \"$@\"\n");
        std::fs::write(directory.join(verb), script).expect("a program");
    }
    let script = format!(
        "chmod +x upload receive
         git init --quiet --bare {host}
         git --git-dir {host} config remote.slow.url $PWD/remote.git
         git --git-dir {host} config remote.slow.uploadpack $PWD/upload
         git --git-dir {host} config remote.slow.receivepack $PWD/receive"
    );
    sh(directory, &script);
    Git::polling(&directory.join(host), "slow", "w", Duration::from_secs(60)).expect("a log")
}

#[test]
fn a_remote_that_takes_longer_than_a_call_waits_answers_the_next_calls() {
    let directory = remote_in();
    let mut log = slow(directory.path(), "one", Duration::from_millis(2_500));
    let began = Instant::now();
    let head = for_some("the end", || log.head().ok());
    assert_eq!(head, Head::EMPTY);
    // One poll answers: a second one would take as long again.
    assert!(
        began.elapsed() < Duration::from_millis(4_900),
        "{:?}",
        began.elapsed()
    );
    let first = batch(Head::EMPTY, &["a"], "tower");
    let began = Instant::now();
    let appended = for_some("the push", || match log.append(&first) {
        Ok(Appended::Unknown(_)) => {
            // A mailroom does other work before it asks again, and the push may end meanwhile.
            std::thread::sleep(Duration::from_millis(700));
            None
        }
        other => Some(other),
    });
    assert_eq!(appended, Ok(Appended::Committed));
    assert!(
        began.elapsed() < Duration::from_millis(4_900),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn a_remote_that_is_late_rings_before_it_answers() {
    let directory = remote_in();
    let pause = Duration::from_secs(6);
    let mut log = slow(directory.path(), "one", pause);
    let (give, changes) = std::sync::mpsc::channel();
    log.on_change(Box::new(move || {
        // A test that has ended no longer receives.
        let _ = give.send(());
    }));
    let began = Instant::now();
    let told = log.head();
    assert!(
        matches!(told, Err(LogError::Unreachable { .. })),
        "{told:?}"
    );
    changes.recv_timeout(DEADLINE).expect("a change");
    assert!(began.elapsed() < pause, "{:?}", began.elapsed());
}

#[test]
fn a_push_that_a_remote_refuses_is_known_not_to_have_landed() {
    let directory = remote_in();
    let mut log = slow(directory.path(), "one", Duration::from_millis(1_500));
    let refuse = "printf '#!/bin/sh\\nexit 1\\n' > remote.git/hooks/pre-receive; chmod +x remote.git/hooks/pre-receive";
    sh(directory.path(), refuse);
    let first = batch(Head::EMPTY, &["a"], "tower");
    let appended = for_some("the push", || match log.append(&first) {
        Ok(Appended::Unknown(_)) => None,
        other => Some(other),
    });
    assert!(
        matches!(&appended, Err(LogError::Unreachable { why }) if why.contains("hook declined")),
        "{appended:?}"
    );
}

#[test]
fn a_push_that_may_have_landed_is_not_taken_back_by_a_later_refusal() {
    let directory = remote_in();
    let mut log = slow(directory.path(), "one", Duration::ZERO);
    let receive = |script: &str| {
        let script = format!("#!/bin/sh\n{script}\n");
        std::fs::write(directory.path().join("receive"), script).expect("a program");
    };
    let first = batch(Head::EMPTY, &["a"], "tower");
    let mut pushed = || {
        for_some("the push to end", || match log.append(&first) {
            Ok(Appended::Unknown(why)) if why == "the push is not done yet" => None,
            other => Some(other),
        })
    };
    receive("exit 1");
    let told = pushed();
    assert!(matches!(told, Ok(Appended::Unknown(_))), "{told:?}");
    receive("exec git receive-pack \"$@\"");
    let refuse = "printf '#!/bin/sh\\nexit 1\\n' > remote.git/hooks/pre-receive; chmod +x remote.git/hooks/pre-receive";
    sh(directory.path(), refuse);
    let told = pushed();
    assert!(
        matches!(&told, Ok(Appended::Unknown(why)) if why.contains("hook declined")),
        "{told:?}"
    );
}

#[test]
fn a_push_that_fails_rings_for_nobody_who_knows_it() {
    let directory = remote_in();
    let mut log = open(directory.path(), "one");
    until("the first look", || log.head() == Ok(Head::EMPTY));
    let (give, changes) = std::sync::mpsc::channel();
    log.on_change(Box::new(move || {
        // A test that has ended no longer receives.
        let _ = give.send(());
    }));
    let refuse = "printf '#!/bin/sh\\nexit 1\\n' > remote.git/hooks/pre-receive; chmod +x remote.git/hooks/pre-receive";
    sh(directory.path(), refuse);
    let first = batch(Head::EMPTY, &["a"], "tower");
    let why = for_some("a push that ends while its call waits", || {
        while changes.try_recv().is_ok() {}
        match log.append(&first) {
            Err(LogError::Unreachable { why }) => Some(why),
            Ok(Appended::Unknown(_)) => None,
            other => panic!("{other:?}"),
        }
    });
    assert_eq!(why, "[remote rejected] (pre-receive hook declined)");
    assert!(
        changes.try_recv().is_err(),
        "its own failure counted as a change"
    );
}

#[test]
fn a_caller_that_asks_later_gets_a_poll_that_began_after_its_call() {
    let directory = remote_in();
    let mut log = slow(directory.path(), "one", Duration::from_millis(1_500));
    let late = log.head();
    assert!(
        matches!(late, Err(LogError::Unreachable { .. })),
        "{late:?}"
    );
    // The poll for that call read the ref before this append.
    std::thread::sleep(Duration::from_secs(2));
    let first = batch(Head::EMPTY, &["a"], "tower");
    let appended = append(&mut open(directory.path(), "two"), &first);
    assert_eq!(appended, Ok(Appended::Committed));
    let head = for_some("the end", || log.head().ok());
    assert_eq!(head, first.batch.head());
}

#[test]
fn the_users_settings_and_environment_do_not_reach_the_log() {
    let directory = remote_in();
    let first = batch(Head::EMPTY, &["a"], "tower");
    let appended = append(&mut open(directory.path(), "one"), &first);
    assert_eq!(appended, Ok(Appended::Committed));
    let settings = [
        ("i18n.logOutputEncoding", "UTF-16"),
        ("init.defaultObjectFormat", "sha256"),
        ("log.showSignature", "true"),
        ("color.ui", "always"),
        ("fetch.prune", "true"),
        ("push.recurseSubmodules", "only"),
        ("push.pushOption", "none"),
    ];
    for (name, value) in settings {
        let script = format!("git config --global {name} {value}");
        sh(directory.path(), &script);
    }
    // The settings of a user apply to a process, so the log is followed by another one.
    let test = "git::the_log_is_followed_with_the_settings_of_this_user";
    let program = std::env::current_exe().expect("this program");
    let output = Command::new(program)
        .args(["--exact", test, "--ignored", "--nocapture"])
        .current_dir(directory.path())
        .env("HOME", directory.path())
        .env_remove("XDG_CONFIG_HOME")
        .env("GIT_COMMON_DIR", directory.path().join("elsewhere"))
        .env("GIT_OBJECT_DIRECTORY", directory.path().join("elsewhere"))
        .env("GIT_QUARANTINE_PATH", directory.path())
        .output()
        .expect("this program runs");
    let told = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    assert!(told.contains("1 passed"), "{told}");
}

#[test]
#[ignore = "another test runs it in a directory of its own, with the settings of a user"]
fn the_log_is_followed_with_the_settings_of_this_user() {
    let directory = std::env::current_dir().expect("a directory");
    let mut log = open(&directory, "two");
    let all = follows(&mut log, Head::EMPTY, 1);
    let second = batch(all[0].batch.head(), &["b"], "tower");
    assert_eq!(append(&mut log, &second), Ok(Appended::Committed));
    let all = follows(&mut open(&directory, "three"), Head::EMPTY, 2);
    assert_eq!(all.len(), 2);
}
