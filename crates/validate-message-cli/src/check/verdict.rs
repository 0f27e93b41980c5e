//! The verdict on one file, a remark about it, and the totals of many.

use std::path::{Path, PathBuf};

use message_schema::Level;
use message_schema::line::counted;
use serde::Serialize;
use validate_message::{Source, Violation};

/// The result for one file.
pub(crate) struct Verdict {
    /// The file as given on the command line, escaped.
    pub(crate) file: String,
    pub(crate) outcome: Outcome,
    pub(crate) texts: Texts,
}

/// A remark about a file besides its violations.
pub(crate) enum Note {
    /// The file of that name could not be read, with the reason.
    Unreadable(String, String),
    /// The file of that name has more violations than are reported.
    Cut(String),
}

pub(crate) enum Outcome {
    /// The file was read and has these violations: errors refuse it, warnings do not.
    Judged {
        violations: Vec<Violation>,
        is_cut: bool,
    },
    /// The file could not be read; the text says why.
    Unreadable(String),
}

/// The judged bytes, for formats that show some of them.
#[derive(Default)]
pub(crate) struct Texts {
    pub(crate) message: Vec<u8>,
    /// The packet and where it was found.
    pub(crate) packet: Option<(Vec<u8>, PathBuf)>,
}

impl Verdict {
    /// Lists its errors and warnings.
    pub(crate) fn violations(&self) -> &[Violation] {
        match &self.outcome {
            Outcome::Judged { violations, .. } => violations,
            Outcome::Unreadable(_) => &[],
        }
    }

    /// Returns whether it has an error.
    pub(crate) fn is_refused(&self) -> bool {
        self.violations()
            .iter()
            .any(|violation| violation.level == Level::Error)
    }

    /// Returns whether there were too many violations to keep.
    pub(crate) fn is_cut(&self) -> bool {
        matches!(self.outcome, Outcome::Judged { is_cut: true, .. })
    }

    /// Returns why it could not be read, if so.
    pub(crate) fn unreadable(&self) -> Option<&str> {
        match &self.outcome {
            Outcome::Unreadable(why) => Some(why),
            Outcome::Judged { .. } => None,
        }
    }

    /// Returns the path of the file that a violation is in, relative to the current directory and not escaped.
    pub(crate) fn opened(&self, source: &Source, name: &str) -> String {
        match (source, &self.texts.packet) {
            (Source::Message, _) => name.strip_prefix("./").unwrap_or(name).to_owned(),
            (Source::Packet(_), Some((_, place))) => from_here(place),
            (Source::Packet(path), None) => path.clone(),
        }
    }

    /// Returns the totals of this file.
    pub(crate) fn totals(&self) -> Totals {
        let count = |level| {
            self.violations()
                .iter()
                .filter(|violation| violation.level == level)
                .count()
        };
        let is_unreadable = self.unreadable().is_some();
        let is_refused = self.is_refused();
        Totals {
            files: 1,
            valid: usize::from(!is_refused && !is_unreadable),
            refused: usize::from(is_refused),
            unreadable: usize::from(is_unreadable),
            errors: count(Level::Error),
            warnings: count(Level::Warning),
        }
    }
}

fn from_here(place: &Path) -> String {
    let here = std::env::current_dir().ok();
    let inside = here.and_then(|here| place.strip_prefix(here).ok());
    inside.unwrap_or(place).to_string_lossy().into_owned()
}

/// The totals of several verdicts.
#[derive(Clone, Copy, Default, Serialize)]
pub(crate) struct Totals {
    pub(crate) files: usize,
    pub(crate) valid: usize,
    pub(crate) refused: usize,
    pub(crate) unreadable: usize,
    pub(crate) errors: usize,
    pub(crate) warnings: usize,
}

impl Totals {
    /// Adds other totals.
    pub(crate) fn add(&mut self, other: Totals) {
        self.files += other.files;
        self.valid += other.valid;
        self.refused += other.refused;
        self.unreadable += other.unreadable;
        self.errors += other.errors;
        self.warnings += other.warnings;
    }
}

impl std::fmt::Display for Totals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}, {} refused: {}, {}",
            counted(self.files, "file", "files"),
            self.refused,
            counted(self.errors, "error", "errors"),
            counted(self.warnings, "warning", "warnings")
        )
    }
}
