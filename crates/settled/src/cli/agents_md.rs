//! `settled agents-md`: maintains a block for agents in the files they read first.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use mailbox::managed_block;
use serde::Serialize;
use workspace::atomic_file;

use super::answer::CommandOutput;
use super::context::{Context, quoted};
use super::failure::Failure;
use super::robot;
use crate::exit::Exit;

/// The largest file to read, in bytes.
const SIZE_MAX: u64 = 4 * 1024 * 1024;

/// Maintains a block in agents' files.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled agents-md                              print the block
  settled agents-md AGENTS.md CLAUDE.md          add or update it in both
  settled agents-md --check AGENTS.md           exit 6 if missing or out of date
  settled agents-md --remove AGENTS.md")]
pub(super) struct Args {
    /// The files; created if they do not exist
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Change nothing; exit 6 if the block of a file is missing or out of date
    #[arg(long, requires = "files", conflicts_with = "remove")]
    check: bool,
    /// Remove the block
    #[arg(long, requires = "files")]
    remove: bool,
}

/// The block and the files it is in.
#[derive(Debug, Serialize)]
struct Kept {
    /// The block; absent when it is removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    block: Option<String>,
    files: Vec<Kept1>,
}

#[derive(Debug, Serialize)]
struct Kept1 {
    #[serde(serialize_with = "spool::path_text::serialize")]
    path: PathBuf,
    /// True if the file was changed or, with `--check`, would be.
    changed: bool,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<Exit, Failure> {
    let block = if args.remove { None } else { Some(block()) };
    let mut kept = Kept {
        block,
        files: Vec::new(),
    };
    for path in &args.files {
        let after = outdated(path, kept.block.as_deref())?;
        if let Some(after) = after.as_ref().filter(|_| !args.check) {
            atomic_file::replace(path, after).map_err(|error| failed(path, &error))?;
        }
        kept.files.push(Kept1 {
            path: path.clone(),
            changed: after.is_some(),
        });
    }
    let old = kept
        .files
        .iter()
        .find(|file| args.check && file.changed)
        .map(|file| file.path.clone());
    let Some(old) = old else {
        context.say(&CommandOutput::new(kept), Kept::text)?;
        return Ok(Exit::Ok);
    };
    let message = format!("{} lacks the block or has an old one", old.display());
    let next = context.command(&format!("agents-md {}", quoted(old.as_os_str())));
    Err(Failure::plain(Exit::ActionRequired, message)
        .data(&kept)
        .next(next))
}

impl Kept {
    fn text(&self) -> String {
        match &self.block {
            Some(block) if self.files.is_empty() => block.clone(),
            Some(_) | None => {
                let said = |file: &Kept1| {
                    let what = if file.changed {
                        "changed"
                    } else {
                        "nothing to change in"
                    };
                    format!("{what} {}\n", file.path.display())
                };
                self.files.iter().map(said).collect()
            }
        }
    }
}

/// The primer under its own heading. All agents of a project read the file, so it names no agent and no path: each
/// reader learns from its environment who it is.
fn block() -> String {
    let primer = robot::PRIMER
        .lines()
        .skip(1)
        .fold(String::new(), |text, line| text + line + "\n");
    format!("## Code review by mail (settled)\n{primer}")
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::plain(Exit::Failed, format!("{}: {error}", path.display()))
}

/// Returns the new text of the file; `None` if it is up to date.
fn outdated(path: &Path, block: Option<&str>) -> Result<Option<String>, Failure> {
    let failed = |error: &std::io::Error| failed(path, error);
    let mut before = String::new();
    match std::fs::File::open(path) {
        Ok(file) => {
            file.take(SIZE_MAX + 1)
                .read_to_string(&mut before)
                .map_err(|error| failed(&error))?;
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(&error)),
    }
    // Replacing a file that was read only in part would lose the rest.
    if before.len() as u64 > SIZE_MAX {
        return Err(failed(&std::io::Error::other(format!(
            "it has more than {SIZE_MAX} bytes; nothing was changed"
        ))));
    }
    let after = managed_block::with_block(&before, block).map_err(|why| {
        Failure::plain(
            Exit::Failed,
            format!("{}: {why}; nothing was changed", path.display()),
        )
    })?;
    Ok((after != before).then_some(after))
}
