//! Prints verdicts, with a module for each format. Stdout carries the document and nothing else.
//!
//! Each file's part is made once that file is judged; the parts that need all files come last.

mod agent;
mod concise;
mod cut;
mod full;
mod github;
mod json;
mod junit;
mod sarif;
mod source;

use std::io::{self, IsTerminal as _};

use clap::ValueEnum;

use super::verdict::{Note, Totals, Verdict};

/// The output format of verdicts.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Format {
    /// For people: each violation with its source lines
    Full,
    /// One line per violation, with the fix indented below
    Concise,
    /// One short line per violation, with its fix
    Agent,
    /// One JSON document for all files
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// GitHub workflow commands that become annotations
    Github,
    /// JUnit XML, for CI test reports
    Junit,
}

/// The values of `--color`.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum ColorWhen {
    Auto,
    Always,
    Never,
}

/// A format, and what it needs to know about its output.
pub(crate) struct Printer {
    format: Format,
    full: full::Full,
}

impl Printer {
    /// Chooses the given format, or else one by the kind of stdout: in a pipe, the same command prints the same for
    /// every caller.
    pub(crate) fn chosen(format: Option<Format>, color: ColorWhen) -> Self {
        let is_terminal = io::stdout().is_terminal();
        let by_place = if is_terminal {
            Format::Full
        } else {
            Format::Concise
        };
        let is_coloured = match color {
            ColorWhen::Always => true,
            ColorWhen::Never => false,
            ColorWhen::Auto => is_terminal && !is_set("NO_COLOR") && !is_dumb(),
        };
        Self {
            format: format.unwrap_or(by_place),
            full: full::Full::new(is_coloured, is_terminal),
        }
    }

    /// Returns the text before the first file.
    pub(crate) fn head(&self) -> String {
        match self.format {
            Format::Json => json::head(),
            Format::Sarif => sarif::head(),
            Format::Junit => junit::head(),
            Format::Full | Format::Concise | Format::Agent | Format::Github => String::new(),
        }
    }

    /// Returns one file's part; `name` is the file as given on the command line, not escaped.
    pub(crate) fn one(&self, verdict: &Verdict, name: &str) -> String {
        match self.format {
            Format::Full => self.full.one(verdict),
            Format::Concise => concise::one(verdict),
            Format::Agent => agent::one(verdict),
            Format::Json => json::one(verdict),
            Format::Sarif => sarif::one(verdict, name),
            Format::Github => github::one(verdict, name),
            Format::Junit => junit::one(verdict),
        }
    }

    /// Returns the separator between two non-empty parts.
    pub(crate) fn between(&self) -> &'static str {
        match self.format {
            Format::Json | Format::Sarif => ",",
            Format::Full | Format::Concise | Format::Agent | Format::Github | Format::Junit => "",
        }
    }

    /// Returns the text after the last file.
    pub(crate) fn tail(&self, totals: Totals, notes: &[Note]) -> String {
        match self.format {
            Format::Json => json::tail(totals),
            Format::Sarif => sarif::tail(notes),
            Format::Github => github::tail(totals),
            Format::Junit => junit::tail(),
            Format::Full | Format::Concise | Format::Agent => String::new(),
        }
    }
}

fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty())
}

fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}
