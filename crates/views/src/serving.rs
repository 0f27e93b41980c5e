//! The reasons why a daemon cannot go on, sorted by who has to act.

use std::io::ErrorKind;

use spool::{SpoolError, dirs};

use crate::exit::Exit;
use crate::failure::Failure;

/// Makes the failure for an error of the spool with its causes; `root` is the workspace as shown to people.
pub fn of_spool(
    error: &(dyn std::error::Error + 'static),
    spool: &SpoolError,
    root: &str,
) -> Failure {
    let (exit, more, next) = advice(spool);
    let failure = Failure::new(exit, error);
    let message = format!("{}{more}", failure.message);
    Failure { message, ..failure }.next(format!("{next} {root}"))
}

/// Returns the daemon's exit code for a failure of the spool (6 if another start would only fail again), an addition to
/// the message, and the next command.
fn advice(error: &SpoolError) -> (Exit, &'static str, &'static str) {
    match error {
        SpoolError::Locked { .. } => (
            Exit::Temporary,
            "; it is being served already",
            "settled status",
        ),
        SpoolError::Full { .. } => (
            Exit::Temporary,
            "; nothing was lost, free some space and start again",
            "df -h",
        ),
        SpoolError::Io { source, .. }
            if matches!(
                source.kind(),
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge
            ) =>
        {
            (
                Exit::Temporary,
                "; nothing was lost, free some space and start again",
                "df -h",
            )
        }
        // The same command as the same user would only fail again, so the next one says whose the workspace is.
        SpoolError::Io { source, path, .. }
            if source.kind() == ErrorKind::PermissionDenied && path.ends_with(dirs::LOCK) =>
        {
            (
                Exit::Identity,
                "; nothing was lost, serve it as the user that owns .settled",
                "settled doctor",
            )
        }
        SpoolError::Io { .. } | SpoolError::NotTaken { .. } | SpoolError::Interrupted => (
            Exit::Failed,
            "; nothing was lost, the next start does the rest",
            "settled serve",
        ),
        SpoolError::Fatal { .. } | SpoolError::Stopped { .. } => (
            Exit::Failed,
            "; check the disk, the next start reads what is really there",
            "settled serve",
        ),
        SpoolError::Replaced { .. } => (
            Exit::ActionRequired,
            "; restore it before the next start",
            "settled ledger verify",
        ),
        SpoolError::Damaged { .. } => (
            Exit::ActionRequired,
            "; nothing was changed, restore the ledger from a backup",
            "settled ledger verify",
        ),
        SpoolError::Contradicted { .. } => (
            Exit::ActionRequired,
            "; nothing was changed, restore the ledger from a backup or let a person accept it",
            "settled ledger verify",
        ),
        SpoolError::OtherHead { .. } => (
            Exit::ActionRequired,
            "; nothing was changed",
            "settled ledger verify",
        ),
        SpoolError::NotContradicted => (Exit::Failed, "", "settled status"),
        SpoolError::TooNew { .. } => (Exit::ActionRequired, "; use a newer settled", "settled log"),
        SpoolError::Visit { .. } => (
            Exit::ActionRequired,
            "; a newer settled wrote it, or it is damaged: serve it with that one, or restore the ledger from a backup",
            "settled ledger verify",
        ),
        SpoolError::Sequence { .. } | SpoolError::Unfit { .. } => {
            (Exit::Failed, "", "settled ledger verify")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_of_another_user_is_not_permitted_and_need_not_start_again() {
        let inbox = "agents/codex/inbox";
        for (kind, path, exit, says, next) in [
            (
                ErrorKind::PermissionDenied,
                dirs::LOCK,
                Exit::Identity,
                "; nothing was lost, serve it as the user that owns .settled",
                "settled doctor ./mailroom",
            ),
            (
                ErrorKind::PermissionDenied,
                inbox,
                Exit::Failed,
                "; nothing was lost, the next start does the rest",
                "settled serve ./mailroom",
            ),
            (
                ErrorKind::StorageFull,
                inbox,
                Exit::Temporary,
                "; nothing was lost, free some space and start again",
                "df -h ./mailroom",
            ),
        ] {
            let error = SpoolError::Io {
                operation: "open",
                path: std::path::Path::new("mailroom").join(path),
                source: kind.into(),
            };
            let failure = of_spool(&error, &error, "./mailroom");
            assert_eq!(
                (failure.exit, &*failure.next[0].run),
                (exit, next),
                "{failure:?}"
            );
            let cause = std::io::Error::from(kind);
            assert_eq!(failure.message, format!("{error}: {cause}{says}"));
        }
    }
}
