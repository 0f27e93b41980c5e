//! The formats: the output of each for the same files, in a pipe and on a terminal. The expected output is in
//! `golden/`; `UPDATE=1` rewrites it; read the diff.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::files::{FEEDBACK, NOTE, PACKET, lay, run, stdout};

const FILES: [&str; 6] = [
    "good.yaml",
    "agents/codex/outbox/f.yaml",
    "odd, 100%: \u{1b}[31m.yaml",
    "long.yaml",
    "large.yaml",
    "nope.yaml",
];

/// Files with everything that a format has to get right: a violation in the nested body and in a packet, a warning, one
/// without a place, an unreadable file, a line longer than a terminal is wide, and texts that control the program that
/// shows them.
fn workspace() -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a directory");
    let write = |path: &str, text: &str| lay(root.path(), path, text);
    write("good.yaml", NOTE);
    write(
        "agents/codex/outbox/f.yaml",
        &(FEEDBACK.replace("round: 1", "round: none") + "  extra: 1\n"),
    );
    write(
        "packets/findings/r1.yaml",
        &PACKET.replace("status: open", "status: opne"),
    );
    let steering = "\"<b>[a](http://b)\\e[2J\\u202e ::error::%0A ]]> {0}\"";
    write(
        "odd, 100%: \u{1b}[31m.yaml",
        &NOTE.replace(
            "P3",
            &format!("{steering} # \u{202e}x\t{}", "y".repeat(300)),
        ),
    );
    let subject = "k".repeat(150);
    let line = format!(
        "{{\"id\": \"n-1\", \"from\": \"claude\", \"to\": \"codex\", \"type\": \"notification\", \"created_at_utc\": \
         \"2026-02-13T10:30:00Z\", \"subject\": \"{subject}\", \"priority\": \"P7\", \"body\": \"{subject}\"}}\n"
    );
    write("long.yaml", &line);
    write("large.yaml", &"x".repeat(300_000));
    root
}

fn in_pipe(root: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_validate-message"));
    command
        .args(args)
        .args(FILES)
        .current_dir(root)
        .env("COLUMNS", "100");
    command
        .env_remove("VALIDATE_MESSAGE_FORMAT")
        .env_remove("NO_COLOR")
        .stdin(Stdio::null());
    command.output().expect("the binary runs")
}

/// Returns the output of a run whose stdout is a terminal.
fn on_terminal(root: &Path, args: &[&str], variables: &[(&str, &str)]) -> String {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let near = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&near).expect("granted");
    unlockpt(&near).expect("unlocked");
    let name = ptsname(&near, Vec::new())
        .expect("a name")
        .into_string()
        .expect("text");
    let far = fs::File::options()
        .read(true)
        .write(true)
        .open(name)
        .expect("the other end");
    let mut command = Command::new(env!("CARGO_BIN_EXE_validate-message"));
    command
        .args(args)
        .args(FILES)
        .current_dir(root)
        .env("COLUMNS", "100")
        .env("TERM", "xterm");
    command
        .env_remove("VALIDATE_MESSAGE_FORMAT")
        .env_remove("NO_COLOR")
        .envs(variables.iter().copied());
    let mut child = command
        .stdin(Stdio::null())
        .stdout(far)
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    // Dropping the command closes our end of the terminal, so that reading ends with the child.
    drop(command);
    let (mut bytes, mut near) = (Vec::new(), fs::File::from(near));
    let _ = near.read_to_end(&mut bytes);
    assert_eq!(child.wait().expect("it ends").code(), Some(3));
    String::from_utf8(bytes)
        .expect("text")
        .replace("\r\n", "\n")
}

#[track_caller]
fn assert_golden(name: &str, printed: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("crates/validate-message-cli/tests/golden")
        .join(name);
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, printed).expect("written");
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        golden == printed,
        "{name}: it printed\n{printed}\nand not\n{golden}"
    );
}

#[test]
fn each_format_prints_its_golden_in_a_pipe() {
    let root = workspace();
    for format in [
        "full", "concise", "agent", "json", "sarif", "github", "junit",
    ] {
        let output = in_pipe(root.path(), &["--format", format]);
        assert_eq!(output.status.code(), Some(3), "{format}");
        assert_golden(&format!("{format}.txt"), &stdout(&output));
        let said = String::from_utf8(output.stderr).expect("text");
        let summary = "nope.yaml: cannot be read: No such file or directory (os error 2)\n6 files, 4 refused: 5 errors, 1 warning\n";
        assert_eq!(said, summary, "{format}");
    }
}

#[test]
fn nothing_a_file_says_steers_the_terminal_or_the_line() {
    let root = workspace();
    for format in [
        "full", "concise", "agent", "json", "sarif", "github", "junit",
    ] {
        let printed = stdout(&in_pipe(root.path(), &["--format", format]));
        let trap = printed
            .chars()
            .find(|c| *c != '\n' && (c.is_control() || matches!(c, '\u{202e}' | '\u{2066}')));
        assert_eq!(trap, None, "{format}: {printed}");
    }
}

