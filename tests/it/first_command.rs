//! The README's first command builds the daemon from a clean clone while a newcomer waits, so the size of that build is
//! bounded. `.ci/run` bounds its processor time by that of the validator.

use std::collections::BTreeMap;

use settled_tests::{binaries, read, repository};

/// The most crates in the program, including ours. The newest of others is `signal-hook`, with which a write beyond a
/// limit on the size of files fails instead of ending the daemon; the newest of ours has code that was in `daemon`.
const CRATES_MAX: usize = 128;

fn crates() -> BTreeMap<String, Vec<String>> {
    let output = binaries::cargo()
        .args(["tree", "--locked", "--offline", "--package", "settled"])
        .args([
            "--edges",
            "normal,build",
            "--prefix",
            "none",
            "--format",
            "{p}",
        ])
        .current_dir(repository())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{output:?}");
    let mut crates: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let mut words = line.split_whitespace();
        if let (Some(name), Some(version)) = (words.next(), words.next()) {
            let versions = crates.entry(name.to_owned()).or_default();
            if !versions.iter().any(|known| known == version) {
                versions.push(version.to_owned());
            }
        }
    }
    crates
}

#[test]
fn the_first_command_builds_a_bounded_number_of_crates_and_none_in_two_versions() {
    let crates = crates();
    assert!(crates.contains_key("spool"), "{crates:?}");
    let count: usize = crates.values().map(Vec::len).sum();
    assert!(
        count <= CRATES_MAX,
        "`settled` is built of {count} crates, at most {CRATES_MAX} are wanted: {:?}",
        crates.keys().collect::<Vec<_>>()
    );
    let twice: Vec<_> = crates.iter().filter(|(_, all)| all.len() > 1).collect();
    assert!(twice.is_empty(), "in several versions: {twice:?}");
}

#[test]
fn the_first_command_and_ci_build_the_same() {
    let readme = read(repository().join("README.md"));
    assert!(readme.contains("\ncargo run -p settled -- up "), "{readme}");
    let ci = read(repository().join(".ci/run"));
    assert!(ci.contains("cargo build -p settled"), "{ci}");
}
