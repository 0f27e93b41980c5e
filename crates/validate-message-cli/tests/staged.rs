//! `--staged` judges the content of git's index, whatever is in the working tree.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::files::{FEEDBACK, NOTE, PACKET};

const OUTBOX: &str = "agents/codex/outbox";

/// A repository with an empty workspace in its directory `room`.
pub(crate) struct Repository {
    directory: tempfile::TempDir,
}

impl Repository {
    pub(crate) fn new() -> Self {
        let repository = Self {
            directory: tempfile::tempdir().expect("a directory"),
        };
        repository.git(&["init", "-q"]);
        repository
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Returns a command that ignores the machine's settings and any enclosing repository.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.path())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1");
        for variable in ["GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"] {
            command.env_remove(variable);
        }
        command
    }

    pub(crate) fn git(&self, args: &[&str]) {
        let name = [
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b.c",
            "-c",
            "commit.gpgsign=false",
        ];
        let output = self
            .command("git")
            .args(name)
            .args(args)
            .output()
            .expect("git can be run");
        assert!(
            output.status.success(),
            "git {args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        fs::write(path, text).expect("written");
    }

    fn validate(&self, args: &[&str]) -> Output {
        let mut command = self.command(env!("CARGO_BIN_EXE_validate-message"));
        command
            .arg("--staged")
            .args(args)
            .output()
            .expect("the binary runs")
    }

    /// Asserts the exit status, the findings and the summary for the index.
    #[track_caller]
    fn assert(&self, args: &[&str], status: i32, found: &[&str], summary: &str) {
        let output = self.validate(args);
        let printed = String::from_utf8(output.stdout).expect("text");
        let said = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(status), "{printed}{said}");
        let lines: Vec<&str> = printed
            .lines()
            .filter(|line| !line.starts_with(' '))
            .collect();
        let is_right = lines.len() == found.len()
            && lines
                .iter()
                .zip(found)
                .all(|(line, start)| line.starts_with(start));
        assert!(is_right, "expected {found:#?}, printed\n{printed}");
        assert!(
            said.starts_with(summary),
            "expected {summary}, said\n{said}"
        );
    }
}

fn wrong() -> String {
    NOTE.replace("P3", "P9")
}

#[test]
fn nothing_staged_is_correct_and_counted() {
    let repository = Repository::new();
    repository.assert(&[], 0, &[], "0 files, 0 refused");
    repository.write("agents/a/outbox/n.yaml", &wrong());
    repository.assert(&[], 0, &[], "0 files, 0 refused");
}

#[test]
fn the_index_is_judged_and_not_the_working_tree() {
    let repository = Repository::new();
    let note = format!("{OUTBOX}/n.yaml");
    repository.write(&note, &wrong());
    repository.git(&["add", "."]);
    repository.write(&note, NOTE);
    repository.assert(
        &[],
        1,
        &["agents/codex/outbox/n.yaml:5:11: envelope_field_invalid"],
        "1 file, 1 refused",
    );
    repository.git(&["add", "."]);
    repository.write(&note, &wrong());
    repository.assert(&[], 0, &[], "1 file, 0 refused");
    fs::remove_file(repository.path().join(&note)).expect("removed");
    repository.assert(&[], 0, &[], "1 file, 0 refused");
    // Committed files are not checked again, and deleted ones not at all.
    repository.git(&["commit", "-q", "-m", "a"]);
    repository.assert(&[], 0, &[], "0 files");
    repository.git(&["rm", "-q", "--cached", &note]);
    repository.assert(&[], 0, &[], "0 files");
}

