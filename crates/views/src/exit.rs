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
        } else if is_out_of_room(error.kind()) {
            Self::Temporary
        } else {
            Self::Failed
        }
    }
}

/// Returns whether the file system is full, or the writer has used up its share of it.
pub fn is_out_of_room(error: io::ErrorKind) -> bool {
    matches!(
        error,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_ends_with_the_number_of_its_exit_code() {
        for (exit, number) in [(Exit::Ok, 0), (Exit::Failed, 1), (Exit::Temporary, 9)] {
            // An exit code can only be printed, not compared.
            let (made, expected) = (ExitCode::from(exit), ExitCode::from(number));
            assert_eq!(format!("{made:?}"), format!("{expected:?}"));
        }
    }

    #[test]
    fn a_file_that_may_not_be_read_is_a_matter_of_identity() {
        let of = |kind: io::ErrorKind| Exit::of_io(&kind.into());
        assert_eq!(of(io::ErrorKind::PermissionDenied), Exit::Identity);
        assert_eq!(of(io::ErrorKind::NotFound), Exit::Failed);
        assert_eq!(of(io::ErrorKind::StorageFull), Exit::Temporary);
    }
}
