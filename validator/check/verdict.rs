//! What came of each file, and what it adds up to.

use message_schema::Level;
use serde::Serialize;
use validate_message::{Violation, Violations};

/// What came of one file.
pub(crate) struct Verdict {
    /// The file as it was named.
    pub(crate) file: String,
    pub(crate) outcome: Outcome,
}

pub(crate) enum Outcome {
    /// Correct, perhaps with warnings.
    Valid(Vec<Violation>),
    /// At least one error.
    Refused(Violations),
    /// The file could not be read; the text says why.
    Unreadable(String),
}

impl Verdict {
    /// Says whether it has an error.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self.outcome, Outcome::Refused(_))
    }

    /// Lists its errors and warnings.
    pub(crate) fn violations(&self) -> &[Violation] {
        match &self.outcome {
            Outcome::Valid(warnings) => warnings,
            Outcome::Refused(violations) => violations.as_slice(),
            Outcome::Unreadable(_) => &[],
        }
    }

    /// Says whether there were too many violations to keep.
    pub(crate) fn is_cut(&self) -> bool {
        matches!(&self.outcome, Outcome::Refused(violations) if violations.is_cut())
    }

    /// Says why it could not be read.
    pub(crate) fn unreadable(&self) -> Option<&str> {
        match &self.outcome {
            Outcome::Unreadable(why) => Some(why),
            Outcome::Valid(_) | Outcome::Refused(_) => None,
        }
    }
}

/// All verdicts in numbers.
#[derive(Serialize)]
pub(crate) struct Totals {
    pub(crate) files: usize,
    pub(crate) valid: usize,
    pub(crate) refused: usize,
    pub(crate) unreadable: usize,
    pub(crate) errors: usize,
    pub(crate) warnings: usize,
}

impl Totals {
    pub(crate) fn of(verdicts: &[Verdict]) -> Self {
        let count = |level| {
            verdicts.iter().flat_map(Verdict::violations).filter(|violation| violation.level == level).count()
        };
        let refused = verdicts.iter().filter(|verdict| verdict.is_refused()).count();
        let unreadable = verdicts.iter().filter(|verdict| verdict.unreadable().is_some()).count();
        Self {
            files: verdicts.len(),
            valid: verdicts.len() - refused - unreadable,
            refused,
            unreadable,
            errors: count(Level::Error),
            warnings: count(Level::Warning),
        }
    }
}

/// What could not be read, and one line that counts.
pub(crate) fn summary(verdicts: &[Verdict]) -> String {
    let lost: String = verdicts
        .iter()
        .filter_map(|verdict| {
            verdict.unreadable().map(|why| format!("{}: cannot be read: {why}\n", verdict.file))
        })
        .collect();
    let totals = Totals::of(verdicts);
    format!(
        "{lost}{}, {} refused: {}, {}\n",
        counted(totals.files, "file"),
        totals.refused,
        counted(totals.errors, "error"),
        counted(totals.warnings, "warning")
    )
}

fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
