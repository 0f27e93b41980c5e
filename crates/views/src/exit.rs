//! The exit codes, stable and documented in `docs/cli.md`.

use std::process::ExitCode;

/// The exit code of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// As asked.
    Ok = 0,
    /// It failed; the message says why.
    Failed = 1,
    /// The command line or the config is wrong.
    Usage = 2,
    /// The named thing does not exist.
    NotFound = 3,
    /// The time was up; the answer describes the present state.
    Timeout = 4,
    /// The caller is not known, or not permitted.
    Identity = 5,
    /// Somebody has to do something, and the answer says what.
    ActionRequired = 6,
    /// At least one message was refused.
    InvalidMessage = 7,
    /// The approval does not hold for what was asked.
    GateRefused = 8,
    /// Temporarily not possible: try again.
    Temporary = 9,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
