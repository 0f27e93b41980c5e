//! The disk: full, read-only, unavailable for a while.

use std::fs::File;
use std::io::Write as _;
use std::process::Command;

use settled_tests::wait;
use settled_torture::faults::{Errno, Fault, Serving, Span, serve, striking};
use settled_torture::messages::{Mix, post as post_one};

use super::{Mount, adds_up, arrived, cleared, mailroom, once, post, run};

/// Asks a command about a workspace.
fn asked(words: &[&str], root: &std::path::Path) -> String {
    let mut settled = settled_tests::mailroom::settled();
    let output = settled.args(words).arg(root).output();
    settled_tests::mailroom::said(&output.expect("settled can be run"))
}

fn problems(root: &std::path::Path) -> String {
    asked(&["problems"], root)
}

/// Writes messages outside the outboxes, fills the disk, and moves them into their outboxes.
fn post_onto_full_disk(
    mount: &Mount,
    root: &std::path::Path,
) -> Vec<settled_torture::messages::Message> {
    // So small that the disk has no page left for their ledger records.
    let messages = Mix::Notes.messages(6, 2);
    let stage = |message: &settled_torture::messages::Message| mount.path().join(&message.file);
    messages
        .iter()
        .for_each(|message| settled_tests::write(stage(message), &message.text));
    let mut filler = File::create(mount.path().join("filler")).expect("a file");
    while filler.write_all(&[1; 4096]).is_ok() {}
    for message in &messages {
        let outbox = root.join("agents").join(message.from).join("outbox");
        std::fs::rename(stage(message), outbox.join(&message.file))
            .expect("a rename needs no room here");
    }
    messages
}

#[test]
fn a_full_disk_is_waited_out_and_nothing_is_lost() {
    let mount = Mount::of_kib(1024);
    let root = mount.mailroom();
    let serving = Serving::at(&root);
    let mut messages = post(&root, Mix::Notes, 3, 1);
    cleared(&root);
    messages.extend(post_onto_full_disk(&mount, &root));
    serving.says("cannot write the ledger; nothing is lost, will retry");
    serving.says("No space left on device");
    // The daemon has no room to save an alert.
    assert!(problems(&root).contains("is full"), "{}", problems(&root));
    std::fs::remove_file(mount.path().join("filler")).expect("room again");
    cleared(&root);
    assert!(
        problems(&root).contains("no problems"),
        "{}",
        problems(&root)
    );
    messages.extend(post(&root, Mix::Several, 4, 3));
    cleared(&root);
    assert_eq!(serving.terminate().0, Some(0));
    adds_up(&root, &messages);
}

#[test]
fn a_full_disk_ends_serve_once_with_exit_code_9() {
    let mount = Mount::of_kib(1024);
    let root = mount.mailroom();
    let messages = post_onto_full_disk(&mount, &root);
    let (code, said) = once(&root);
    assert_eq!(code, Some(9), "{said}");
    assert!(
        said.contains("No space left on device") && said.contains("  try: "),
        "{said}"
    );
    std::fs::remove_file(mount.path().join("filler")).expect("room again");
    assert_eq!(once(&root).0, Some(0));
    adds_up(&root, &messages);
}

#[test]
fn a_limit_on_the_size_of_files_is_like_a_full_disk() {
    let mailroom = mailroom();
    let root = mailroom.root();
    let messages = post(root, Mix::Notes, 6, 1);
    let limited = |commands: &[&str]| {
        let mut shell = Command::new("bash");
        shell.args(["-c", "ulimit -f 3; exec \"$0\" \"$@\""]);
        shell.arg(settled_tests::binaries::settled()).args(commands);
        shell.arg(root);
        shell
    };
    let output = limited(&["serve", "--once"]).output().expect("a shell");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(9), "{said}");
    assert!(said.contains("File too large"), "{said}");
    let serving = Serving::start(root, limited(&["serve"]));
    serving.says("cannot write the ledger; nothing is lost, will retry");
    assert_eq!(serving.terminate().0, Some(0));
    assert_eq!(once(root).0, Some(0));
    adds_up(root, &messages);
}

#[test]
fn a_root_on_a_read_only_file_system_is_not_served() {
    let mount = Mount::of_kib(1024);
    let root = mount.mailroom();
    let messages = post(&root, Mix::Notes, 2, 1);
    let path = mount.path().display().to_string();
    run("mount", &["-o", "remount,ro", &path]);
    let (code, said) = once(&root);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("Read-only file system") && said.contains(&path),
        "{said}"
    );
    assert!(said.contains("  try: settled doctor"), "{said}");
    let told = problems(&root);
    assert!(told.contains("read-only"), "{told}");
    assert!(told.contains("findmnt --target"), "{told}");
    let told = asked(&["doctor"], &root);
    assert!(told.contains("mount it for writing"), "{told}");
    assert!(!told.contains("--separate-users"), "{told}");
    run("mount", &["-o", "remount,rw", &path]);
    assert_eq!(once(&root).0, Some(0));
    adds_up(&root, &messages);
}

