//! The binary's contract: exit status, streams, where it looks for packets, what it never opens.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::Value;

pub(crate) const FEEDBACK: &str = "id: f-1\nfrom: codex\nto: claude\ntype: review_feedback\npriority: P1\n\
    created_at_utc: 2026-02-13T10:30:00Z\nsubject: Round 1\nbody: |\n  findings_packet: packets/findings/r1.yaml\n  \
    round: 1\n  blocking_count: 1\n";
pub(crate) const NOTE: &str = "id: n-1\nfrom: claude\nto: codex\ntype: notification\npriority: P3\n\
    created_at_utc: 2026-02-13T10:30:00Z\nsubject: Build\nbody: Green.\n";
pub(crate) const PACKET: &str = "findings:\n  - {id: F-1, severity: P1, status: open}\n";

/// Writes a file below a directory, creating the directories above it.
pub(crate) fn lay(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().expect("a parent")).expect("made");
    fs::write(path, text).expect("written");
}

pub(crate) fn run(at: &Path, args: &[&str], stdin: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_validate-message"))
        .args(args)
        .current_dir(at)
        .env_remove("VALIDATE_MESSAGE_FORMAT")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    // A binary that rejects its arguments does not read its input.
    let _ = child
        .stdin
        .take()
        .expect("piped")
        .write_all(stdin.as_bytes());
    child.wait_with_output().expect("it ends")
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

/// A workspace with one feedback in an outbox, and nothing in `packets/findings`.
fn workspace() -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a directory");
    fs::create_dir_all(root.path().join("agents/codex/outbox")).expect("made");
    fs::create_dir_all(root.path().join("packets/findings")).expect("made");
    fs::write(root.path().join("agents/codex/outbox/f.yaml"), FEEDBACK).expect("written");
    root
}

pub(crate) fn assert_line(output: &Output, status: i32, line: &str) {
    let printed = stdout(output);
    assert_eq!(
        output.status.code(),
        Some(status),
        "{printed}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        printed.lines().any(|l| l.contains(line)),
        "{line:?} is not in\n{printed}"
    );
}

#[test]
fn the_packet_is_found_in_the_workspace_around_the_message() {
    let root = workspace();
    let outbox = root.path().join("agents/codex/outbox");
    assert_line(
        &run(&outbox, &["f.yaml"], ""),
        1,
        "f.yaml:9:20: packet_missing: ",
    );
    fs::write(
        root.path().join("packets/findings/r1.yaml"),
        "findings: []\n",
    )
    .expect("written");
    assert_line(
        &run(&outbox, &["f.yaml"], ""),
        1,
        "f.yaml:11:19: blocking_count_mismatch: ",
    );
    fs::write(root.path().join("packets/findings/r1.yaml"), PACKET).expect("written");
    let output = run(&outbox, &["f.yaml"], "");
    assert_eq!(
        (output.status.code(), stdout(&output)),
        (Some(0), String::new())
    );
}

#[test]
fn without_a_workspace_a_warning_says_that_the_packet_is_not_checked() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("f.yaml"), FEEDBACK).expect("written");
    assert_line(
        &run(dir.path(), &["f.yaml"], ""),
        0,
        "f.yaml:9:20: packet_unchecked (warning): the packet `packets/findings/r1.yaml` is not checked",
    );
    fs::write(dir.path().join("p.yaml"), "findings: []\n").expect("written");
    assert_line(
        &run(dir.path(), &["--packet", "p.yaml", "f.yaml"], ""),
        1,
        "blocking_count_mismatch",
    );
    let output = run(dir.path(), &["--packet", "none.yaml", "f.yaml"], "");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{errors}");
    assert!(
        errors.contains("its packet none.yaml: No such file"),
        "{errors}"
    );
}

