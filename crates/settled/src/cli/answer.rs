//! Prints answers in the forms that `views` gives them.

use std::io::Write as _;

use message_schema::line::escaped;

pub(super) use views::answer::{CommandOutput, failure, failure_line};

use super::failure::Failure;
use crate::exit::Exit;

/// Prints to standard output; a closed pipe ends the command quietly.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    let written = std::io::stdout().write_all(text.as_bytes());
    match written.map_err(|error| Failure::new(Exit::Failed, &error)) {
        Err(failure) if !failure.is_broken_pipe => Err(failure),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Reports a failure on standard error.
pub(super) fn complain(failure: &Failure) {
    // A message may have several lines, each with text of others.
    let lines: Vec<String> = failure.message.lines().map(escaped).collect();
    let mut text = format!("settled: {}\n", lines.join("\n"));
    for next in &failure.next {
        text += &format!("  try: {}\n", escaped(&next.run));
    }
    // If standard error is closed too, nothing is left to do.
    let _ = std::io::stderr().write_all(text.as_bytes());
}
