//! Checking: which files are meant, what is said of each, how it is printed, how the command ends.
//!
//! Findings go to stdout and are the whole of it; the summary and what could not be read go to stderr.

mod format;
mod packet;
mod place;
mod read;
mod staged;
mod subject;
mod verdict;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use self::format::Format;
use self::staged::Staged;
use self::subject::Subject;
use self::verdict::{Outcome, Verdict};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The messages; `-` is standard input
    #[arg(required_unless_present = "staged", value_name = "FILE")]
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

    /// Check what the next commit adds or changes, as it stands in git's index: what lies in
    /// mailboxes; paths narrow it, and a file named there is checked wherever it lies
    #[arg(long, conflicts_with = "packet")]
    staged: bool,
}

/// Checks the files and prints what is found.
pub(crate) fn run(args: Args) -> ExitCode {
    let (lookup, subjects) = match looked_up(args.files, args.root, args.packet, args.staged) {
        Ok(found) => found,
        Err(error) => {
            let _ = writeln!(io::stderr(), "what is staged cannot be read: {error}");
            return ExitCode::from(3);
        }
    };
    let verdicts: Vec<Verdict> = subjects.iter().map(|subject| read::judge(subject, &lookup)).collect();
    let printed = args.format.print(&verdicts);
    // A reader that went away (`| head`) wants no more; the exit status still tells.
    let _ = io::stdout().lock().write_all(printed.as_bytes());
    let _ = io::stderr().lock().write_all(verdict::summary(&verdicts).as_bytes());
    exit_code(&verdicts)
}

fn looked_up(
    files: Vec<PathBuf>,
    root: Option<PathBuf>,
    packet: Option<PathBuf>,
    is_staged: bool,
) -> io::Result<(read::Lookup, Vec<Subject>)> {
    if is_staged {
        let staged = Staged::open()?;
        let subjects = staged.messages(&files)?.into_iter().map(Subject::Staged).collect();
        return Ok((read::Lookup { root, packet, staged: Some(staged) }, subjects));
    }
    let subject =
        |file: PathBuf| if file == Path::new("-") { Subject::Stdin(None) } else { Subject::File(file) };
    Ok((read::Lookup { root, packet, staged: None }, files.into_iter().map(subject).collect()))
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
