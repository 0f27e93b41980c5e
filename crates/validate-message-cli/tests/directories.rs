//! Directories and names: the messages that each means, and the order of the output.

use std::fs;
use std::path::Path;

use crate::files::{FEEDBACK, NOTE, assert_line, run, stdout};

fn tree(files: &[&str]) -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a directory");
    for file in files {
        let path = root.path().join(file);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, NOTE.replace("P3", "P9")).expect("written");
    }
    root
}

/// Returns the files with violations, in the order of the output.
fn told(root: &Path, args: &[&str]) -> Vec<String> {
    let printed = stdout(&run(root, args, ""));
    let name = |line: &str| line.split(":5:11: ").next().unwrap_or_default().to_owned();
    printed
        .lines()
        .filter(|line| !line.starts_with(' '))
        .map(name)
        .collect()
}

#[test]
fn in_a_workspace_mailboxes_hold_the_messages() {
    let root = tree(&[
        "agents/a/outbox/1.yaml",
        "agents/a/inbox/archive/2.yml",
        "agents/b/sent/3.json",
        "agents/b/archive/4.yaml",
        "agents/b/dead_letter/5.yaml",
        "agents/b/card.yaml",
        "packets/findings/6.yaml",
        "docker-compose.yaml",
        "agents/a/outbox/.7.yaml",
        "agents/a/outbox/8.yaml.tmp",
        ".settled/agents/a/outbox/9.yaml",
    ]);
    let all = [
        "agents/a/inbox/archive/2.yml",
        "agents/a/outbox/1.yaml",
        "agents/b/archive/4.yaml",
        "agents/b/sent/3.json",
    ];
    assert_eq!(told(root.path(), &["."]), all);
    assert_eq!(told(root.path(), &["agents"]), all);
    assert_eq!(
        told(root.path(), &["agents/b/sent", "agents/a/outbox"]),
        [all[3], all[1]]
    );
    assert_eq!(
        told(&root.path().join("agents/a/outbox"), &["."]),
        ["1.yaml"]
    );
    // A file that is named itself is checked in any directory and under any name.
    assert_eq!(
        told(
            root.path(),
            &["agents/b/dead_letter/5.yaml", "packets/findings"]
        ),
        ["agents/b/dead_letter/5.yaml", "packets/findings/6.yaml"]
    );
    assert_eq!(
        told(root.path(), &["agents/a/outbox/8.yaml.tmp"]),
        ["agents/a/outbox/8.yaml.tmp"]
    );
}

#[test]
fn without_mailboxes_every_file_that_is_called_so_is_a_message() {
    let root = tree(&[
        "drafts/b.yaml",
        "drafts/a/c.json",
        "drafts/a.txt",
        "drafts/packets/p.yaml",
    ]);
    assert_eq!(
        told(root.path(), &["drafts"]),
        ["drafts/a/c.json", "drafts/b.yaml"]
    );
    fs::create_dir(root.path().join("none")).expect("made");
    let output = run(root.path(), &["none"], "");
    assert_eq!(
        (output.status.code(), output.stderr),
        (
            Some(0),
            b"0 files, 0 refused: 0 errors, 0 warnings\n".to_vec()
        )
    );
}

#[test]
fn a_directory_that_is_called_like_a_message_ends_in_a_separator() {
    let root = tree(&["old.yaml/a.yaml"]);
    assert_eq!(told(root.path(), &["old.yaml/"]), ["old.yaml/a.yaml"]);
    assert_eq!(told(root.path(), &["."]), ["old.yaml/a.yaml"]);
    let output = run(root.path(), &["old.yaml"], "");
    let errors = String::from_utf8_lossy(&output.stderr);
    let why = "old.yaml: cannot be read: it is a directory; a `/` after its name checks";
    assert!(errors.starts_with(why), "{errors}");
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn ignored_files_are_left_out_unless_they_are_named() {
    let root = tree(&["d/a.yaml", "d/b.yaml", "d/e/c.yaml", "d/e/f.yaml"]);
    fs::write(root.path().join(".gitignore"), "b.yaml\n").expect("written");
    fs::write(root.path().join("d/.ignore"), "/e/c.yaml\n").expect("written");
    assert_eq!(told(root.path(), &["d"]), ["d/a.yaml", "d/e/f.yaml"]);
    assert_eq!(told(root.path(), &["d/b.yaml"]), ["d/b.yaml"]);
}

#[test]
fn thousands_are_told_in_the_order_of_the_arguments_each_time() {
    let names: Vec<String> = (0..2000)
        .map(|number| format!("{:04}.yaml", (number * 7919) % 2000))
        .collect();
    let root = tree(&names.iter().map(String::as_str).collect::<Vec<&str>>());
    let args: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(told(root.path(), &args), names);
    let mut sorted = names.clone();
    sorted.sort();
    assert_eq!(told(root.path(), &["."]), sorted);
}

#[test]
fn standard_input_is_taken_for_the_file_it_is_called() {
    let root = tree(&["agents/codex/inbox/x.yaml", "packets/p"]);
    let name = "agents/codex/outbox/f.yaml";
    assert_line(
        &run(root.path(), &["--stdin-filename", name, "-"], FEEDBACK),
        1,
        "agents/codex/outbox/f.yaml:9:20: packet_missing: ",
    );
    assert_line(
        &run(root.path(), &["--stdin-filename", name], FEEDBACK),
        1,
        "agents/codex/outbox/f.yaml:9:20: packet_missing: ",
    );
    // The daemon's own messages are valid only where it delivers.
    let message = NOTE.replace("from: claude", "from: settled");
    assert_eq!(
        run(
            root.path(),
            &["--stdin-filename", "agents/codex/inbox/n.yaml", "-"],
            &message
        )
        .status
        .code(),
        Some(0)
    );
    assert_eq!(
        run(
            root.path(),
            &["--stdin-filename", "agents/codex/outbox/n.yaml", "-"],
            &message
        )
        .status
        .code(),
        Some(1)
    );
}