#[test]
fn a_packet_is_checked_by_itself_wherever_it_is_no_mail() {
    let root = workspace();
    let check = |args: &[&str], stdin: &str| run(root.path(), args, stdin);
    lay(root.path(), "packets/findings/good.yaml", PACKET);
    lay(root.path(), "packets/findings/bad.yaml", "finding: []\n");
    lay(root.path(), "packets/findings/cut.yaml", "findings: [\n");
    lay(root.path(), "packets/briefs/86.json", "{\"pr\": \"86\"}\n");
    lay(
        root.path(),
        "draft.yaml",
        "findings: [{id: F-1, status: open}]\n",
    );
    assert_eq!(
        check(&["packets/findings/good.yaml"], "").status.code(),
        Some(0)
    );
    assert_line(
        &check(&["packets/findings/bad.yaml"], ""),
        1,
        "packets/findings/bad.yaml:1:1: packet_field_invalid: `findings` is missing",
    );
    assert_line(
        &check(&["packets/findings/cut.yaml"], ""),
        1,
        "packets/findings/cut.yaml:1:11: packet_syntax",
    );
    // Elsewhere its content identifies it.
    assert_line(
        &check(&["draft.yaml"], ""),
        1,
        "draft.yaml:1:12: finding_invalid",
    );
    assert_line(
        &check(&["-"], "findings: [{}]\n"),
        1,
        "-:1:12: finding_invalid",
    );
    assert_eq!(check(&["-"], PACKET).status.code(), Some(0));
    // The directory means the findings packets in it, without the daemon's own files beside them.
    let output = check(&["packets"], "");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.starts_with("3 files, 2 refused"),
        "{}{said}",
        stdout(&output)
    );
    // In a mailbox it is a broken message.
    lay(root.path(), "agents/codex/outbox/p.yaml", PACKET);
    assert_line(
        &check(&["agents/codex/outbox/p.yaml"], ""),
        1,
        "p.yaml:1:1: envelope_field_missing: this is a findings packet, not a message",
    );
}

#[cfg(unix)]
#[test]
fn no_symlink_is_followed_on_the_way_to_a_packet() {
    let root = workspace();
    let outside = tempfile::tempdir().expect("a directory");
    fs::write(outside.path().join("r1.yaml"), PACKET).expect("written");
    let link = root.path().join("packets/findings/r1.yaml");
    std::os::unix::fs::symlink(outside.path().join("r1.yaml"), &link).expect("linked");
    let refused = "packet_unsafe: the packet `packets/findings/r1.yaml` may not be read: `r1.yaml` is a symlink";
    assert_line(
        &run(root.path(), &["agents/codex/outbox/f.yaml"], ""),
        1,
        refused,
    );

    fs::remove_file(&link).expect("removed");
    fs::remove_dir(root.path().join("packets/findings")).expect("removed");
    std::os::unix::fs::symlink(outside.path(), root.path().join("packets/findings"))
        .expect("linked");
    assert_line(
        &run(root.path(), &["agents/codex/outbox/f.yaml"], ""),
        1,
        "may not be read: `findings` is a symlink",
    );
}

#[test]
fn files_past_the_limit_are_refused_without_being_read_whole() {
    let root = workspace();
    let large = "x: ".to_owned() + &"y".repeat(256 * 1024);
    fs::write(root.path().join("large.yaml"), &large).expect("written");
    assert_line(
        &run(root.path(), &["large.yaml"], ""),
        1,
        "large.yaml: too_large: it is larger than 262144 bytes",
    );
    fs::write(root.path().join("packets/findings/r1.yaml"), &large).expect("written");
    let refused = "f.yaml:9:20: packet_syntax: the packet `packets/findings/r1.yaml` is too large";
    assert_line(
        &run(root.path(), &["agents/codex/outbox/f.yaml"], ""),
        1,
        refused,
    );
}

#[test]
fn a_message_may_come_from_standard_input() {
    let root = workspace();
    assert_eq!(run(root.path(), &["-"], NOTE).status.code(), Some(0));
    assert_line(
        &run(root.path(), &["-"], &NOTE.replace("P3", "P9")),
        1,
        "-:5:11: envelope_field_invalid: ",
    );
    assert_line(
        &run(root.path(), &["--root", ".", "-"], FEEDBACK),
        1,
        "-:9:20: packet_missing: ",
    );
}

