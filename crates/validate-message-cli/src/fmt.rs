//! `fmt`: message files in their canonical form.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use message_schema::line;
use validate_message::fmt::{Unformatted, format};

use crate::{diff, file, print};

#[derive(clap::Args)]
#[command(after_help = "\
Exit status: 0 every file has its form (now), 1 a file has not (--check, --diff) or cannot be parsed,
2 wrong usage, 3 a file could not be read or written. It leaves signed messages and JSON unchanged.")]
pub(crate) struct Args {
    /// The messages; `-` reads one from standard input and prints it formatted
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Change nothing; list the files that need formatting
    #[arg(long, conflicts_with = "diff")]
    check: bool,

    /// Change nothing; print a diff
    #[arg(long)]
    diff: bool,
}

/// The outcome for a file, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Came {
    Formed,
    WouldChange,
    Unparsed,
    Lost,
}

/// Formats the files, or reports which would change.
pub(crate) fn run(args: &Args) -> ExitCode {
    let came = args
        .files
        .iter()
        .map(|file| one(file, args))
        .max()
        .unwrap_or(Came::Formed);
    match came {
        Came::Formed => ExitCode::SUCCESS,
        Came::WouldChange | Came::Unparsed => ExitCode::from(1),
        Came::Lost => ExitCode::from(3),
    }
}

fn one(path: &Path, args: &Args) -> Came {
    let name = line::escaped(&path.to_string_lossy());
    let bytes = match file::read(path) {
        Ok(bytes) => bytes,
        Err(error) => return report(&format!("{name}: cannot be read: {error}"), Came::Lost),
    };
    let before = String::from_utf8_lossy(&bytes);
    let is_json = path
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    let form = if is_json {
        Err(Unformatted::Signed)
    } else {
        format(&bytes)
    };
    let form = match form {
        Ok(form) => form,
        Err(Unformatted::Malformed(malformed)) => {
            let place = malformed
                .place
                .map(|place| format!(":{place}"))
                .unwrap_or_default();
            return report(
                &format!("{name}{place}: {}: {malformed}", malformed.code),
                Came::Unparsed,
            );
        }
        Err(Unformatted::Uncertain) => {
            return report(
                &format!("{name}: unchanged: another form might change its meaning"),
                Came::Formed,
            );
        }
        // A signed message is already in its final form.
        Err(Unformatted::Signed) => before.clone().into_owned(),
    };
    match (form == *before, args.check, args.diff) {
        (true, false, false) if path == Path::new("-") => print_form(&form),
        (true, _, _) => Came::Formed,
        (false, true, _) => report(&format!("{name}: would be changed"), Came::WouldChange),
        (false, _, true) if diff::is_lost(&name, &before, &form) => Came::Lost,
        (false, _, true) => Came::WouldChange,
        (false, false, false) if path == Path::new("-") => print_form(&form),
        (false, false, false) => match file::replace(path, &bytes, form.as_bytes()) {
            Ok(()) => report(&format!("{name}: changed"), Came::Formed),
            Err(error) => report(&format!("{name}: cannot be written: {error}"), Came::Lost),
        },
    }
}

fn report(text: &str, came: Came) -> Came {
    print::complain(&format!("{text}\n"));
    came
}

fn print_form(form: &str) -> Came {
    if print::is_lost(form) {
        Came::Lost
    } else {
        Came::Formed
    }
}
