//! Checks files: chooses them, judges each, prints the verdicts, and sets the exit code.
//!
//! Violations are everything that goes to stdout; the summary and unreadable files go to stderr. One thread reads,
//! judges and describes each file and then forgets it; the output has the order of the arguments.

mod format;
mod packet;
mod parallel;
mod place;
mod read;
mod severity;
mod staged;
mod subject;
mod verdict;
mod walk;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::{fix, print};

use self::format::{ColorWhen, Format, Printer};
use self::read::Lookup;
use self::severity::Severities;
use self::staged::Staged;
use self::subject::Subject;
use self::verdict::{Note, Totals};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Messages or findings packets: files, directories, `-` for standard input
    #[arg(required_unless_present_any = ["staged", "stdin_filename"], value_name = "FILE")]
    files: Vec<PathBuf>,

    /// The output format [default: full on a terminal, else concise]
    #[arg(
        long,
        value_enum,
        env = "VALIDATE_MESSAGE_FORMAT",
        hide_env_values = true
    )]
    format: Option<Format>,

    /// When to use colour; auto means on a terminal unless NO_COLOR is set
    #[arg(long, value_enum, default_value_t = ColorWhen::Auto, value_name = "WHEN")]
    color: ColorWhen,

    /// The workspace to find packets in [default: the nearest directory above the
    /// file that holds `agents/` and `packets/`]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,

    /// Use this file as the packet that the messages name
    #[arg(long, value_name = "FILE", conflicts_with = "root")]
    packet: Option<PathBuf>,

    /// Check the files that the next commit adds, changes or leaves without their packet, as in git's index: messages
    /// in mailboxes and findings packets; paths limit the check, and a file among them is checked wherever it is
    #[arg(long, conflicts_with_all = ["packet", "stdin_filename", "fix"])]
    staged: bool,

    /// Treat standard input as this file: print its name, judge it by its place
    #[arg(long, value_name = "FILE")]
    stdin_filename: Option<PathBuf>,

    /// Read severities from this file [default: the nearest `validate-message.toml` above each
    /// message]
    #[arg(long, value_name = "FILE", conflicts_with = "isolated")]
    config: Option<PathBuf>,

    /// Ignore every `validate-message.toml`
    #[arg(long)]
    isolated: bool,

    #[command(flatten)]
    fix: fix::Args,
}

/// The printed part of a file, with its totals, once it is judged.
struct Piece {
    printed: String,
    totals: Totals,
    /// Why the file was not read, or not reported in full.
    note: Option<Note>,
}

/// Checks the files and prints the violations.
pub(crate) fn run(args: Args) -> ExitCode {
    let printer = Printer::chosen(args.format, args.color);
    let fixing = args.fix;
    let (lookup, subjects) = match looked_up(args) {
        Ok(found) => found,
        Err(failure) => return failure.report(),
    };
    let on_disk: Vec<&Path> = subjects.iter().filter_map(Subject::on_disk).collect();
    if let Some(end) = fix::run(fixing, &on_disk) {
        return end;
    }
    // After the first failure nothing more is printed; the summary and the exit status still report.
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut written = Ok(());
    let mut write = |text: &str| {
        if written.is_ok() {
            written = out.write_all(text.as_bytes());
        }
    };
    let mut totals = Totals::default();
    let mut notes = Vec::new();
    let mut is_first = true;
    write(&printer.head());
    parallel::in_order(
        &subjects,
        |subject| piece(subject, &lookup, &printer),
        |piece| {
            if !piece.printed.is_empty() {
                let between = if is_first { "" } else { printer.between() };
                write(&format!("{between}{}", piece.printed));
                is_first = false;
            }
            totals.add(piece.totals);
            notes.extend(piece.note);
        },
    );
    write(&printer.tail(totals, &notes));
    let is_lost = print::lost(written.and_then(|()| out.flush()));
    let _ = io::stderr()
        .lock()
        .write_all(summary(totals, &notes).as_bytes());
    if is_lost {
        ExitCode::from(3)
    } else {
        exit_code(totals)
    }
}

fn piece(subject: &Subject, lookup: &Lookup, printer: &Printer) -> Piece {
    let verdict = read::judge(subject, lookup);
    let printed = printer.one(&verdict, &subject.name());
    let note = match verdict.unreadable() {
        Some(why) => Some(Note::Unreadable(verdict.file.clone(), why.to_owned())),
        None if verdict.is_cut() => Some(Note::Cut(verdict.file.clone())),
        None => None,
    };
    Piece {
        printed,
        totals: verdict.totals(),
        note,
    }
}

/// Why nothing was checked.
enum Failure {
    Usage(String),
    Unreadable(String),
}

impl Failure {
    fn report(&self) -> ExitCode {
        let (text, status) = match self {
            Failure::Usage(text) => (text, 2),
            Failure::Unreadable(text) => (text, 3),
        };
        let _ = writeln!(io::stderr(), "{text}");
        ExitCode::from(status)
    }
}

fn looked_up(args: Args) -> Result<(Lookup, Vec<Subject>), Failure> {
    let mut files = args.files;
    if files.is_empty() && args.stdin_filename.is_some() {
        files.push(PathBuf::from("-"));
    }
    let lost =
        |error: io::Error| Failure::Unreadable(format!("cannot read the staged files: {error}"));
    let (staged, subjects) = if args.staged {
        let staged = Staged::open().map_err(lost)?;
        let blobs = staged.subjects(&files).map_err(lost)?;
        (
            Some(staged),
            blobs.into_iter().map(Subject::Staged).collect(),
        )
    } else {
        (None, walk::subjects(files, args.stdin_filename.as_deref()))
    };
    let severities = match (&args.config, args.isolated) {
        (Some(file), _) => Severities::of_file(file, &subjects),
        (None, true) => Ok(Severities::default()),
        (None, false) => Severities::nearest(&subjects),
    };
    let severities = severities.map_err(Failure::Usage)?;
    Ok((
        Lookup {
            root: args.root,
            packet: args.packet,
            staged,
            severities,
        },
        subjects,
    ))
}

/// Returns the unreadable files, followed by one line with the totals.
fn summary(totals: Totals, notes: &[Note]) -> String {
    let lost = |note: &Note| match note {
        Note::Unreadable(file, why) => Some(format!("{file}: cannot be read: {why}\n")),
        Note::Cut(_) => None,
    };
    let lost: String = notes.iter().filter_map(lost).collect();
    format!("{lost}{totals}\n")
}

fn exit_code(totals: Totals) -> ExitCode {
    match (totals.unreadable, totals.refused) {
        (0, 0) => ExitCode::SUCCESS,
        (0, _) => ExitCode::from(1),
        (_, _) => ExitCode::from(3),
    }
}