#[test]
fn sarif_says_that_a_file_has_more_violations_than_it_lists() {
    let directory = tempfile::tempdir().expect("a directory");
    let finding = "  - {id: F-1, severity: P9, status: open}\n";
    let packet = "packets/findings/p.yaml";
    let text = format!("findings:\n{}", finding.repeat(300));
    lay(directory.path(), packet, &text);
    let output = run(directory.path(), &["--format", "sarif", packet], "");
    let told: Value = serde_json::from_str(&stdout(&output)).expect("one document");
    let run = &told["runs"][0];
    assert_eq!(run["results"].as_array().map(Vec::len), Some(200));
    let notes = &run["invocations"][0]["toolExecutionNotifications"];
    let more = format!("{packet}: there are more violations than this output shows");
    assert_eq!(notes[0]["message"]["text"], more);
    assert_eq!(notes.as_array().map(Vec::len), Some(1));
}

#[test]
fn a_workspace_has_agents_and_packets_and_a_directory_with_one_of_them_is_in_it() {
    let root = workspace();
    fs::write(root.path().join("packets/findings/r1.yaml"), PACKET).expect("written");
    for name in ["agents", "packets"] {
        fs::create_dir_all(root.path().join("drafts").join(name)).expect("made");
        lay(root.path(), "drafts/f.yaml", FEEDBACK);
        let output = run(root.path(), &["drafts/f.yaml"], "");
        assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
        fs::remove_dir_all(root.path().join("drafts")).expect("made");
    }
}

#[test]
fn nobody_is_waited_for_to_write_to_a_pipe_without_a_name() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(writer);
    let output = Command::new(env!("CARGO_BIN_EXE_validate-message"))
        .arg("/dev/stdin")
        .env_remove("VALIDATE_MESSAGE_FORMAT")
        .stdin(reader)
        .output()
        .expect("the binary runs");
    assert_eq!(
        stdout(&output),
        "/dev/stdin: empty: there is nothing in it\n"
    );
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_pipe_is_read_to_its_end_and_one_without_a_writer_is_not_waited_for() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    let pipe = at.join("pipe");
    let mode = Mode::RUSR | Mode::WUSR;
    mknodat(CWD, &pipe, FileType::Fifo, mode, 0).expect("a pipe");
    for args in [&["pipe"][..], &["fmt", "pipe"]] {
        let output = run(at, args, "");
        assert_eq!(output.status.code(), Some(3), "{args:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("a FIFO that nobody has open"), "{said}");
    }
    let writer = std::thread::spawn(move || {
        let mut pipe = fs::OpenOptions::new().write(true).open(pipe)?;
        let (head, rest) = NOTE.split_at(40);
        pipe.write_all(head.as_bytes())?;
        std::thread::sleep(std::time::Duration::from_millis(1_500));
        pipe.write_all(rest.as_bytes())
    });
    assert_eq!(run(at, &["pipe"], "").status.code(), Some(0));
    writer.join().expect("a writer").expect("a reader");
    assert_eq!(run(at, &["/dev/stdin"], NOTE).status.code(), Some(0));
    assert_eq!(run(at, &["/dev/null"], "").status.code(), Some(1), "empty");
}

/// The search for the smallest difference took over a minute of a processor here; now it ends within the 10 s that the shell
/// allows.
#[test]
fn a_diff_of_a_large_file_that_changes_in_every_line_is_shown() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    fs::write(at.join("m.yaml"), "\r\n".repeat(100_000)).expect("written");
    let output = Command::new("sh")
        .args(["-c", "ulimit -t 10; exec \"$0\" --fix --diff m.yaml"])
        .arg(env!("CARGO_BIN_EXE_validate-message"))
        .current_dir(at)
        .output()
        .expect("a shell");
    let told = stdout(&output);
    assert_eq!(told.lines().filter(|line| *line == "+").count(), 100_000);
}

