//! The process: a second daemon, another user, few files, a log without a reader, a signal at any time.

use std::io::{PipeReader, PipeWriter, Write as _};
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{CWD, FileType, Mode, OFlags, fcntl_setfl};
use rustix::process::Signal;
use settled_tests::mailroom::Mailroom;
use settled_tests::wait;
use settled_torture::faults::{Errno, Fault, Serving, Span, serve, striking};
use settled_torture::messages::Mix;

use super::{adds_up, cleared, mailroom, once, post, run};

/// A user who owns nothing else.
const NOBODY: u32 = 65_534;

#[test]
fn a_second_daemon_is_kept_out_by_whatever_path_it_comes() {
    let mailroom = mailroom();
    let root = mailroom.root();
    let beside = settled_tests::scratch();
    let (link, bind) = (beside.path().join("link"), beside.path().join("bind"));
    symlink(root, &link).expect("a link");
    std::fs::create_dir(&bind).expect("a directory");
    run(
        "mount",
        &[
            "--bind",
            &root.display().to_string(),
            &bind.display().to_string(),
        ],
    );
    let serving = Serving::at(root);
    let answers: Vec<_> = [root, &link, &bind].into_iter().map(once).collect();
    run("umount", &[&bind.display().to_string()]);
    for (code, said) in answers {
        assert_eq!(code, Some(9), "{said}");
        assert!(
            said.contains("is held by process") && said.contains("  try: settled status"),
            "{said}"
        );
    }
    let messages = post(root, Mix::Several, 4, 1);
    cleared(root);
    assert_eq!(serving.terminate().0, Some(0));
    adds_up(root, &messages);
}

#[test]
fn removing_the_lock_file_lets_no_second_daemon_in() {
    let mailroom = mailroom();
    let root = mailroom.root();
    let serving = Serving::at(root);
    let lock = std::fs::read(root.join(".settled/lock")).expect("a lock");
    std::fs::remove_file(root.join(".settled/lock")).expect("a lock to remove");
    let (code, said) = once(root);
    assert_eq!(code, Some(9), "{said}");
    std::fs::write(root.join(".settled/lock"), lock)
        .expect("the number, for this test to find the process");
    let messages = post(root, Mix::Notes, 3, 1);
    cleared(root);
    assert_eq!(serving.terminate().0, Some(0));
    adds_up(root, &messages);
}

#[test]
fn a_config_that_is_no_regular_file_is_waited_for_by_nobody() {
    let mailroom = mailroom();
    let root = mailroom.root();
    let config = root.join("settled.toml");
    let pipe = || {
        let _ = std::fs::remove_file(&config);
        rustix::fs::mknodat(CWD, &config, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
            .expect("a pipe");
    };
    let says = "config_invalid: expected a regular file of at most 1048576 bytes";
    let serving = Serving::at(root);
    pipe();
    serving.hang_up();
    serving.says(says);
    let messages = post(root, Mix::Notes, 2, 1);
    cleared(root);
    assert_eq!(serving.terminate().0, Some(0));
    let (code, said) = once(root);
    assert!(code == Some(2) && said.contains(says), "{code:?}: {said}");
    std::fs::remove_file(&config).expect("the pipe");
    std::os::unix::fs::symlink("/dev/null", &config).expect("a link");
    assert_eq!(once(root).0, Some(2), "a device behind a link");
    std::fs::remove_file(&config).expect("the link");
    std::os::unix::fs::symlink("nowhere.toml", &config).expect("a link");
    assert_eq!(once(root).0, Some(2), "nothing behind a link");
    std::fs::remove_file(&config).expect("the link");
    settled_tests::write(root.join("elsewhere.toml"), "[rounds]\nmax = 3\n");
    std::os::unix::fs::symlink("elsewhere.toml", &config).expect("a link");
    assert_eq!(once(root).0, Some(0), "a file behind a link");
    adds_up(root, &messages);
}

#[test]
fn a_log_that_nobody_reads_or_can_hold_holds_up_no_message() {
    for how in [
        "exec \"$0\" serve \"$1\" 2>&- >&-",
        "exec \"$0\" serve \"$1\" 2>/dev/full >/dev/full",
    ] {
        let mailroom = mailroom();
        let root = mailroom.root();
        let mut shell = Command::new("sh");
        shell
            .args(["-c", how])
            .arg(settled_tests::binaries::settled())
            .arg(root)
            .stdin(Stdio::null());
        delivers(&mailroom, &mut shell);
    }
    let mailroom = mailroom();
    let mut unread = serve(&[], mailroom.root());
    let (_reader, full) = full_pipe();
    unread.stderr(full);
    delivers(&mailroom, &mut unread);
    let mailroom = self::mailroom();
    let (reader, gone) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut unread = serve(&[], mailroom.root());
    unread.stderr(gone.try_clone().expect("a second handle"));
    unread.stdout(gone);
    delivers(&mailroom, &mut unread);
}

#[test]
fn up_serves_although_nobody_reads_what_it_says_first() {
    let mailroom = mailroom();
    let (_reader, full) = full_pipe();
    let mut up = Command::new(settled_tests::binaries::settled());
    up.arg("up").arg(mailroom.root()).stdout(full);
    delivers(&mailroom, &mut up);
}

/// A full pipe whose reader never reads.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    fcntl_setfl(&writer, OFlags::NONBLOCK).expect("a pipe has flags");
    while writer.write(&[b'x'; 4096]).is_ok() {}
    // The daemon must meet a blocking pipe.
    fcntl_setfl(&writer, OFlags::empty()).expect("a pipe has flags");
    (reader, writer)
}

