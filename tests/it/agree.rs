//! The validator and the daemon agree on a file: the daemon's report contains, word for word, what `validate-message`
//! finds in the corpus.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use settled_tests::mailroom::{Mailroom, said, yaml};
use settled_tests::{binaries, golden, list, names, repository, seed, write};

fn validate(args: &[&str]) -> Output {
    let mut program = Command::new(binaries::validate_message());
    program
        .args(args)
        .env("COLUMNS", "100")
        .current_dir(repository())
        .output()
        .expect("validate-message can be run")
}

fn copy_all(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory");
    for source in list(from) {
        let target = to.join(source.file_name().expect("an entry has a name"));
        if source.is_dir() {
            copy_all(&source, &target);
        } else {
            std::fs::copy(&source, target).expect("a copy");
        }
    }
}

/// The violations of each file by name, with positions and sentences.
fn found_by_validator(mailroom: &Mailroom, outbox: &Path) -> BTreeMap<String, Value> {
    let root = mailroom.root().to_string_lossy().into_owned();
    let files: Vec<String> = list(outbox)
        .iter()
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let output = validate(&[&["--format", "json", "--root", &root][..], &files].concat());
    let document: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(&output)));
    let of_file = |file: &Value| {
        let path = Path::new(file["file"].as_str().expect("a file has a name"));
        let name = path
            .file_name()
            .expect("a file has a name")
            .to_string_lossy()
            .into_owned();
        (name, named_plainly(&file["violations"], path))
    };
    document["files"]
        .as_array()
        .expect("a list of files")
        .iter()
        .map(of_file)
        .collect()
}

/// The daemon knows a file by its name, the validator by the path it was given.
fn named_plainly(violations: &Value, path: &Path) -> Value {
    let mut violations = violations.clone();
    for violation in violations.as_array_mut().into_iter().flatten() {
        if violation["file"].as_str() == path.to_str() {
            violation["file"] = path.file_name().expect("a name").to_string_lossy().into();
        }
    }
    violations
}

/// Drops `sender_mismatch`: only the daemon knows whose outbox a file was in.
fn but_the_senders(violations: &Value) -> Value {
    let is_of_file = |violation: &&Value| violation["code"] != "sender_mismatch";
    violations
        .as_array()
        .expect("a list of violations")
        .iter()
        .filter(is_of_file)
        .cloned()
        .collect()
}

#[test]
fn whatever_the_validator_finds_stands_in_the_daemons_report() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    copy_all(
        &repository().join("packets/findings"),
        &mailroom.root().join("packets/findings"),
    );
    for example in list(repository().join("packets/invalid")) {
        let name = example
            .file_name()
            .expect("an example has a name")
            .to_string_lossy()
            .into_owned();
        let bytes = std::fs::read(&example).expect("an example can be read");
        let from_codex = String::from_utf8_lossy(&bytes).contains("\nfrom: codex");
        let owner = if from_codex { "codex" } else { "claude" };
        if !name.ends_with(".expected") {
            std::fs::write(mailroom.agent(owner, "outbox").join(name), bytes)
                .expect("an outbox can be written");
        }
    }
    let found: Vec<(&str, BTreeMap<String, Value>)> = ["claude", "codex"]
        .map(|agent| {
            (
                agent,
                found_by_validator(&mailroom, &mailroom.agent(agent, "outbox")),
            )
        })
        .into();
    assert_eq!(mailroom.once().status.code(), Some(7));

    let mut compared = 0;
    for (agent, files) in found {
        for (file, violations) in files {
            let stem = file
                .rsplit_once('.')
                .map_or(file.as_str(), |(stem, _)| stem);
            let report = mailroom
                .agent(agent, "dead_letter")
                .join(format!("{stem}.report.yaml"));
            assert!(
                report.exists(),
                "the daemon did not refuse {file}: {violations:#}"
            );
            assert_eq!(
                but_the_senders(&yaml(&report)["violations"]),
                violations,
                "{file}"
            );
            compared += 1;
        }
    }
    assert!(compared >= 60, "only {compared} files were compared");
}

#[test]
fn every_example_that_is_called_valid_is_valid() {
    let in_folder = |folder: &'static str| {
        let named = names(repository().join(folder)).into_iter();
        named
            .filter(|name| name.ends_with(".yaml") || name.ends_with(".json"))
            .map(move |name| format!("{folder}/{name}"))
    };
    let files: Vec<String> = in_folder("packets/valid")
        .chain(in_folder("packets/valid/inbox"))
        .collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let output = validate(&[&["--root", "."][..], &files].concat());
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn the_validator_ends_with_the_codes_it_names() {
    let directory = settled_tests::scratch();
    let path = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
    let [request, ..] = seed::review();
    write(path("good.yaml"), &request.text);
    write(
        path("bad.yaml"),
        &request.text.replace("to: codex", "to: claude"),
    );
    let cases = [
        (vec![path("good.yaml")], 0),
        (vec![path("bad.yaml")], 1),
        (vec![path("good.yaml"), path("bad.yaml")], 1),
        (
            vec!["--format".to_owned(), "xml".to_owned(), path("good.yaml")],
            2,
        ),
        (vec![path("absent.yaml")], 3),
    ];
    for (args, code) in cases {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let output = validate(&args);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{args:?}: {}",
            said(&output)
        );
    }
}

#[test]
fn the_validator_explains_itself() {
    let output = validate(&["--help"]);
    assert!(output.status.success(), "{}", said(&output));
    golden::check(
        "help-validate-message.txt",
        &String::from_utf8_lossy(&output.stdout),
    );
}

#[test]
fn the_validator_names_the_place() {
    let directory = settled_tests::scratch();
    let path = directory.path().join("bad.yaml");
    let [request, ..] = seed::review();
    write(&path, &request.text.replace("to: codex", "to: ../codex"));
    let output = validate(&[&path.to_string_lossy()]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.starts_with(&format!("{}:3:5: envelope_field_invalid:", path.display())),
        "{text}"
    );
}
