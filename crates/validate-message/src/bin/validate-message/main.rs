//! The binary: reads the files it is given, asks the library, prints what it says.
//!
//! Findings go to stdout and are the whole of it; the summary and what could not be read go to
//! stderr. Only this binary touches files.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the binary reads the files it is given"
)]

mod output;
mod read;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};

use output::{Outcome, Verdict};

const EXAMPLES: &str = "\
Examples:
  validate-message agents/claude/outbox/x.yaml    look for its packet in the workspace around it
  validate-message --format json a.yaml b.yaml    print one JSON document for both
  validate-message --root . - < draft.yaml        check a message from standard input
  validate-message --packet found.yaml x.yaml     take found.yaml for the packet x.yaml names

Exit status: 0 nothing refused (there may be warnings), 1 something refused, 2 wrong usage,
3 a file could not be read.";

/// Checks Settled messages and the findings packets they name; prints every violation of each.
#[derive(Parser)]
#[command(name = "validate-message", version, after_help = EXAMPLES)]
struct Args {
    /// The messages; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// How to print what is found
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,

    /// The workspace in which packets are looked for [default: the nearest directory above the
    /// file that holds `agents/` and `packets/`]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,

    /// Take this file for the packet that the messages name
    #[arg(long, value_name = "FILE", conflicts_with = "root")]
    packet: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// One line for each violation, fixes indented below
    Text,
    /// One document for all files
    Json,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let lookup = read::Lookup { root: args.root, packet: args.packet };
    let verdicts: Vec<Verdict> = args.files.iter().map(|file| read::judge(file, &lookup)).collect();
    let printed = match args.format {
        Format::Text => output::text(&verdicts),
        Format::Json => output::json(&verdicts),
    };
    // A reader that went away (`| head`) wants no more; the exit status still tells.
    let _ = io::stdout().lock().write_all(printed.as_bytes());
    let _ = io::stderr().lock().write_all(output::summary(&verdicts).as_bytes());
    exit_code(&verdicts)
}

fn exit_code(verdicts: &[Verdict]) -> ExitCode {
    let is_unreadable = verdicts.iter().any(|verdict| matches!(verdict.outcome, Outcome::Unreadable(_)));
    let is_refused = verdicts.iter().any(Verdict::is_refused);
    match (is_unreadable, is_refused) {
        (true, _) => ExitCode::from(3),
        (false, true) => ExitCode::from(1),
        (false, false) => ExitCode::SUCCESS,
    }
}
