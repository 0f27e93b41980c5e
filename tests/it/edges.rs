//! The edges between the rooms, and what a room may touch: a new edge fails here first and is
//! then either taken back or written into `docs/architecture.md`.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use settled_tests::{list, read, repository};

/// Who may depend on whom. Whatever a room takes is named, also what comes to it through another one.
const EDGES: [(&str, &[&str]); 14] = [
    ("message-schema", &[]),
    ("validate-message", &["message-schema"]),
    (
        "validate-message-cli",
        &["message-schema", "validate-message"],
    ),
    ("review", &["message-schema", "validate-message"]),
    ("spool", &[]),
    ("runner", &["message-schema", "spool"]),
    (
        "judgement",
        &["message-schema", "validate-message", "review", "spool"],
    ),
    (
        "workspace",
        &["message-schema", "review", "spool", "judgement", "runner"],
    ),
    (
        "mailbox",
        &[
            "message-schema",
            "validate-message",
            "review",
            "spool",
            "workspace",
        ],
    ),
    (
        "simulate",
        &[
            "message-schema",
            "validate-message",
            "review",
            "spool",
            "judgement",
            "workspace",
        ],
    ),
    (
        "inspect",
        &[
            "message-schema",
            "validate-message",
            "review",
            "spool",
            "workspace",
            "simulate",
            "mailbox",
        ],
    ),
    (
        "daemon",
        &[
            "message-schema",
            "validate-message",
            "review",
            "spool",
            "judgement",
            "workspace",
            "mailbox",
            "runner",
        ],
    ),
    (
        "pair",
        &[
            "message-schema",
            "review",
            "spool",
            "workspace",
            "mailbox",
            "runner",
            "daemon",
        ],
    ),
    (
        "settled",
        &[
            "message-schema",
            "validate-message",
            "review",
            "spool",
            "judgement",
            "workspace",
            "mailbox",
            "simulate",
            "inspect",
            "runner",
            "daemon",
            "pair",
        ],
    ),
];

/// These look at everything and nothing depends on them.
const ONLOOKERS: [&str; 4] = ["settled-tests", "settled-torture", "settled-walk", "xtask"];

/// The rooms that are arithmetic on values.
const PURE: [&str; 3] = ["message-schema", "validate-message", "review"];

/// The rooms whose `clippy.toml` bans the calls by which they could become impure.
const BANNING: [&str; 3] = ["message-schema", "validate-message", "review"];

/// Crates through which a pure room would reach a disk, a clock, a signal or a log.
const WORLDLY: [&str; 13] = [
    "cap-std",
    "crossbeam-channel",
    "fs2",
    "getrandom",
    "libc",
    "log",
    "nix",
    "notify",
    "rand",
    "rustix",
    "tempfile",
    "tokio",
    "tracing",
];

/// Above so many lines a file is worth a second look; nothing fails for it.
const LINES_WORTH_A_LOOK: usize = 600;

fn packages() -> Vec<Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args([
            "metadata",
            "--no-deps",
            "--offline",
            "--format-version",
            "1",
        ])
        .current_dir(repository())
        .output()
        .expect("cargo can be run");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    metadata["packages"]
        .as_array()
        .cloned()
        .expect("a list of packages")
}

/// The names a package depends on; those of its tests too unless only `shipped` ones are asked for.
fn dependencies(package: &Value, shipped: bool) -> Vec<String> {
    let dependencies = package["dependencies"]
        .as_array()
        .expect("a list of dependencies")
        .iter();
    let counts = |dependency: &&Value| !shipped || dependency["kind"] != "dev";
    let name = |dependency: &Value| {
        dependency["name"]
            .as_str()
            .expect("a dependency has a name")
            .to_owned()
    };
    dependencies.filter(counts).map(name).collect()
}

#[test]
fn the_rooms_depend_on_each_other_only_along_the_drawn_edges() {
    for package in packages() {
        let name = package["name"].as_str().expect("a package has a name");
        if ONLOOKERS.contains(&name) {
            continue;
        }
        let (_, allowed) = EDGES
            .iter()
            .find(|(room, _)| *room == name)
            .unwrap_or_else(|| {
                panic!("`{name}` is a new room: draw its edges here and in docs/architecture.md")
            });
        for dependency in dependencies(&package, false) {
            let is_room = EDGES.iter().any(|(room, _)| *room == dependency)
                || ONLOOKERS.contains(&&*dependency);
            // A crate's tests may ask for its own features.
            if is_room && dependency != name {
                assert!(
                    allowed.contains(&&*dependency),
                    "`{name}` must not depend on `{dependency}`"
                );
            }
        }
    }
}

#[test]
fn the_pure_rooms_depend_on_nothing_worldly() {
    for package in packages() {
        let name = package["name"].as_str().expect("a package has a name");
        if PURE.contains(&name) {
            let found = dependencies(&package, true);
            let worldly: Vec<_> = found
                .iter()
                .filter(|found| WORLDLY.contains(&found.as_str()))
                .collect();
            assert!(
                worldly.is_empty(),
                "`{name}` is pure and must not depend on {worldly:?}"
            );
        }
    }
}

#[test]
fn the_pure_rooms_ban_clock_files_and_environment() {
    for room in BANNING {
        let bans = read(repository().join("crates").join(room).join("clippy.toml"));
        for banned in [
            "std::fs::read",
            "std::fs::write",
            "std::time::SystemTime::now",
            "std::env::var",
        ] {
            let line = format!("{{ path = \"{banned}\", reason = \"");
            assert!(
                bans.contains(&line),
                "`{room}` does not ban {banned} with a reason"
            );
        }
    }
}

#[test]
fn every_package_takes_its_lints_and_versions_from_the_workspace() {
    for manifest in ["crates/*", "tests", "walk", "xtask"]
        .into_iter()
        .flat_map(manifests)
    {
        let text = read(&manifest);
        let manifest = manifest.display();
        assert!(
            text.contains("[lints]\nworkspace = true"),
            "{manifest} has lints of its own"
        );
        let versions = text.lines().filter(|line| line.contains("version = \""));
        assert_eq!(
            versions.collect::<Vec<_>>(),
            [""; 0],
            "{manifest} names a version of its own"
        );
    }
}

fn manifests(pattern: &str) -> Vec<PathBuf> {
    match pattern.strip_suffix("/*") {
        Some(directory) => list(repository().join(directory))
            .iter()
            .map(|member| member.join("Cargo.toml"))
            .collect(),
        None => vec![repository().join(pattern).join("Cargo.toml")],
    }
}

#[test]
fn every_file_says_first_what_it_answers_for() {
    let mut files = Vec::new();
    ["crates", "tests", "walk", "xtask"]
        .iter()
        .for_each(|directory| sources(&repository().join(directory), &mut files));
    assert!(
        files.len() > 80,
        "the search for source files found only {}",
        files.len()
    );
    for file in files {
        let text = read(&file);
        let name = file
            .strip_prefix(repository())
            .expect("a file of the repository")
            .display()
            .to_string();
        assert!(
            text.starts_with("//! "),
            "{name} does not open with what it answers for"
        );
        let lines = text.lines().count();
        if lines > LINES_WORTH_A_LOOK {
            eprintln!("warning: {name} has {lines} lines; is it one thought?");
        }
    }
}

fn sources(directory: &Path, files: &mut Vec<PathBuf>) {
    for path in list(directory) {
        if path.is_dir() {
            sources(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}
