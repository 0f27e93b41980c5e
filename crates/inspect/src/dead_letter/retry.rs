//! Sends a refused message again: the validator judges it unchanged, then it is put back into its outbox atomically.
//!
//! The dead letter stays in place. Only the daemon can say whether the review takes the message now.

use std::io;
use std::path::Path;

use message_schema::{Code, Finder, Level};
use serde::Serialize;
use spool::{Disk as _, FileName, OpenMode, Os};
use workspace::config::Config;

use super::{DeadLetter, bytes, directory};
use crate::unjudged;

/// The number of names to try before giving up.
const NAMES_MAX: u32 = 1_000;

/// The validator's current answer to a refused message, and the codes that only the daemon can judge.
#[derive(Debug, Serialize)]
pub struct Outlook {
    /// The errors that remain, by file and place; empty if the files show none.
    pub still_refused: Vec<String>,
    /// Codes of its refusal that depend on the state of the review or the workspace.
    pub may_pass: Vec<Code>,
    /// Codes among these that a person has to act on first.
    pub needs_person: Vec<Code>,
}

/// The reason why nothing was put back.
#[derive(Debug, thiserror::Error)]
pub enum NotSent {
    /// The original was removed or cannot be read.
    #[error("the refused file no longer exists, or is not a regular file: only its report is left")]
    NoOriginal,
    /// A call failed.
    #[error("cannot {what}: {source}")]
    Io {
        /// The operation that failed.
        what: String,
        /// The cause.
        source: io::Error,
    },
}

/// Returns the reason why this process may not put the message back: the daemon refuses a file that was not written by
/// the outbox's owner.
pub fn not_its_user(root: &Path, letter: &DeadLetter) -> Option<String> {
    let ours = rustix::process::geteuid().as_raw();
    let users = Config::load(root).unwrap_or_default().users();
    let user = users.get(&letter.agent).filter(|user| **user != ours)?;
    Some(format!(
        "{} is uid {user} and you are uid {ours}: files that you write do not count as its files",
        letter.agent
    ))
}

/// Reads the original.
pub fn original(root: &Path, letter: &DeadLetter) -> Result<Vec<u8>, NotSent> {
    let file = letter.file.as_ref().ok_or(NotSent::NoOriginal)?;
    let path = directory(root, &letter.agent).join(file);
    let read = bytes(&path).map_err(|source| NotSent::Io {
        what: format!("read {}", path.display()),
        source,
    })?;
    read.ok_or(NotSent::NoOriginal)
}

/// Judges the original unchanged.
pub fn outlook(root: &Path, letter: &DeadLetter, original: &[u8]) -> Outlook {
    let file = letter.file.as_deref().unwrap_or(&letter.report.file);
    let mut may_pass: Vec<Code> = letter
        .report
        .violations
        .iter()
        .filter(|violation| {
            violation.level == Level::Error && violation.code.finder() == Finder::Daemon
        })
        .map(|violation| violation.code)
        .collect();
    may_pass.sort_unstable_by_key(|code| code.as_str());
    may_pass.dedup();
    let needs_person = may_pass
        .iter()
        .copied()
        .filter(|code| !code.is_retryable())
        .collect();
    Outlook {
        still_refused: unjudged::errors(root, original, file),
        may_pass,
        needs_person,
    }
}

/// Puts the bytes into the outbox they came from, under a free name, and returns that name. The file appears whole or
/// not at all; a kill before that leaves a hidden file.
pub fn put_back(root: &Path, letter: &DeadLetter, original: &[u8]) -> Result<String, NotSent> {
    let outbox = spool::dirs::of_agent(letter.agent.as_str(), spool::dirs::OUTBOX);
    let failed = |what: &str| {
        let what = format!("{what} {outbox}");
        move |source| NotSent::Io { what, source }
    };
    let at = Os
        .open_root(root)
        .map_err(failed("open the workspace of"))?;
    let dir = Os
        .open_dir(&at, Path::new(&outbox))
        .map_err(failed("open"))?;
    let temporary = format!(".settled-retry-{}.tmp", std::process::id());
    let temporary = Path::new(&temporary);
    // A killed process with our pid may have left one.
    match Os.remove(&dir, temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(failed("write into")(error));
        }
        Ok(()) | Err(_) => {}
    }
    let written = || -> io::Result<String> {
        let file = Os.open(&dir, temporary, OpenMode::New)?;
        let mut filled = 0;
        while filled < original.len() {
            filled += Os.write_at(&file, &original[filled..], filled as u64)?;
        }
        Os.sync_data(&file)?;
        drop(file);
        for n in 0..NAMES_MAX {
            let name = name(&letter.report.file, n);
            match Os.rename_new(&dir, temporary, &dir, Path::new(&name)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                result => {
                    result?;
                    Os.sync_dir(&dir)?;
                    return Ok(name);
                }
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    };
    written().map_err(|error| {
        // If this fails, it stays hidden, and nobody takes it for a message.
        let _ = Os.remove(&dir, temporary);
        failed("write into")(error)
    })
}

/// The `n`-th name to try; a name without a message's extension gets one.
fn name(file: &str, n: u32) -> String {
    let (stem, ending) = file.rsplit_once('.').unwrap_or((file, "yaml"));
    let stem = if FileName::new(stem).is_ok() {
        stem
    } else {
        "message"
    };
    if n == 0 {
        format!("{stem}.{ending}")
    } else {
        format!("{stem}-retry{n}.{ending}")
    }
}
