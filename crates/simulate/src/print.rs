//! Prints a transcript as text: one fact a line, indented below its step.

use std::fmt::Write as _;
use std::path::Path;

use message_schema::line::escaped;

use super::facts::Fact;
use super::run::{Mismatch, Played, Transcript};

/// Formats the transcript for people; `file` is the scenario's path.
pub fn text(transcript: &Transcript, file: &Path) -> String {
    let mut out = format!("{}: {}\n", file.display(), escaped(&transcript.title));
    for played in &transcript.steps {
        step(&mut out, played);
    }
    out += "final\n";
    for line in transcript.end.iter().flat_map(|ended| &ended.lines) {
        out += &format!("  {line}\n");
    }
    out += &mismatches(transcript, file);
    out
}

/// Formats the mismatches; empty if every expectation was met.
pub fn mismatches(transcript: &Transcript, file: &Path) -> String {
    let mut out = String::new();
    for Mismatch {
        step,
        line,
        message,
        got,
    } in &transcript.mismatches
    {
        let step = step.map_or_else(|| "final".to_owned(), |step| format!("step {step}"));
        out += &format!("{}:{line}: {step}: {}\n", file.display(), escaped(message));
        if got.is_empty() {
            out += "    got: nothing\n";
        }
        for line in got {
            out += &format!("    got: {line}\n");
        }
    }
    out
}

fn step(out: &mut String, played: &Played) {
    let Played {
        step,
        at,
        action,
        facts,
    } = played;
    // Writing to a `String` cannot fail.
    let _ = writeln!(out, "{step:>3}  {at}  {}", escaped(action));
    for Fact { line, message, .. } in facts {
        let _ = writeln!(out, "     {line}");
        if let Some(message) = message {
            let _ = writeln!(out, "         {}", escaped(message));
        }
    }
}