/// Checks that a daemon without a log does its work.
fn delivers(mailroom: &Mailroom, command: &mut Command) {
    let root = mailroom.root();
    let mut child = command.spawn().expect("it can be started");
    // Three messages without a repeated one, since either of two equal ones may be read first.
    let lot: Vec<_> = (1..4)
        .flat_map(|lot| post(root, Mix::Several, 3, lot))
        .collect();
    cleared(root);
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), Signal::TERM)
        .expect("it runs");
    let status = wait::for_some("the daemon to end", || {
        child.try_wait().expect("it is our child")
    });
    assert_eq!(status.code(), Some(0));
    adds_up(root, &lot);
}

#[test]
fn a_signal_during_a_stuck_call_ends_the_daemon_after_it() {
    let mailroom = mailroom();
    let root = mailroom.root();
    let fault = Fault {
        call: "fdatasync",
        errno: Errno::Io,
        span: Span::Once(1),
    };
    let words: Vec<String> = striking(&fault, None)
        .into_iter()
        .map(|word| {
            if word.starts_with("inject=") {
                "inject=fdatasync:delay_enter=2s:when=1".into()
            } else {
                word
            }
        })
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let serving = Serving::start(root, serve(&words, root));
    serving.says("serving");
    let messages = post(root, Mix::Notes, 2, 1);
    let ledger = root.join(".settled/ledger/00000000000000000001.jsonl");
    wait::until("the batch to be written", || {
        ledger.metadata().is_ok_and(|data| data.len() > 0)
    });
    let (code, said) = serving.terminate();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("stopping"), "{said}");
    assert_eq!(once(root).0, Some(0));
    adds_up(root, &messages);
}

/// The limit with which a daemon can do everything.
const FILES: u64 = 80;

#[test]
fn eighty_open_files_are_enough_beside_snapshots_of_thousands_of_records() {
    let mailroom = mailroom();
    let root = mailroom.root();
    let config = "[limits]\nmessages_per_hour = 10000\n[ledger]\nsnapshot_records = 20\n";
    settled_tests::write(root.join("settled.toml"), config);
    let limit = format!("--nofile={FILES}");
    let mut messages = Vec::new();
    for lots in [1..9, 9..11] {
        let serving = Serving::start(root, serve(&["prlimit", &limit], root));
        serving.says("serving");
        for lot in lots {
            messages.extend(post(root, Mix::Notes, 200, lot));
            cleared(root);
        }
        let (code, said) = serving.terminate();
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("made a snapshot"), "{said}");
        assert!(!said.contains("could not make a snapshot"), "{said}");
        assert!(!said.contains("Too many open files"), "{said}");
    }
    adds_up(root, &messages);
}

#[test]
fn too_few_open_files_stop_the_daemon_at_its_start() {
    let mailroom = mailroom();
    let root = mailroom.root();
    let messages = post(root, Mix::Notes, 2, 1);
    // From too few files for its runtime to too few for a snapshot.
    for files in [6, 10, 16, 22, 32, 64, FILES - 1] {
        let limit = format!("--nofile={files}");
        let (code, said) = Serving::start(root, serve(&["prlimit", &limit], root)).ended();
        assert_eq!(code, Some(1), "{files}: {said}");
        assert!(
            said.contains("Too many open files")
                && said.contains("expected at least 80 (`ulimit -n 80`)")
                && said.contains("  try: "),
            "{files}: {said}"
        );
    }
    assert_eq!(once(root).0, Some(0));
    adds_up(root, &messages);
}

/// A workspace that belongs to another user, who serves it.
fn of_nobody() -> Mailroom {
    let mailroom = mailroom();
    let above = mailroom
        .root()
        .parent()
        .expect("a directory of the test's")
        .to_owned();
    std::fs::set_permissions(above, std::fs::Permissions::from_mode(0o755)).expect("a way to it");
    give(mailroom.root());
    mailroom
}

fn give(path: &Path) {
    chown(path, Some(NOBODY), Some(NOBODY)).expect("this test needs root");
    if path.is_dir() {
        settled_tests::list(path).iter().for_each(|path| give(path));
    }
}

