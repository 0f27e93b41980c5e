//! Prints answers in the forms that `views` gives them.

use std::io::Write as _;

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