#[test]
fn the_daemon_s_messages_are_correct_where_it_delivers_them_and_nowhere_else() {
    let root = workspace();
    let message = NOTE.replace("from: claude", "from: settled");
    assert_ne!(message, NOTE);
    for place in ["inbox", "inbox/archive", "archive", "outbox", "sent"] {
        let directory = root.path().join("agents/codex").join(place);
        fs::create_dir_all(&directory).expect("a directory");
        fs::write(directory.join("n.yaml"), &message).expect("written");
        let is_delivery = place.contains("inbox") || place == "archive";
        let status = Some(if is_delivery { 0 } else { 1 });
        let named = format!("agents/codex/{place}/n.yaml");
        for (at, name) in [
            (root.path(), named.as_str()),
            (&directory, "n.yaml"),
            (&directory, "./n.yaml"),
        ] {
            let output = run(at, &[name], "");
            let told = stdout(&output);
            assert_eq!(output.status.code(), status, "{place}, {name}: {told}");
        }
    }
    assert_eq!(run(root.path(), &["-"], &message).status.code(), Some(0));
    let handoff = message.replace("type: notification", "type: handoff");
    assert_eq!(run(root.path(), &["-"], &handoff).status.code(), Some(0));
    let question = message.replace("type: notification", "type: question");
    assert_line(
        &run(root.path(), &["-"], &question),
        1,
        "-:2:7: envelope_field_invalid: `from` is `settled`",
    );
}

#[test]
fn wrong_usage_is_2_and_what_cannot_be_read_is_3() {
    let root = workspace();
    assert_eq!(run(root.path(), &[], "").status.code(), Some(2));
    assert_eq!(
        run(root.path(), &["--format", "xml", "-"], NOTE)
            .status
            .code(),
        Some(2)
    );
    assert_eq!(
        run(root.path(), &["--root", ".", "--packet", "p", "-"], NOTE)
            .status
            .code(),
        Some(2)
    );
    let output = run(
        root.path(),
        &["nope.yaml", "-", "agents/codex/outbox/f.yaml/x"],
        NOTE,
    );
    assert_eq!(
        (output.status.code(), stdout(&output)),
        (Some(3), String::new())
    );
    let told = String::from_utf8(output.stderr).expect("text");
    assert!(
        told.contains("nope.yaml: cannot be read: ") && told.contains("f.yaml/x: cannot be read: "),
        "{told}"
    );
    assert_eq!(run(root.path(), &["--help"], "").status.code(), Some(0));
}

#[test]
fn json_is_one_document_with_versions_places_and_totals() {
    let root = workspace();
    fs::write(root.path().join("n.yaml"), NOTE).expect("written");
    let files = [
        "--format",
        "json",
        "n.yaml",
        "agents/codex/outbox/f.yaml",
        "nope.yaml",
    ];
    let document: Value =
        serde_json::from_str(&stdout(&run(root.path(), &files, ""))).expect("one document");
    assert_eq!(document["schema_version"], 1);
    assert_eq!(
        document["files"][0],
        serde_json::json!({ "file": "n.yaml", "valid": true, "violations": [] })
    );
    let violation = &document["files"][1]["violations"][0];
    assert_eq!(violation["code"], "packet_missing");
    assert_eq!(
        (&violation["line"], &violation["column"]),
        (&Value::from(9), &Value::from(20))
    );
    assert_eq!(
        (&violation["level"], &violation["field"]),
        (&"error".into(), &"body.findings_packet".into())
    );
    assert_eq!(document["files"][2]["valid"], false);
    assert!(document["files"][2]["unreadable"].is_string());
    let totals = serde_json::json!({ "files": 3, "valid": 1, "refused": 1, "unreadable": 1, "errors": 1, "warnings": 0 });
    assert_eq!(document["totals"], totals);
}

#[test]
fn the_summary_goes_to_stderr() {
    let root = workspace();
    let output = run(root.path(), &["-"], &NOTE.replace("P3", "P9"));
    assert_eq!(
        String::from_utf8(output.stderr).expect("text"),
        "1 file, 1 refused: 1 error, 0 warnings\n"
    );
}
