//! `--fix`: fixes unambiguous mistakes before the files are checked.

use std::path::Path;
use std::process::ExitCode;

use message_schema::line;
use validate_message::fix::{Fixed, fix};
use validate_message::is_signed;

use crate::{diff, file, print};

#[derive(Clone, Copy, clap::Args)]
#[group(id = "fixing")]
pub(crate) struct Args {
    /// Fix unambiguous mistakes, report each fix on standard error, then check
    #[arg(long)]
    fix: bool,

    /// With --fix: print the fixes as a diff, change and check nothing
    #[arg(long, requires = "fix")]
    diff: bool,
}

/// Fixes the files if `--fix` was given. Returns the exit code if the command is done: after a diff, 1 if there is
/// something to fix; 2 for standard input, which cannot be changed; 3 if a file could not be changed.
pub(crate) fn run(args: Args, files: &[&Path]) -> Option<ExitCode> {
    if !args.fix {
        return None;
    }
    if args.diff {
        let differs: Vec<bool> = files.iter().map(|file| shown(file)).collect();
        return Some(ExitCode::from(u8::from(differs.contains(&true))));
    }
    if files.iter().any(|file| *file == Path::new("-")) {
        print::complain("cannot change standard input\n  try: validate-message --fix --diff -\n");
        return Some(ExitCode::from(2));
    }
    let is_lost = files
        .iter()
        .map(|file| fix_file(file))
        .fold(false, |lost, fixed| lost | fixed.is_err());
    is_lost.then(|| ExitCode::from(3))
}

/// Prints what would be fixed and returns whether there is anything. The check reports an unreadable file.
fn shown(path: &Path) -> bool {
    let Ok(bytes) = file::read(path) else {
        print::complain(&format!("{}: cannot be read\n", named(path)));
        return false;
    };
    let Some(fixed) = fix(&bytes) else {
        return false;
    };
    report(path, &fixed, "would be fixed");
    let before = String::from_utf8_lossy(&bytes);
    let _ = diff::is_lost(&named(path), &before, &fixed.text);
    true
}

/// Fixes a file. An error is already printed.
fn fix_file(path: &Path) -> Result<(), ()> {
    // The check reports an unreadable file.
    let Ok(bytes) = file::read(path) else {
        return Ok(());
    };
    let Some(fixed) = fix(&bytes) else {
        if is_signed(&bytes) {
            print::complain(&format!("{}: is signed and left unchanged\n", named(path)));
        }
        return Ok(());
    };
    match file::replace(path, &bytes, fixed.text.as_bytes()) {
        Ok(()) => {
            report(path, &fixed, "fixed");
            Ok(())
        }
        Err(error) => {
            print::complain(&format!("{}: cannot be written: {error}\n", named(path)));
            Err(())
        }
    }
}

fn report(path: &Path, fixed: &Fixed, what: &str) {
    for slip in &fixed.fixes {
        let field = slip
            .field
            .as_ref()
            .map(|field| format!("{}: ", line::escaped(field)))
            .unwrap_or_default();
        let (name, place, fix) = (named(path), slip.place, slip.fix.as_str());
        print::complain(&format!(
            "{name}:{place}: {what}: {fix}: {field}{}\n",
            slip.what
        ));
    }
}

fn named(path: &Path) -> String {
    line::escaped(&path.to_string_lossy())
}
