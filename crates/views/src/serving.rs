//! The outcome of serving: the reasons why a daemon cannot go on, sorted by who has to act, and the tally of one pass.

use std::io::ErrorKind;
use std::path::Path;

use daemon::mailroom::MailroomError;
use daemon::serve::{DaemonError, Tally};
use spool::{SpoolError, dirs};
use workspace::config::ConfigError;
use workspace::shell::quoted;

use crate::exit::{Exit, is_out_of_room};
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

/// Makes the failure for a daemon that cannot go on; `root` is the workspace.
pub fn of_daemon(error: &DaemonError, root: &Path) -> Failure {
    let root = quoted(root.as_os_str());
    match error {
        DaemonError::Mailroom(MailroomError::Spool(spool)) => of_spool(error, spool, &root),
        DaemonError::Mailroom(MailroomError::NotTheDaemon { owner, .. }) => {
            Failure::new(Exit::Identity, error).next(format!(
                "setpriv --reuid={owner} --clear-groups settled serve {root}"
            ))
        }
        DaemonError::Mailroom(
            MailroomError::Config(ConfigError::Invalid { .. })
            | MailroomError::Shared { .. }
            | MailroomError::OtherPolicy,
        ) => Failure::new(Exit::Usage, error),
        DaemonError::Metrics(_) => Failure::new(Exit::Temporary, error),
        DaemonError::Mailroom(MailroomError::Config(ConfigError::Unreadable { .. }))
        | DaemonError::Setup(_) => {
            Failure::new(Exit::Failed, error).next(format!("settled serve {root}"))
        }
    }
}

/// Returns the line about what `serve --once` judged, for people.
pub fn judged(tally: &Tally) -> String {
    format!(
        "{} accepted, {} refused, {} duplicates\n",
        tally.accepted, tally.refused, tally.duplicates
    )
}

/// Returns the exit code of `serve --once`, or the failure if it left something to the next start.
pub fn exit_of(tally: &Tally) -> Result<Exit, Failure> {
    let Tally {
        undelivered,
        unread,
        ..
    } = tally;
    if *undelivered > 0 || *unread > 0 {
        let message = format!(
            "could not deliver, archive or sync {undelivered} files, nor read {unread} files or directories; the log names them, and the next start does the rest"
        );
        return Err(Failure::plain(Exit::Temporary, message));
    }
    Ok(if tally.refused > 0 {
        Exit::InvalidMessage
    } else {
        Exit::Ok
    })
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
        SpoolError::Io { source, .. } if is_out_of_room(source.kind()) => (
            Exit::Temporary,
            "; nothing was lost, free some space and start again",
            "df -h",
        ),
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
        SpoolError::Io { source, .. } if source.kind() == ErrorKind::ReadOnlyFilesystem => (
            Exit::Failed,
            "; nothing was lost, mount the file system for writing and start again",
            "settled doctor",
        ),
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
    fn a_daemon_that_has_to_run_as_another_user_says_as_which() {
        let error = DaemonError::Mailroom(MailroomError::NotTheDaemon {
            owner: 61_000,
            found: 0,
        });
        let failure = of_daemon(&error, Path::new("mail room"));
        assert_eq!(failure.exit, Exit::Identity);
        assert_eq!(
            failure.next[0].run,
            "setpriv --reuid=61000 --clear-groups settled serve 'mail room'"
        );
    }

    #[test]
    fn what_is_left_to_the_next_start_weighs_more_than_what_was_refused() {
        let tally = |refused, undelivered, unread| Tally {
            accepted: 3,
            refused,
            duplicates: 1,
            undelivered,
            unread,
        };
        assert_eq!(exit_of(&tally(0, 0, 0)).expect("all done"), Exit::Ok);
        assert_eq!(
            exit_of(&tally(2, 0, 0)).expect("all done"),
            Exit::InvalidMessage
        );
        for left in [tally(2, 1, 0), tally(0, 0, 1)] {
            let failure = exit_of(&left).expect_err("something is left");
            assert_eq!(failure.exit, Exit::Temporary);
        }
        assert_eq!(
            judged(&tally(2, 0, 0)),
            "3 accepted, 2 refused, 1 duplicates\n"
        );
    }

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
