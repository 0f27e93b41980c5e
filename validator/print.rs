//! What the services print, and where: results on standard output, complaints on standard error.

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::ValueEnum;
use serde::Serialize;

/// How a service prints what it knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// For a person
    Text,
    /// One JSON document
    Json,
}

/// Prints a result and says that all went well. A reader that went away (`| head`) wants no more.
pub(crate) fn out(text: &str) -> ExitCode {
    let _ = io::stdout().lock().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

/// Prints what a person should know besides the result.
pub(crate) fn complain(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Gives a value as one JSON document of several lines.
pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).expect("text keys and plain values are JSON") + "\n"
}
