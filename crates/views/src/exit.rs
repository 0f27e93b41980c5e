//! The exit codes, stable and documented in `docs/cli.md`.

use std::io;
use std::process::ExitCode;

/// The exit code of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It did what was asked.
    Ok = 0,
    /// It failed; the message says why.
    Failed = 1,
    /// The command line or the config is wrong.
    Usage = 2,
    /// The named thing does not exist.
    NotFound = 3,
    /// The time ran out; the answer describes the current state.
    Timeout = 4,
    /// The caller is unknown or not permitted.
    Identity = 5,
    /// Somebody has to act; the answer says how.
    ActionRequired = 6,
    /// At least one message was refused.
    InvalidMessage = 7,
    /// The approval does not hold for the given commit.
    GateRefused = 8,
    /// Temporarily impossible: try again.
    Temporary = 9,
}

impl Exit {
    /// The exit code for a file that cannot be read or written.
    pub fn of_io(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::PermissionDenied {
            Self::Identity
        } else {
            Self::Failed
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
