//! Prints for the services: results on standard output, errors on standard error.

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::ValueEnum;
use serde::Serialize;

/// The output format of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// For a person
    Text,
    /// One JSON document
    Json,
}

/// Prints a result and returns the exit code: 3 if it was lost.
pub(crate) fn out(text: &str) -> ExitCode {
    if is_lost(text) {
        ExitCode::from(3)
    } else {
        ExitCode::SUCCESS
    }
}

/// Prints a result; reports and returns whether it was lost.
pub(crate) fn is_lost(text: &str) -> bool {
    let mut stdout = io::stdout().lock();
    lost(
        stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush()),
    )
}

/// Reports and returns whether printed output was lost, as on a full disk. A reader that went away (`| head`) wants no
/// more.
pub(crate) fn lost(written: io::Result<()>) -> bool {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            complain(&format!("cannot write to standard output: {error}\n"));
            true
        }
        Ok(()) | Err(_) => false,
    }
}

/// Prints a message for people besides the result.
pub(crate) fn complain(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Returns a value as one JSON document of several lines.
pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).expect("text keys and plain values are JSON") + "\n"
}
