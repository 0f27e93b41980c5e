//! Prints answers in the forms that `views` gives them.

use std::io::Write as _;

pub(super) use views::answer::{CommandOutput, failure, failure_line};

use super::failure::Failure;

/// Prints to standard output; a closed pipe ends the command quietly.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    views::answer::write(&mut std::io::stdout(), text)
}

/// Reports a failure on standard error.
pub(super) fn complain(failure: &Failure) {
    let text = views::answer::complaint("settled", failure);
    // If standard error is closed too, nothing is left to do.
    let _ = std::io::stderr().write_all(text.as_bytes());
}
