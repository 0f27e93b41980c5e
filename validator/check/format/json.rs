//! One JSON document for all files.

use message_schema::ReportedViolation;
use serde::Serialize;

use crate::check::verdict::{Outcome, Totals, Verdict};

/// The version of the document.
const JSON_VERSION: u32 = 1;

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

/// Gives the document.
pub(crate) fn print(verdicts: &[Verdict]) -> String {
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
