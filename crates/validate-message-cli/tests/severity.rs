//! `validate-message.toml`: the weights by file, and errors in the file itself.

use std::fs;
use std::path::Path;

use crate::files::{NOTE, assert_line, lay, run, stdout};

const CONFIG: &str = "\
[severity]
envelope_field_unknown = \"warning\"

[[path]]
glob = \"agents/*/archive/**\"
severity = { \"envelope_*\" = \"off\", yaml_syntax = \"warning\" }

[[path]]
glob = \"agents/b/**\"
severity = { envelope_field_invalid = \"error\" }
";

fn workspace() -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a directory");
    let write = |path: &str, text: &str| lay(root.path(), path, text);
    let wrong = NOTE.replace("P3", "P9") + "odd: 1\n";
    for file in [
        "agents/a/outbox/n.yaml",
        "agents/a/archive/n.yaml",
        "agents/b/archive/deep/n.yaml",
    ] {
        write(file, &wrong);
    }
    write("agents/a/archive/syntax.yaml", "a: [\n");
    write("validate-message.toml", CONFIG);
    root
}

fn codes(root: &Path, args: &[&str]) -> Vec<String> {
    let printed = stdout(&run(root, args, ""));
    let code = |line: &str| line.split(": ").nth(1).unwrap_or_default().to_owned();
    printed
        .lines()
        .filter(|line| !line.starts_with(' '))
        .map(code)
        .collect()
}

#[test]
fn later_tables_are_heard_first_and_each_file_has_its_own() {
    let root = workspace();
    let both = ["envelope_field_invalid", "envelope_field_unknown (warning)"];
    assert_eq!(codes(root.path(), &["agents/a/outbox/n.yaml"]), both);
    assert_eq!(codes(root.path(), &["agents/a/archive/n.yaml"]), [""; 0]);
    assert_eq!(
        codes(root.path(), &["agents/b/archive/deep/n.yaml"]),
        ["envelope_field_invalid"]
    );
    assert_eq!(
        codes(&root.path().join("agents/b"), &["archive"]),
        ["envelope_field_invalid"]
    );
    assert_eq!(
        codes(root.path(), &["--isolated", "agents/a/archive/n.yaml"]),
        ["envelope_field_invalid", "envelope_field_unknown"]
    );
}

#[test]
fn what_is_lowered_refuses_nothing_here() {
    let root = workspace();
    let output = run(root.path(), &["agents/a/archive"], "");
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "2 files, 0 refused: 0 errors, 1 warning\n"
    );
    assert_eq!(
        run(root.path(), &["--isolated", "agents/a/archive"], "")
            .status
            .code(),
        Some(1)
    );
}

#[test]
fn the_nearest_file_holds_or_the_one_that_is_named() {
    let root = workspace();
    let file = "agents/a/archive/n.yaml";
    fs::write(
        root.path().join("agents/a/validate-message.toml"),
        "[severity]\nenvelope_field_unknown = \"off\"\n",
    )
    .expect("written");
    assert_eq!(codes(root.path(), &[file]), ["envelope_field_invalid"]);
    assert_eq!(
        codes(root.path(), &["--config", "validate-message.toml", file]),
        [""; 0]
    );
    // The index has no directory of its own: names resolve against this one.
    let stdin = ["--stdin-filename", file, "-"];
    assert_eq!(
        stdout(&run(
            root.path(),
            &stdin,
            &NOTE.replace("subject", "odd: 1\nsubject")
        )),
        ""
    );
}

#[test]
fn a_wrong_file_is_wrong_usage_with_its_place() {
    let root = workspace();
    fs::write(
        root.path().join("validate-message.toml"),
        "[severity]\nbody_field_unknwon = \"off\"\n",
    )
    .expect("written");
    let output = run(root.path(), &["agents/a/outbox/n.yaml"], "");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        (output.status.code(), stdout(&output)),
        (Some(2), String::new()),
        "{said}"
    );
    assert!(said.contains("validate-message.toml:2:1: `body_field_unknwon` is not a code or the start of one, did you mean `body_field_unknown`?"), "{said}");
    assert_eq!(
        run(
            root.path(),
            &["--config", "nope.toml", "agents/a/outbox/n.yaml"],
            ""
        )
        .status
        .code(),
        Some(2)
    );
    assert_line(
        &run(root.path(), &["--isolated", "agents/a/outbox/n.yaml"], ""),
        1,
        "envelope_field_invalid",
    );
}