#[test]
fn only_what_lies_in_mailboxes_is_a_message() {
    let repository = Repository::new();
    for path in [
        "docker-compose.yaml",
        "net/packets/login.json",
        "packets/briefs/86.json",
        "agents/a/dead_letter/x.report.yaml",
        "agents/a/outbox/x.txt",
        "agents/a/outbox/.x.yaml",
        "agents/a/card.yaml",
        "agents/a/outbox/x.yaml.tmp",
    ] {
        repository.write(path, "no message");
    }
    for path in [
        "agents/a/inbox/archive/1.yaml",
        "agents/a/outbox/2.yml",
        "room/agents/a/sent/3.json",
    ] {
        repository.write(path, "no message");
    }
    repository.git(&["add", "."]);
    let found = [
        "agents/a/inbox/archive/1.yaml:1:1:",
        "agents/a/outbox/2.yml:1:1:",
        "room/agents/a/sent/3.json:1:1:",
    ];
    repository.assert(&[], 1, &found, "3 files");
    // Paths narrow it; a named file is checked in any directory.
    repository.assert(&["room"], 1, &found[2..], "1 file");
    repository.assert(&["agents", "./room/../room/agents"], 1, &found, "3 files");
    repository.assert(
        &["docker-compose.yaml"],
        1,
        &["docker-compose.yaml:1:1:"],
        "1 file",
    );
    repository.assert(&["nothing"], 0, &[], "0 files");
}

#[test]
fn an_odd_name_is_read_as_it_is() {
    let repository = Repository::new();
    for name in ["a b", "a\"b", "grün", "a\nb", "-x", ":y"] {
        repository.write(&format!("{OUTBOX}/{name}.yaml"), &wrong());
    }
    repository.git(&["add", "."]);
    repository.assert(
        &[],
        1,
        &[
            "agents/codex/outbox/-x.yaml:5:11:",
            "agents/codex/outbox/:y.yaml:5:11:",
            "agents/codex/outbox/a\\nb.yaml:5:11:",
            "agents/codex/outbox/a b.yaml:5:11:",
            "agents/codex/outbox/a\"b.yaml:5:11:",
            "agents/codex/outbox/grün.yaml:5:11:",
        ],
        "6 files",
    );
}

#[test]
fn from_a_directory_below_names_are_those_one_would_type_there() {
    let repository = Repository::new();
    repository.write("agents/a/outbox/n.yaml", &wrong());
    repository.write("room/agents/a/outbox/n.yaml", &wrong());
    repository.git(&["add", "."]);
    let mut command = repository.command(env!("CARGO_BIN_EXE_validate-message"));
    let output = command
        .arg("--staged")
        .current_dir(repository.path().join("room/agents"))
        .output()
        .expect("runs");
    let printed = String::from_utf8(output.stdout).expect("text");
    assert!(
        printed.contains("../../agents/a/outbox/n.yaml:5:11: ")
            && printed.contains("\na/outbox/n.yaml:5:11: "),
        "{printed}"
    );
}

#[test]
fn a_packet_is_looked_for_in_the_index_and_only_then_where_git_knows_nothing() {
    let repository = Repository::new();
    let (packet, feedback) = (
        "room/packets/findings/r1.yaml",
        "room/agents/codex/outbox/f.yaml",
    );
    repository.write(feedback, FEEDBACK);
    repository.git(&["add", "."]);
    repository.assert(
        &[],
        1,
        &["room/agents/codex/outbox/f.yaml:9:20: packet_missing"],
        "1 file",
    );
    // Untracked, then staged with another text in the working tree.
    repository.write(packet, PACKET);
    repository.assert(&[], 0, &[], "1 file");
    repository.write(packet, "findings: []\n");
    repository.git(&["add", "."]);
    repository.write(packet, PACKET);
    repository.assert(
        &[],
        1,
        &["room/agents/codex/outbox/f.yaml:11:19: blocking_count_mismatch"],
        "1 file",
    );
    repository.git(&["add", "."]);
    repository.write(packet, "findings: []\n");
    repository.assert(&[], 0, &[], "1 file");
    // Committed before the message.
    repository.git(&["reset", "-q", "--", feedback]);
    repository.git(&["commit", "-q", "-m", "packet"]);
    repository.git(&["add", feedback]);
    repository.assert(&[], 0, &[], "1 file");
    // Ignored: git does not know it, but the daemon reads it.
    repository.git(&["reset", "-q", "--", feedback]);
    repository.git(&["rm", "-q", "--cached", packet]);
    repository.git(&["commit", "-q", "-m", "ignored"]);
    repository.git(&["add", feedback]);
    repository.write(".gitignore", "packets/\n");
    repository.assert(
        &[],
        1,
        &["room/agents/codex/outbox/f.yaml:11:19: blocking_count_mismatch"],
        "1 file",
    );
}

