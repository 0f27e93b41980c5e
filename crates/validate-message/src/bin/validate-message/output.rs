//! Verdicts out: as lines for people, as one JSON document for programs.

use message_schema::{Level, ReportedViolation};
use serde::Serialize;
use validate_message::{Violation, Violations};

/// The version of the JSON document.
const JSON_VERSION: u32 = 1;

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
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self.outcome, Outcome::Refused(_))
    }

    fn violations(&self) -> &[Violation] {
        match &self.outcome {
            Outcome::Valid(warnings) => warnings,
            Outcome::Refused(violations) => violations.as_slice(),
            Outcome::Unreadable(_) => &[],
        }
    }

    fn is_cut(&self) -> bool {
        matches!(&self.outcome, Outcome::Refused(violations) if violations.is_cut())
    }

    fn unreadable(&self) -> Option<&str> {
        match &self.outcome {
            Outcome::Unreadable(why) => Some(why),
            Outcome::Valid(_) | Outcome::Refused(_) => None,
        }
    }
}

pub(crate) fn text(verdicts: &[Verdict]) -> String {
    let mut out = String::new();
    for verdict in verdicts {
        for violation in verdict.violations() {
            out.push_str(&violation.told(&verdict.file));
            out.push('\n');
        }
        if verdict.is_cut() {
            out.push_str(&format!("{}: there are more violations, these are the first\n", verdict.file));
        }
    }
    out
}

#[derive(Serialize)]
struct Document<'v> {
    schema_version: u32,
    files: Vec<FileVerdict<'v>>,
    totals: Totals,
}

#[derive(Serialize)]
struct FileVerdict<'v> {
    file: &'v str,
    valid: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    unreadable: Option<&'v str>,
    violations: Vec<ReportedViolation>,
    /// Whether there were too many violations to list.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
}

#[derive(Serialize)]
struct Totals {
    files: usize,
    valid: usize,
    refused: usize,
    unreadable: usize,
    errors: usize,
    warnings: usize,
}

impl Totals {
    fn of(verdicts: &[Verdict]) -> Self {
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

pub(crate) fn json(verdicts: &[Verdict]) -> String {
    let files = verdicts
        .iter()
        .map(|verdict| FileVerdict {
            file: &verdict.file,
            valid: matches!(verdict.outcome, Outcome::Valid(_)),
            unreadable: verdict.unreadable(),
            violations: verdict.violations().iter().map(|v| v.reported(&verdict.file)).collect(),
            cut: verdict.is_cut(),
        })
        .collect();
    let document = Document { schema_version: JSON_VERSION, files, totals: Totals::of(verdicts) };
    let text = serde_json::to_string_pretty(&document).expect("strings and numbers are JSON");
    text + "\n"
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
