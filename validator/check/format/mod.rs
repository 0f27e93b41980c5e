//! Verdicts out: a file for each format. What stands on stdout is the document and nothing else.

mod concise;
mod json;

use clap::ValueEnum;

use super::verdict::Verdict;

/// How verdicts are printed.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Format {
    /// One line for each violation, fixes indented below
    Concise,
    /// One document for all files
    Json,
}

impl Format {
    /// Gives the whole document.
    pub(crate) fn print(self, verdicts: &[Verdict]) -> String {
        match self {
            Format::Concise => concise::print(verdicts),
            Format::Json => json::print(verdicts),
        }
    }
}