#[test]
fn a_packet_that_changed_alone_is_checked_with_the_messages_that_name_it() {
    let repository = Repository::new();
    let packet = "room/packets/findings/r1.yaml";
    let sent = "room/agents/codex/sent/f.yaml";
    repository.write(sent, FEEDBACK);
    repository.write("room/agents/claude/inbox/taken/f.yaml", FEEDBACK);
    repository.write("room/agents/claude/outbox/n.yaml", &wrong());
    repository.write("agents/codex/sent/f.yaml", FEEDBACK);
    repository.write(packet, PACKET);
    repository.git(&["add", "."]);
    repository.git(&["commit", "-q", "-m", "a review"]);
    repository.assert(&[], 0, &[], "0 files");
    // Its count no longer fits its messages; another workspace has another packet of that name.
    repository.write(packet, "findings: []\n");
    repository.git(&["add", "."]);
    let found = [
        "room/agents/claude/inbox/taken/f.yaml:11:19: blocking_count_mismatch",
        "room/agents/codex/sent/f.yaml:11:19: blocking_count_mismatch",
    ];
    repository.assert(&[], 1, &found, "2 files, 2 refused");
    repository.assert(&["room/packets"], 1, &found, "2 files");
    repository.assert(&["room/agents/codex"], 1, &found[1..], "1 file");
    repository.assert(&["agents"], 0, &[], "0 files");
    // Removed from index and working tree, then from the index alone.
    let missing = [
        "room/agents/claude/inbox/taken/f.yaml:9:20: packet_missing",
        "room/agents/codex/sent/f.yaml:9:20: packet_missing",
    ];
    repository.git(&["rm", "-q", "-f", packet]);
    repository.assert(&[], 1, &missing, "2 files, 2 refused");
    repository.write(packet, PACKET);
    repository.assert(&[], 1, &missing, "2 files, 2 refused");
    // Together with the messages that name it, it may be removed.
    repository.git(&[
        "rm",
        "-q",
        "-r",
        "room/agents/codex",
        "room/agents/claude/inbox",
    ]);
    repository.assert(&[], 0, &[], "0 files");
}

#[test]
fn a_packet_that_no_message_names_is_checked_by_itself() {
    let repository = Repository::new();
    repository.write("room/packets/findings/r1.yaml", PACKET);
    repository.write("room/packets/findings/r2.yaml", "findings: [\n");
    repository.write("room/packets/r3.yaml", "findings: [{id: F-1}]\n");
    repository.write("net/packets/login.yaml", "user: me\n");
    repository.write(
        "room/packets/handoff/task.yaml",
        "task_id: t\nfindings: []\n",
    );
    repository.git(&["add", "."]);
    let found = [
        "room/packets/findings/r2.yaml:1:11: packet_syntax",
        "room/packets/r3.yaml:1:12: finding_invalid",
        "room/packets/r3.yaml:1:12: finding_invalid",
    ];
    repository.assert(&[], 1, &found, "3 files, 2 refused");
    repository.assert(&["room/packets/findings"], 1, &found[..1], "2 files");
    repository.git(&["commit", "-q", "-m", "a"]);
    repository.git(&["rm", "-q", "-r", "room/packets"]);
    repository.assert(&[], 0, &[], "0 files");
}

