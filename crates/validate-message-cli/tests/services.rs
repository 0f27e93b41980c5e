//! The services besides checking: the output of `new` validates; `fmt` and `--fix` change a file atomically and only
//! where they should; `explain`, `list-codes` and `schema` print what the library knows.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use message_schema::envelope::MessageType;
use message_schema::{Code, Schema};
use serde_json::Value;

/// A message with three slips that have only one possible fix, and one that has none.
const SLIPS: &str = "id: n-1\nfrom: claude\nto: codex\ntype: Notification\npriority: p3\n\
    created-at-utc: 2026-02-13T10:30:00Z\nsubject: Build\nbody: Green.\nturn: 5\n";

fn run(at: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_validate-message"));
    command
        .args(args)
        .current_dir(at)
        .output()
        .expect("the binary runs")
}

/// Returns the output of a run, stdout before stderr, and its exit status.
fn said(output: &Output) -> (String, Option<i32>) {
    let text = [output.stdout.as_slice(), &output.stderr].concat();
    (String::from_utf8(text).expect("text"), output.status.code())
}

fn printed(at: &Path, args: &[&str]) -> String {
    let output = run(at, args);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{args:?}: {}",
        said(&output).0
    );
    String::from_utf8(output.stdout).expect("text")
}

fn room() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

