//! The exit codes, stable and documented in `docs/cli.md`.

use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// As asked.
    Ok = 0,
    /// It failed; the message says why.
    Failed = 1,
    /// The command line or the config is wrong.
    Usage = 2,
    /// What was named does not exist.
    NotFound = 3,
    /// Only a person, or the owner of the workspace, may do this.
    NotAllowed = 5,
    /// At least one message was refused.
    InvalidMessage = 7,
    /// Something stands in the way for now: try again.
    Temporary = 9,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