#[cfg(unix)]
#[test]
fn a_staged_symlink_is_refused_and_no_way_to_a_packet() {
    let repository = Repository::new();
    repository.write(&format!("{OUTBOX}/f.yaml"), FEEDBACK);
    repository.write("elsewhere/r1.yaml", PACKET);
    fs::create_dir_all(repository.path().join("packets")).expect("made");
    std::os::unix::fs::symlink("../elsewhere", repository.path().join("packets/findings"))
        .expect("linked");
    std::os::unix::fs::symlink("f.yaml", repository.path().join(OUTBOX).join("g.yaml"))
        .expect("linked");
    repository.git(&["add", "."]);
    repository.assert(
        &[],
        1,
        &[
            "agents/codex/outbox/f.yaml:9:20: packet_unsafe",
            "agents/codex/outbox/g.yaml: not_a_file",
        ],
        "2 files, 2 refused",
    );
}

#[test]
fn another_index_and_another_repository_are_honoured() {
    let repository = Repository::new();
    repository.write(&format!("{OUTBOX}/n.yaml"), &wrong());
    let other = repository.path().join("other.index");
    let output = repository
        .command("git")
        .args(["add", OUTBOX])
        .env("GIT_INDEX_FILE", &other)
        .output();
    assert!(output.expect("git runs").status.success());
    repository.assert(&[], 0, &[], "0 files");
    let validate = || {
        let mut command = repository.command(env!("CARGO_BIN_EXE_validate-message"));
        command.arg("--staged");
        command
    };
    let output = validate()
        .env("GIT_INDEX_FILE", &other)
        .output()
        .expect("runs");
    assert_eq!(output.status.code(), Some(1));
    let outside = tempfile::tempdir().expect("a directory");
    let output = validate()
        .current_dir(outside.path())
        .output()
        .expect("runs");
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        said.starts_with("cannot read the staged files: fatal: not a git repository"),
        "{said}"
    );
    let output = validate()
        .current_dir(outside.path())
        .env("GIT_DIR", repository.path().join(".git"))
        .env("GIT_INDEX_FILE", &other)
        .output()
        .expect("runs");
    assert_eq!(
        output.status.code(),
        Some(1),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_staged_file_past_the_limit_is_told_and_the_next_one_read() {
    let repository = Repository::new();
    repository.write(&format!("{OUTBOX}/a.yaml"), &"x".repeat(3 * 256 * 1024));
    repository.write(&format!("{OUTBOX}/b.yaml"), &wrong());
    repository.git(&["add", "."]);
    let found = [
        "agents/codex/outbox/a.yaml: too_large",
        "agents/codex/outbox/b.yaml:5:11: envelope_field_invalid",
    ];
    repository.assert(&[], 1, &found, "2 files, 2 refused");
}

#[test]
fn a_link_in_place_of_mail_stops_the_commit() {
    for link in [
        "agents/codex/outbox/a.yaml",
        "agents/codex/outbox",
        "agents/codex",
        "agents",
    ] {
        let repository = Repository::new();
        repository.write("elsewhere/a.yaml", NOTE);
        let at = repository.path().join(link);
        fs::create_dir_all(at.parent().expect("a directory")).expect("made");
        std::os::unix::fs::symlink(repository.path().join("elsewhere"), &at).expect("a link");
        repository.git(&["add", "."]);
        let output = repository.validate(&[]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{link}: {said}");
        assert!(said.contains("not_a_file"), "{link}: {said}");
    }
}

#[test]
fn a_replaced_object_is_judged_as_the_commit_has_it() {
    let repository = Repository::new();
    let path = format!("{OUTBOX}/a.yaml");
    let hash = |text: &str| {
        repository.write(&path, text);
        let output = repository
            .command("git")
            .args(["hash-object", "-w", &path])
            .output();
        String::from_utf8(output.expect("git can be run").stdout)
            .expect("an id")
            .trim()
            .to_owned()
    };
    let (good, bad) = (hash(NOTE), hash("not: a message\n"));
    repository.git(&["add", "."]);
    repository.git(&["replace", &bad, &good]);
    assert!(!repository.validate(&[]).status.success());
}