const AS_NOBODY: [&str; 4] = [
    "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
];

fn allow(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("permissions");
}

#[test]
fn permissions_taken_away_and_given_back_are_waited_out() {
    // The last is the recipient's whole directory: its mail waits and is not refused.
    for directory in ["inbox", "outbox", "sent", ""] {
        let mailroom = of_nobody();
        let root = mailroom.root();
        let serving = Serving::start(root, serve(&AS_NOBODY, root));
        serving.says("serving");
        let agent = if ["inbox", ""].contains(&directory) {
            "codex"
        } else {
            "claude"
        };
        let path = mailroom.agent(agent, directory);
        allow(&path, 0o000);
        if directory.is_empty() {
            serving.says("cannot read this and will retry");
        }
        let messages = Mix::Requests.messages(2, 1);
        messages
            .iter()
            .for_each(|message| settled_torture::messages::post(root, message));
        settled_tests::list(mailroom.agent("claude", "outbox"))
            .iter()
            .for_each(|file| give(file));
        serving.says(if directory == "outbox" {
            "cannot read this and will retry"
        } else {
            "Permission denied"
        });
        allow(&path, 0o755);
        cleared(root);
        wait::until("the requests", || {
            settled_tests::names(mailroom.agent("codex", "inbox")).len() == 2
        });
        assert_eq!(serving.terminate().0, Some(0), "{directory}");
        adds_up(root, &messages);
    }
}

#[test]
fn a_mailbox_that_may_not_be_written_is_told_with_its_fix_until_it_is_fixed() {
    let mailroom = of_nobody();
    let root = mailroom.root();
    let serving = Serving::start(root, serve(&AS_NOBODY, root));
    serving.says("serving");
    let inbox = mailroom.agent("codex", "inbox");
    allow(&inbox, 0o555);
    let messages = Mix::Requests.messages(1, 1);
    let message = &messages[0];
    settled_torture::messages::post(root, message);
    give(&mailroom.agent("claude", "outbox").join(&message.file));
    serving.says("cannot write to a mailbox; will retry");
    let alerts = || mailroom.status()["alerts"].clone();
    wait::until("the status to tell", || alerts()[0]["kind"] == "unwritable");
    assert_eq!(alerts()[0]["path"], inbox.to_string_lossy().as_ref());

    let fix = format!("chmod ug+rwx {}", inbox.display());
    let denied = format!("{}: cannot write to a mailbox", inbox.display());
    let problem = mailroom.json(&["problems"])["data"]["problems"][0].clone();
    let what = problem["what"].as_str().expect("a sentence");
    assert!(
        what.starts_with(&denied) && what.contains("Permission denied"),
        "{what}"
    );
    assert_eq!(problem["fix"]["run"], fix);
    let review = mailroom.status()["reviews"][0]["pr"].clone();
    let why = mailroom.json(&["why", review.as_str().expect("a number")]);
    let why = &why["data"]["reviews"][0];
    assert_eq!(why["kind"], "mailbox", "{why}");
    assert_eq!(why["actor"], "operator", "{why}");
    assert_eq!(why["fixes"][0]["run"], fix);
    let doctor = mailroom.run(&["doctor"]);
    let doctor = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(doctor.contains(&format!("fix: {fix}")), "{doctor}");

    allow(&inbox, 0o755);
    cleared(root);
    wait::until("the request", || {
        settled_tests::names(&inbox).len() == 1 && alerts().is_null()
    });
    let (code, said) = serving.terminate();
    assert_eq!(code, Some(0), "{said}");
    let lines = said.matches("cannot write to a mailbox").count();
    assert_eq!(lines, 1, "told once, however often it was tried: {said}");
    adds_up(root, &messages);
}

#[test]
fn a_file_that_may_not_be_read_is_no_ones_refusal() {
    let mailroom = of_nobody();
    let root = mailroom.root();
    let messages = post(root, Mix::Notes, 2, 1);
    let files: Vec<_> = messages
        .iter()
        .map(|message| mailroom.agent(message.from, "outbox").join(&message.file))
        .collect();
    files.iter().for_each(|file| give(file));
    allow(&files[0], 0o000);
    let mut once = Command::new(AS_NOBODY[0]);
    once.args(&AS_NOBODY[1..])
        .arg(settled_tests::binaries::settled())
        .args(["serve", "--once"])
        .arg(root);
    let output = once.output().expect("setpriv can be run");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(9), "{said}");
    assert!(
        said.contains("cannot read this and will retry")
            && said.contains("nor read 1 files or directories"),
        "{said}"
    );
    allow(&files[0], 0o644);
    assert_eq!(
        once.output().expect("setpriv can be run").status.code(),
        Some(0)
    );
    adds_up(root, &messages);
}
