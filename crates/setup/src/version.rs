//! The installed version of a program and the one with which its set-up was tried: another version may have other
//! options.

use std::path::Path;
use std::time::{Duration, Instant};

use runner::program;
use serde::Serialize;

use crate::section::KnownProgram;

/// The time a program has to print its version: those on Node.js need seconds on a busy machine.
const ANSWER_MAX: Duration = Duration::from_secs(20);

/// The two versions of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Versions {
    /// The version that the program prints; `None` if it prints none in time.
    pub installed: Option<String>,
    /// The version with which its set-up was tried.
    pub tried: String,
}

impl Versions {
    /// Asks the program for its version, which reads no code and calls no model.
    pub fn of(known: KnownProgram, program: &Path) -> Self {
        Self {
            installed: installed(program, ANSWER_MAX),
            tried: known.tried(),
        }
    }

    /// Returns a note for a person if the versions differ.
    pub fn note(&self, known: KnownProgram) -> Option<String> {
        let (title, tried) = (known.title(), &self.tried);
        match &self.installed {
            Some(installed) if installed == tried => None,
            Some(installed) => Some(format!(
                "{title} {installed} is installed, and this set-up was tried with {tried}: its options may differ"
            )),
            None => Some(format!(
                "{title} did not tell its version; this set-up was tried with {tried}"
            )),
        }
    }
}

/// The version that a program prints with `--version` within `answer_max`.
fn installed(program: &Path, answer_max: Duration) -> Option<String> {
    let asked = program::ask_version(program)?;
    version(&program::version_by(asked, Instant::now() + answer_max)?)
}

/// The first word that is a version: numbers with dots, and the suffix of a pre-release.
fn version(text: &str) -> Option<String> {
    let words = text.split(|c: char| c.is_whitespace() || "(),".contains(c));
    let mut words = words.map(|word| word.strip_prefix('v').unwrap_or(word));
    let is_version = |word: &&str| {
        let numbers = word.split(['-', '+']).next().unwrap_or_default();
        numbers.contains('.')
            && numbers
                .split('.')
                .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    words.find(is_version).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_from_the_words_of_each_program() {
        for (said, read) in [
            ("2.1.330 (Claude Code)\n", Some("2.1.330")),
            ("codex-cli 0.169.0\n", Some("0.169.0")),
            ("0.61.0\n", Some("0.61.0")),
            ("v1.18.33-beta.2\n", Some("1.18.33-beta.2")),
            ("it (1.2), of 2026\n", Some("1.2")),
            ("it.x 1.2.x 1..2 .1 7 v1.10\n", Some("1.10")),
            ("usage: it [--help]\n", None),
            ("", None),
        ] {
            assert_eq!(version(said).as_deref(), read, "{said:?}");
        }
    }

    #[test]
    fn a_version_is_waited_for_and_a_program_that_says_nothing_holds_nobody_up() {
        let telling = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/telling");
        let told = installed(Path::new(telling), ANSWER_MAX);
        assert_eq!(told.as_deref(), Some("1.2.3"));
        let versions = Versions::of(KnownProgram::Codex, Path::new(telling));
        assert_eq!(
            (versions.installed, versions.tried),
            (told, KnownProgram::Codex.tried())
        );
        assert_eq!(installed(Path::new("/nowhere/program"), ANSWER_MAX), None);
        let silent = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/silent");
        assert_eq!(
            installed(Path::new(silent), Duration::from_millis(200)),
            None
        );
    }

    #[test]
    fn a_person_is_told_of_another_version_and_of_none() {
        let note = |installed: Option<&str>| {
            Versions {
                installed: installed.map(str::to_owned),
                tried: "0.169.0".to_owned(),
            }
            .note(KnownProgram::Codex)
        };
        assert_eq!(note(Some("0.169.0")), None);
        assert_eq!(
            note(Some("0.170.0")).as_deref(),
            Some(
                "Codex 0.170.0 is installed, and this set-up was tried with 0.169.0: its options may differ"
            )
        );
        assert!(note(None).is_some_and(|note| note.contains("0.169.0")));
    }
}