#[test]
fn a_terminal_gets_full_and_colours_and_a_pipe_neither() {
    let root = workspace();
    let coloured = on_terminal(root.path(), &[], &[]);
    assert_golden("terminal.txt", &coloured);
    let pipe = stdout(&in_pipe(root.path(), &[]));
    assert_eq!(
        pipe,
        stdout(&in_pipe(root.path(), &["--format", "concise"]))
    );
    let full = stdout(&in_pipe(root.path(), &["--format", "full"]));
    assert_ne!(coloured, full);
    assert_eq!(on_terminal(root.path(), &[], &[("NO_COLOR", "1")]), full);
    assert_eq!(on_terminal(root.path(), &[], &[("NO_COLOR", "")]), coloured);
    assert_eq!(on_terminal(root.path(), &["--color", "never"], &[]), full);
    assert_eq!(on_terminal(root.path(), &[], &[("TERM", "dumb")]), full);
    assert_eq!(
        on_terminal(root.path(), &["--color", "always"], &[("NO_COLOR", "1")]),
        coloured
    );
    assert_eq!(
        stdout(&in_pipe(
            root.path(),
            &["--format", "full", "--color", "always"]
        )),
        coloured
    );
}

#[test]
fn the_environment_chooses_the_format_and_a_flag_chooses_again() {
    let root = workspace();
    let agent = stdout(&in_pipe(root.path(), &["--format", "agent"]));
    let chosen = [("VALIDATE_MESSAGE_FORMAT", "agent")];
    assert_eq!(on_terminal(root.path(), &[], &chosen), agent);
    let concise = stdout(&in_pipe(root.path(), &["--format", "concise"]));
    assert_eq!(
        on_terminal(root.path(), &["--format", "concise"], &chosen),
        concise
    );
    let validate = |args: &[&str], format: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_validate-message"));
        command
            .args(args)
            .current_dir(root.path())
            .env("VALIDATE_MESSAGE_FORMAT", format);
        command.output().expect("the binary runs").status.code()
    };
    assert_eq!(validate(&["good.yaml"], "nonsense"), Some(2));
    assert_eq!(validate(&["list-codes"], "agent"), Some(0));
}

#[test]
fn sarif_is_what_its_schema_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("crates/validate-message-cli/tests/data/sarif-schema-2.1.0.json");
    let mut schema: Value =
        serde_json::from_str(&fs::read_to_string(path).expect("the schema")).expect("JSON");
    // The standard's pattern for a language has an unbalanced bracket; we name no language.
    for definition in ["run", "toolComponent"] {
        let language = &mut schema["definitions"][definition]["properties"]["language"];
        let pattern = language
            .as_object_mut()
            .and_then(|language| language.remove("pattern"));
        assert!(
            pattern.is_some_and(|pattern| pattern.as_str().is_some_and(|it| it.ends_with("]?$")))
        );
    }
    let schema = jsonschema::options()
        .should_validate_formats(true)
        .build(&schema)
        .expect("a schema");
    let root = workspace();
    for files in [&FILES[..], &FILES[..1], &[]] {
        let mut args = vec!["--format", "sarif", "--stdin-filename", "x.yaml"];
        args.extend(files);
        let document: Value =
            serde_json::from_str(&stdout(&run(root.path(), &args, NOTE))).expect("one document");
        let wrong: Vec<String> = schema
            .iter_errors(&document)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert_eq!(wrong, Vec::<String>::new(), "{document:#}");
        for result in document["runs"][0]["results"].as_array().expect("results") {
            let index = result["ruleIndex"]
                .as_u64()
                .and_then(|index| usize::try_from(index).ok())
                .expect("an index");
            assert_eq!(
                result["ruleId"],
                document["runs"][0]["tool"]["driver"]["rules"][index]["id"]
            );
        }
    }
    // The schema does refuse.
    assert!(
        !schema.is_valid(&serde_json::json!({ "version": "2.1.0", "runs": [{ "results": [] }] }))
    );
}

#[test]
fn a_reader_that_goes_away_costs_neither_the_total_nor_the_exit_status() {
    let root = tempfile::tempdir().expect("a directory");
    for number in 0..3000 {
        fs::write(
            root.path().join(format!("{number}.yaml")),
            NOTE.replace("P3", "P9"),
        )
        .expect("written");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_validate-message"));
    command
        .arg(".")
        .current_dir(root.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut first = [0; 10];
    child
        .stdout
        .take()
        .expect("piped")
        .read_exact(&mut first)
        .expect("it prints");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "3000 files, 3000 refused: 3000 errors, 0 warnings\n"
    );
}

#[test]
fn what_cannot_be_printed_is_said_and_ends_with_3() {
    let Ok(full) = fs::OpenOptions::new().write(true).open("/dev/full") else {
        return;
    };
    let root = tempfile::tempdir().expect("a directory");
    for args in [
        &["--format", "json", "."][..],
        &["list-codes"],
        &["schema", "envelope"],
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_validate-message"));
        let full = full.try_clone().expect("a second handle");
        let output = command
            .args(args)
            .current_dir(root.path())
            .stdout(full)
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(3), "{args:?}: {said}");
        assert!(
            said.contains("cannot write to standard output"),
            "{args:?}: {said}"
        );
    }
}