/// As after a disk error: the journal ends, what was not synced is gone, and every write fails.
#[test]
fn a_file_system_that_gives_up_stops_the_daemon_and_loses_nothing() {
    let mount = Mount::of_ext4();
    let root = mount.mailroom();
    let serving = Serving::at(&root);
    let mut messages = post(&root, Mix::Notes, 6, 1);
    cleared(&root);
    let path = mount.path().display().to_string();
    run("sync", &["--file-system", &path]);
    messages.extend(post(&root, Mix::Notes, 6, 2));
    cleared(&root);
    // The kernel may write the notes about deliveries at any time, long before the names in the inboxes.
    for cursor in settled_tests::list(root.join(".settled/cursors")) {
        let cursor = File::open(cursor).expect("a cursor");
        cursor.sync_data().expect("a sync");
    }
    // Within a second, so that the daemon has something to sync.
    run("mount", &["-o", "remount,abort", &path]);
    let (code, said) = serving.ended();
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("Read-only file system") && said.contains("  try: settled serve"),
        "{said}"
    );
    mount.detach_and_repair();
    mount.attach();
    assert_eq!(once(&root).0, Some(0));
    adds_up(&root, &messages);
}

/// The kernel does not remount a file system read-only while a file on it is open for writing. It does so after a disk
/// error, which is simulated here: every write to the ledger fails with EROFS.
#[test]
fn a_disk_that_turns_read_only_stops_the_daemon() {
    let mailroom = mailroom();
    let root = mailroom.root();
    let segment = root.join(".settled/ledger/00000000000000000001.jsonl");
    let fault = Fault {
        call: "pwrite64",
        errno: Errno::ReadOnly,
        span: Span::From(2),
    };
    let words = striking(&fault, Some(&segment));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let serving = Serving::start(root, serve(&words, root));
    serving.says("serving");
    // Only one, since several may reach the ledger in several writes.
    let mut messages = post(root, Mix::Notes, 1, 1);
    cleared(root);
    messages.extend(post(root, Mix::Notes, 2, 2));
    let (code, said) = serving.ended();
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("cannot append to") && said.contains("Read-only file system"),
        "{said}"
    );
    assert!(said.contains("  try: settled serve"), "{said}");
    assert_eq!(once(root).0, Some(0));
    adds_up(root, &messages);
}

#[test]
fn a_disk_that_fails_for_a_while_is_waited_out() {
    let spans = [
        ("openat2", Errno::Io, 40, 90),
        ("openat", Errno::TooManyFiles, 60, 90),
        ("newfstatat", Errno::Io, 30, 60),
        ("getdents64", Errno::Io, 14, 26),
        ("pread64", Errno::Io, 4, 9),
        ("renameat2", Errno::Access, 2, 8),
        ("pwrite64", Errno::NoSpace, 8, 20),
    ];
    std::thread::scope(|scope| {
        for (call, errno, first, last) in spans {
            let fault = Fault {
                call,
                errno,
                span: Span::Between(first, last),
            };
            scope.spawn(move || waited_out(&fault));
        }
    });
}

fn waited_out(fault: &Fault) {
    let mailroom = mailroom();
    let root = mailroom.root();
    let words = striking(fault, None);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let serving = Serving::start(root, serve(&words, root));
    serving.says("serving");
    let mut messages = Vec::new();
    for lot in 1..6 {
        messages.extend(post(root, Mix::Notes, 3, lot));
        cleared(root);
    }
    // The daemon retries one mailbox later while the others go on, so an outbox may be empty before.
    arrived(root, &messages);
    let (code, said) = serving.terminate();
    assert_eq!(code, Some(0), "{fault}\n{said}");
    assert!(
        said.contains(&format!("os error {}", fault.errno.number())),
        "{fault} was not met\n{said}"
    );
    adds_up(root, &messages);
}

#[test]
fn no_room_in_the_directory_for_temporary_files_is_of_no_matter() {
    let mailroom = mailroom();
    let root = mailroom.root();
    let mut command = serve(&[], root);
    command.env("TMPDIR", "/nonexistent");
    let serving = Serving::start(root, command);
    serving.says("serving");
    let messages = Mix::Several.messages(4, 1);
    messages.iter().for_each(|message| post_one(root, message));
    cleared(root);
    assert_eq!(serving.terminate().0, Some(0));
    adds_up(root, &messages);
}

#[test]
fn a_command_is_started_once_there_is_room_for_its_run_and_no_start_is_lost() {
    let mailroom = mailroom();
    let root = mailroom.root();
    let notes = root.with_file_name("notes");
    let fake = settled_tests::repository().join("tests/fakes/reviewer.sh");
    mailroom.put(
        "settled.toml",
        &format!(
            "[agents.codex]\ncommand = ['{}', 'agree']\nenv = {{ FAKE_NOTES = '{}' }}\n",
            fake.display(),
            notes.display()
        ),
    );
    let fault = Fault {
        call: "mkdir",
        errno: Errno::NoSpace,
        span: Span::Between(1, 2),
    };
    let words = striking(&fault, Some(&root.join(".settled/runs")));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let serving = Serving::start(root, serve(&words, root));
    serving.says("serving");
    post(root, Mix::Requests, 1, 1);
    serving.says("cannot start a command; will retry");
    serving.says("No space left on device");
    wait::until("the review to be approved", || {
        mailroom.status()["reviews"][0]["phase"] == "approved"
    });
    assert_eq!(
        settled_tests::read(&notes).lines().count(),
        1,
        "it is started once"
    );
    let records = settled_tests::ledger::records(root);
    assert_eq!(
        records
            .iter()
            .filter(|record| record["kind"] == "started")
            .count(),
        1
    );
    assert_eq!(serving.terminate().0, Some(0));
}
