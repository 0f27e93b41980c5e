//! One JSON document for all files.

use message_schema::ReportedViolation;
use serde::Serialize;

use crate::check::verdict::{Totals, Verdict};

/// The version of the document.
const JSON_VERSION: u32 = 1;

#[derive(Serialize)]
struct FileVerdict<'v> {
    file: &'v str,
    valid: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    unreadable: Option<&'v str>,
    violations: Vec<ReportedViolation>,
    /// True if there were too many violations to list.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
}

/// Returns the document's beginning, up to the first file.
pub(crate) fn head() -> String {
    format!("{{\n  \"schema_version\": {JSON_VERSION},\n  \"files\": [")
}

/// Returns a file's element.
pub(crate) fn one(verdict: &Verdict) -> String {
    let file = FileVerdict {
        file: &verdict.file,
        valid: !verdict.is_refused() && verdict.unreadable().is_none(),
        unreadable: verdict.unreadable(),
        violations: verdict
            .violations()
            .iter()
            .map(|v| v.reported(&verdict.file))
            .collect(),
        cut: verdict.is_cut(),
    };
    indented(&file, 4)
}

/// Returns the document's end, after the last file.
pub(crate) fn tail(totals: Totals) -> String {
    let end = if totals.files == 0 { "]" } else { "\n  ]" };
    format!(
        "{end},\n  \"totals\": {}\n}}\n",
        indented(&totals, 2).trim_start()
    )
}

/// Returns a value on lines of its own, indented for that depth of a document.
pub(super) fn indented(value: &impl Serialize, depth: usize) -> String {
    let text = serde_json::to_string_pretty(value).expect("strings and numbers are JSON");
    // No string contains a raw line feed: JSON escapes it.
    text.split('\n')
        .map(|line| format!("\n{:depth$}{line}", ""))
        .collect()
}