fn names(at: &Path) -> Vec<String> {
    let entries = fs::read_dir(at).expect("a directory");
    let mut names: Vec<String> = entries
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

#[test]
fn every_template_validates_as_it_stands_and_has_the_canonical_form() {
    let room = room();
    fs::write(
        room.path().join("p.yaml"),
        printed(room.path(), &["new", "findings_packet"]),
    )
    .expect("written");
    for kind in MessageType::all() {
        let text = printed(room.path(), &["new", kind.as_str()]);
        assert!(text.starts_with(
            "# yaml-language-server: $schema=../../../schemas/envelope.schema.json\n"
        ));
        fs::write(room.path().join("m.yaml"), &text).expect("written");
        for args in [
            &["m.yaml"][..],
            &["--packet", "p.yaml", "m.yaml"],
            &["fmt", "--check", "m.yaml"],
        ] {
            let (said, end) = said(&run(room.path(), args));
            assert_eq!(end, Some(0), "{kind} {args:?}: {said}\n{text}");
            // Without `--packet` there is no packet to check, and the output says so.
            let warned = said.contains("1 warning") && !said.contains("packet_unchecked");
            assert!(!warned, "{kind}: {said}");
        }
    }
}

#[test]
fn flags_fill_a_template_and_each_id_is_new() {
    let room = room();
    let flags = [
        "new",
        "review_request",
        "--from",
        "claude",
        "--to",
        "codex",
        "--pr",
        "0086",
        "--priority",
        "P0",
        "--subject",
        "it's {pr}: \"#1\"",
        "--branch",
        "no",
        "--commit",
        "1234567e8",
        "--schema",
        "x.json",
    ];
    let text = printed(room.path(), &flags);
    fs::write(room.path().join("m.yaml"), &text).expect("written");
    let message = message_schema::parse(text.as_bytes()).expect("readable");
    let field = |name: &str| {
        message
            .root()
            .field_text(name)
            .map(str::to_owned)
            .unwrap_or_default()
    };
    assert_eq!(
        (field("from"), field("to"), field("related_pr")),
        ("claude".into(), "codex".into(), "0086".into())
    );
    assert_eq!(
        (field("priority"), field("subject")),
        ("P0".into(), "it's {pr}: \"#1\"".into())
    );
    assert!(
        text.starts_with("# yaml-language-server: $schema=x.json\n")
            && text.contains("  branch: 'no'\n"),
        "{text}"
    );
    printed(room.path(), &["m.yaml"]);
    let ids = [text, printed(room.path(), &flags)].map(|text| {
        text.lines()
            .find(|line| line.starts_with("id: "))
            .map(str::to_owned)
    });
    assert!(ids[0].is_some() && ids[0] != ids[1], "{ids:?}");
    for (flag, wrong) in [
        ("--from", "settled!"),
        ("--pr", "x"),
        ("--round", "0"),
        ("--subject", "a\nb"),
        ("--packet", "../x"),
    ] {
        assert_eq!(
            run(room.path(), &["new", "review_request", flag, wrong])
                .status
                .code(),
            Some(2),
            "{flag} {wrong}"
        );
    }
    assert_eq!(run(room.path(), &["new", "letter"]).status.code(), Some(2));
    for wrong in [
        ["--from", "claude", "--to", "claude"],
        ["--from", "settled", "--to", "claude"],
    ] {
        let output = run(room.path(), &[&["new", "question"][..], &wrong].concat());
        assert_eq!(
            (output.status.code(), output.stdout.len()),
            (Some(2), 0),
            "{wrong:?}"
        );
    }
}

#[test]
fn fix_mends_checks_again_and_prints_what_remains() {
    let room = room();
    let file = room.path().join("m.yaml");
    fs::write(&file, SLIPS).expect("written");
    let (diff, end) = said(&run(room.path(), &["--fix", "--diff", "m.yaml"]));
    assert_eq!(end, Some(1), "{diff}");
    assert!(
        diff.starts_with("--- a/m.yaml\n+++ b/m.yaml\n@@ ") && diff.contains("\n-priority: p3\n"),
        "{diff}"
    );
    assert_eq!(
        fs::read_to_string(&file).expect("read"),
        SLIPS,
        "a diff changes nothing"
    );

    let output = run(room.path(), &["--fix", "m.yaml"]);
    let stdout = String::from_utf8(output.stdout.clone()).expect("text");
    assert!(
        stdout.starts_with("m.yaml:9:1: envelope_field_unknown: "),
        "{}",
        said(&output).0
    );
    assert_eq!(
        (stdout.matches("m.yaml:").count(), output.status.code()),
        (1, Some(1))
    );
    let told = String::from_utf8(output.stderr).expect("text");
    assert!(
        told.starts_with(
            "m.yaml:6:1: fixed: name: created-at-utc: `created-at-utc` is now `created_at_utc`\n"
        ),
        "{told}"
    );
    assert_eq!(told.matches(": fixed: ").count(), 3, "{told}");
    let fixed = fs::read_to_string(&file).expect("read");
    assert_eq!(
        fixed,
        SLIPS
            .replace("Notif", "notif")
            .replace("p3", "P3")
            .replace("created-at-utc", "created_at_utc")
    );
    assert_eq!(names(room.path()), ["m.yaml"], "nothing is left beside it");
    assert_eq!(run(room.path(), &["--fix", "-"]).status.code(), Some(2));
    assert_eq!(
        run(room.path(), &["--diff", "m.yaml"]).status.code(),
        Some(2)
    );
}

#[test]
fn a_signed_message_keeps_its_bytes() {
    let room = room();
    let file = room.path().join("m.yaml");
    let signed = SLIPS.to_owned() + "auth: \"eyJzaWduYXR1cmVzIjpbXX0\"\n";
    fs::write(&file, &signed).expect("written");
    let (text, end) = said(&run(room.path(), &["--fix", "m.yaml"]));
    assert!(
        text.contains("m.yaml: is signed and left unchanged\n") && end == Some(1),
        "{text}"
    );
    printed(room.path(), &["fmt", "m.yaml"]);
    printed(room.path(), &["fmt", "--check", "m.yaml"]);
    assert_eq!(fs::read_to_string(&file).expect("read"), signed);
}

#[cfg(unix)]
#[test]
fn a_file_that_is_changed_keeps_its_mode_its_link_and_its_owner() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    let room = room();
    let file = room.path().join("m.yaml");
    fs::write(&file, SLIPS).expect("written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("set");
    // Only root can give a file away; for others the owner stays the same.
    let _ = std::os::unix::fs::chown(&file, Some(65534), Some(65534));
    let before = fs::metadata(&file).expect("there");
    symlink("m.yaml", room.path().join("link.yaml")).expect("linked");
    run(room.path(), &["--fix", "link.yaml"]);
    let after = fs::metadata(&file).expect("there");
    assert_ne!(
        before.ino(),
        after.ino(),
        "it was replaced, not written into"
    );
    assert_eq!(
        (before.mode(), before.uid(), before.gid()),
        (after.mode(), after.uid(), after.gid())
    );
    assert!(
        fs::symlink_metadata(room.path().join("link.yaml"))
            .expect("there")
            .is_symlink()
    );
}

#[test]
fn fmt_says_what_it_would_do_and_does_it_once() {
    let room = room();
    let file = room.path().join("m.yaml");
    let text = "# head\nto: codex\nfrom: \"claude\" # me\nid: n-1\nbody: Hm\n";
    let form = "# head\nid: n-1\nfrom: claude  # me\nto: codex\nbody: |-\n  Hm\n";
    fs::write(&file, text).expect("written");
    fs::write(room.path().join("bad.yaml"), "id: [\n").expect("written");
    fs::write(room.path().join("m.json"), "{\"to\": \"a\", \"id\": \"b\"}").expect("written");
    assert_eq!(
        said(&run(room.path(), &["fmt", "--check", "m.yaml"])),
        ("m.yaml: would be changed\n".to_owned(), Some(1))
    );
    let (diff, end) = said(&run(room.path(), &["fmt", "--diff", "m.yaml"]));
    assert!(
        diff.contains("\n+from: claude  # me\n") && end == Some(1),
        "{diff}"
    );
    assert_eq!(fs::read_to_string(&file).expect("read"), text);
    assert_eq!(
        said(&run(room.path(), &["fmt", "m.yaml"])),
        ("m.yaml: changed\n".to_owned(), Some(0))
    );
    assert_eq!(fs::read_to_string(&file).expect("read"), form);
    assert_eq!(
        said(&run(room.path(), &["fmt", "m.yaml", "m.json"])),
        (String::new(), Some(0))
    );
    let (text, end) = said(&run(room.path(), &["fmt", "bad.yaml"]));
    assert!(
        text.starts_with("bad.yaml:1:5: yaml_syntax: ") && end == Some(1),
        "{text}"
    );
    assert_eq!(
        run(room.path(), &["fmt", "absent.yaml"]).status.code(),
        Some(3)
    );
    assert_eq!(names(room.path()), ["bad.yaml", "m.json", "m.yaml"]);
}

#[test]
fn codes_are_listed_and_explained() {
    let room = room();
    let listed: Value =
        serde_json::from_str(&printed(room.path(), &["list-codes", "--format", "json"]))
            .expect("one document");
    let codes: Vec<&str> = listed["codes"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|code| code["code"].as_str())
        .collect();
    assert_eq!(
        codes,
        Code::ALL
            .iter()
            .map(|code| code.as_str())
            .collect::<Vec<_>>()
    );
    let table = printed(room.path(), &["list-codes"]);
    for (code, finder) in [("packet_missing", "file"), ("no_open_request", "daemon")] {
        let mut lines = table.lines().map(|line| line.split_whitespace());
        let found = lines.find_map(|mut words| (words.next() == Some(code)).then(|| words.next()));
        assert_eq!(found, Some(Some(finder)), "{code}: {table}");
    }
    let page = printed(room.path(), &["explain", "nit_invalid"]);
    assert!(
        page.starts_with("nit_invalid: ")
            && page.contains("\n# failing\n")
            && page.contains("\n# fixed\n"),
        "{page}"
    );
    let page: Value = serde_json::from_str(&printed(
        room.path(),
        &["explain", "nit_invalid", "--format", "json"],
    ))
    .expect("one document");
    assert_eq!(
        (&page["code"], &page["schema_version"]),
        (&"nit_invalid".into(), &1.into())
    );
    let near = said(&run(room.path(), &["explain", "nit_invald"]));
    assert_eq!(
        near,
        (
            "there is no code \"nit_invald\"\n  try: validate-message explain nit_invalid\n"
                .to_owned(),
            Some(3)
        )
    );
}

#[test]
fn schemas_are_printed_in_both_drafts() {
    let room = room();
    for &schema in Schema::ALL {
        assert_eq!(
            printed(room.path(), &["schema", schema.name()]),
            schema.source()
        );
        assert_eq!(
            printed(room.path(), &["schema", schema.name(), "--draft", "07"]),
            schema.draft07()
        );
    }
    assert_eq!(
        printed(room.path(), &["schema", "question"]),
        Schema::Envelope.source()
    );
    let near = said(&run(room.path(), &["schema", "review-lgtm"]));
    assert_eq!(
        near,
        (
            "there is no schema for \"review-lgtm\"\n  try: validate-message schema review_lgtm\n"
                .to_owned(),
            Some(3)
        )
    );
}
