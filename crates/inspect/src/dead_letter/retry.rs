//! Says what the validator would say now of a refused message, and who may send it again; `mailbox::put_back` sends it.
//! Only the daemon can say whether the review takes the message now.

use std::io;
use std::path::{Path, PathBuf};

use message_schema::line::escaped;
use message_schema::{Code, Finder, Level};
use serde::Serialize;
use workspace::config::Config;

use super::{DeadLetter, bytes, directory};
use crate::unjudged;

/// The validator's current answer to a refused message, and the codes that only the daemon can judge.
#[derive(Debug, Serialize)]
pub struct Outlook {
    /// The errors that remain, by file and place, each perhaps with its fix on a second line, and safe to print; empty if
    /// the files show none.
    pub still_refused: Vec<String>,
    /// Codes of its refusal that depend on the state of the review or the workspace.
    pub may_pass: Vec<Code>,
    /// Codes among these that a person has to act on first.
    pub needs_person: Vec<Code>,
}

/// The reason why the original cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum NoOriginal {
    /// The original was removed.
    #[error("the refused file no longer exists: only its report is left")]
    Gone,
    /// The file cannot be a message: it is too large, or not a regular file.
    #[error(
        "the refused file is larger than any message, or is not a regular file: write another message"
    )]
    Unfit,
    /// The disk failed, or it may not be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// Returns the reason why this process may not put the message back: the daemon refuses a file that was not written by
/// the outbox's owner.
pub fn not_its_user(root: &Path, message: &DeadLetter) -> Option<String> {
    let ours = rustix::process::geteuid().as_raw();
    let users = Config::load(root).unwrap_or_default().users();
    let user = users.get(&message.agent).filter(|user| **user != ours)?;
    Some(format!(
        "{} is uid {user} and you are uid {ours}: files that you write do not count as its files",
        message.agent
    ))
}

/// Reads the original.
pub fn original(root: &Path, message: &DeadLetter) -> Result<Vec<u8>, NoOriginal> {
    let file = message.file.as_ref().ok_or(NoOriginal::Gone)?;
    let path = directory(root, &message.agent).join(file);
    let read = bytes(&path).map_err(|source| NoOriginal::Unreadable { path, source })?;
    read.ok_or(NoOriginal::Unfit)
}

/// Judges the original unchanged.
pub fn outlook(root: &Path, message: &DeadLetter, original: &[u8]) -> Outlook {
    let file = message.file.as_deref().unwrap_or(&message.report.file);
    let mut may_pass: Vec<Code> = message
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
        still_refused: unjudged::errors(root, original, &escaped(file))
            .iter()
            .map(|told| told.split('\n').map(escaped).collect::<Vec<_>>().join("\n"))
            .collect(),
        may_pass,
        needs_person,
    }
}
