//! One short line for each violation, including its fix, for readers that pay by the word.

use std::fmt::Write as _;

use message_schema::Level;
use message_schema::line::escaped;
use validate_message::{Source, Violation};

use crate::check::verdict::Verdict;

/// Returns a file's lines.
pub(crate) fn one(verdict: &Verdict) -> String {
    let lines: String = verdict
        .violations()
        .iter()
        .map(|violation| line(violation, &verdict.file))
        .collect();
    lines + &super::cut::cut(verdict)
}

fn line(violation: &Violation, message_file: &str) -> String {
    let mut line = match &violation.file {
        Source::Message => message_file.to_owned(),
        Source::Packet(path) => escaped(path),
    };
    if let Some(place) = violation.place {
        // Writing into a string cannot fail.
        let _ = write!(line, ":{place}");
    }
    let weight = match violation.level {
        Level::Error => "",
        Level::Warning => " (warning)",
    };
    let _ = write!(line, " {}{weight} {}", violation.code, violation.message);
    if let Some(fix) = &violation.fix {
        let _ = write!(line, "; fix: {fix}");
    }
    // A fix may have several lines, but the format promises one.
    escaped(&line) + "\n"
}
