//! JUnit XML: a suite for each file, a failed case for each error.

use std::fmt::Write as _;

use message_schema::Level;
use message_schema::line::is_escaped;
use validate_message::Violation;

use crate::check::verdict::Verdict;

/// Returns the document's beginning.
pub(crate) fn head() -> String {
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"validate-message\">\n"
        .to_owned()
}

/// Returns a file's suite. Warnings fail nothing, so they go to the suite's output.
pub(crate) fn one(verdict: &Verdict) -> String {
    let of_level = |level| {
        verdict
            .violations()
            .iter()
            .filter(move |violation| violation.level == level)
    };
    let mut cases: Vec<String> = of_level(Level::Error)
        .map(|error| failed(error, verdict))
        .collect();
    let failures = cases.len();
    if let Some(why) = verdict.unreadable() {
        let text = xml(&format!("cannot be read: {why}"));
        cases.push(case(
            verdict,
            "read",
            &format!("<error type=\"unreadable\" message=\"{text}\"/>"),
        ));
    } else if cases.is_empty() {
        cases.push(case(verdict, "valid", ""));
    }
    let output: String = of_level(Level::Warning)
        .map(|warning| warning.to_text(&verdict.file) + "\n")
        .collect();
    let output = output + &super::cut::cut(verdict);
    let mut suite = format!(
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{failures}\" errors=\"{}\" skipped=\"0\">\n{}",
        xml(&verdict.file),
        cases.len(),
        usize::from(verdict.unreadable().is_some()),
        cases.concat()
    );
    if !output.is_empty() {
        // Writing into a string cannot fail.
        let _ = writeln!(suite, "    <system-out>{}</system-out>", xml(&output));
    }
    suite + "  </testsuite>\n"
}

/// Returns the document's end.
pub(crate) fn tail() -> String {
    "</testsuites>\n".to_owned()
}

fn failed(error: &Violation, verdict: &Verdict) -> String {
    let place = error
        .place
        .map(|place| format!(" at {place}"))
        .unwrap_or_default();
    let failure = format!(
        "<failure type=\"{}\" message=\"{}\">{}</failure>",
        error.code,
        xml(&error.message),
        xml(&error.to_text(&verdict.file))
    );
    case(verdict, &format!("{}{place}", error.code), &failure)
}

fn case(verdict: &Verdict, name: &str, inside: &str) -> String {
    let head = format!(
        "    <testcase classname=\"{}\" name=\"{}\"",
        xml(&verdict.file),
        xml(name)
    );
    if inside.is_empty() {
        head + "/>\n"
    } else {
        format!("{head}>{inside}</testcase>\n")
    }
}

/// Returns a text that is valid in an element or an attribute. XML cannot express most control characters, not even by
/// number.
fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\u{fffe}' | '\u{ffff}' => out.extend(c.escape_default()),
            c if is_escaped(c) => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}
