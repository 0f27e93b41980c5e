//! Checking: which files are meant, what is said of each, how it is printed, how the command ends.
//!
//! Findings go to stdout and are the whole of it; the summary and what could not be read go to stderr.

mod format;
mod read;
mod verdict;

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use crate::fix;

use self::format::Format;
use self::verdict::{Outcome, Verdict};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The messages; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// How to print what is found
    #[arg(long, value_enum, default_value_t = Format::Concise)]
    format: Format,

    /// The workspace in which packets are looked for [default: the nearest directory above the
    /// file that holds `agents/` and `packets/`]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,

    /// Take this file for the packet that the messages name
    #[arg(long, value_name = "FILE", conflicts_with = "root")]
    packet: Option<PathBuf>,

    #[command(flatten)]
    fix: fix::Args,
}

/// Checks the files and prints what is found.
pub(crate) fn run(args: Args) -> ExitCode {
    if let Some(end) = fix::run(&args.fix, &args.files) {
        return end;
    }
    let lookup = read::Lookup { root: args.root, packet: args.packet };
    let verdicts: Vec<Verdict> = args.files.iter().map(|file| read::judge(file, &lookup)).collect();
    let printed = args.format.print(&verdicts);
    // A reader that went away (`| head`) wants no more; the exit status still tells.
    let _ = io::stdout().lock().write_all(printed.as_bytes());
    let _ = io::stderr().lock().write_all(verdict::summary(&verdicts).as_bytes());
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
