//! The corpus in `packets/`: examples for people, and for every rule a message that it accepts or refuses. The binary's
//! output for `x.yaml` is beside it in `x.expected`.
//!
//! `BLESS=1 cargo test -p validate-message-cli corpus` writes the output; read it afterwards.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use message_schema::Code;
use message_schema::Finder;

/// Codes whose messages are too large for a repository or occur only outside a workspace; `files.rs` makes them.
const MADE_BY_TESTS: &[Code] = &[Code::TooLarge, Code::PacketUnchecked];

/// Codes of the daemon that the file already shows, as warnings.
const FORESEEN: &[Code] = &[Code::QualityGateViolation];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .canonicalize()
        .expect("the workspace")
}

fn messages(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join(folder)).expect("the corpus");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "yaml" || extension == "json")
        })
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    paths
}

/// The binary's output for one message, and its exit status.
fn judged(message: &Path) -> (String, Option<i32>) {
    let relative = message.strip_prefix(root()).expect("below the root");
    let output = Command::new(env!("CARGO_BIN_EXE_validate-message"))
        .args(["--format", "concise", "--isolated", "--root", "."])
        .arg(relative)
        .current_dir(root())
        .output()
        .expect("the binary runs");
    (
        String::from_utf8(output.stdout).expect("text"),
        output.status.code(),
    )
}

fn expected(message: &Path, printed: &str) -> String {
    let path = message.with_extension("expected");
    if std::env::var_os("BLESS").is_some() && !printed.is_empty() {
        std::fs::write(&path, printed).expect("written");
    }
    std::fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn valid_messages_are_accepted_and_only_warned_about() {
    // The daemon's messages are valid only where it delivers.
    for message in [messages("packets/valid"), messages("packets/valid/inbox")].concat() {
        let (printed, status) = judged(&message);
        assert_eq!(
            printed,
            expected(&message, &printed),
            "{}",
            message.display()
        );
        assert_eq!(status, Some(0), "{}: {printed}", message.display());
        assert_eq!(
            printed.is_empty(),
            !message
                .file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("warned_")),
            "{}",
            message.display()
        );
    }
}

#[test]
fn invalid_messages_get_exactly_their_report() {
    for message in messages("packets/invalid") {
        let (printed, status) = judged(&message);
        assert_eq!(
            printed,
            expected(&message, &printed),
            "{}",
            message.display()
        );
        assert_eq!(status, Some(1), "{}: {printed}", message.display());
        let name = message
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let is_named = Code::ALL.iter().any(|code| {
            name.starts_with(&format!("{code}_")) && printed.contains(&format!(": {code}: "))
        });
        assert!(
            is_named,
            "{name} does not begin with a code it is refused for:\n{printed}"
        );
    }
}

#[test]
fn every_code_of_the_validator_has_an_example() {
    let mut printed = String::new();
    for message in messages("packets/invalid")
        .iter()
        .chain(&messages("packets/valid"))
    {
        printed.push_str(
            &std::fs::read_to_string(message.with_extension("expected")).unwrap_or_default(),
        );
    }
    let shown: BTreeSet<Code> = Code::ALL
        .iter()
        .copied()
        .filter(|code| {
            printed.contains(&format!(": {code}: "))
                || printed.contains(&format!(": {code} (warning): "))
        })
        .collect();
    for &code in Code::ALL {
        let is_found = code.finder() == Finder::Validator && !MADE_BY_TESTS.contains(&code);
        let is_ours = is_found || FORESEEN.contains(&code);
        assert_eq!(shown.contains(&code), is_ours, "{code}");
    }
}

#[test]
fn there_are_two_hundred_small_examples() {
    let all = [messages("packets/valid"), messages("packets/invalid")].concat();
    assert!(all.len() >= 200, "{}", all.len());
    for message in all {
        let size = std::fs::metadata(&message).expect("a file").len();
        let is_long_on_purpose = message.to_string_lossy().contains("_long.");
        assert!(
            size < 2048 || is_long_on_purpose,
            "{} has {size} bytes",
            message.display()
        );
    }
}
