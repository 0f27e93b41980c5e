//! Submits orders to the daemon and shows their outcome.

use std::io;
use std::path::Path;

use daemon::submit_order::{self, SubmitError};
use inspect::outcome::OrderOutcome;
use message_schema::Code;
use message_schema::id::{AgentName, PrNumber, Repo};
use message_schema::line::escaped;
use review::{DeclinedEvent, Event, EventRecord, Which};

use super::answer::CommandOutput;
use super::context::{Context, quoted};
use super::failure::Failure;
use crate::exit::Exit;
use views::serving;

/// The review that a command is about.
#[derive(Debug, clap::Args)]
pub(super) struct Target {
    /// The number of the pull request
    #[arg(value_name = "PR")]
    pr: PrNumber,
    /// The reviewer, if the pull request has several
    #[arg(long, value_name = "AGENT")]
    reviewer: Option<AgentName>,
    /// The repository, if the number alone is ambiguous
    #[arg(long, value_name = "OWNER/NAME")]
    repo: Option<Repo>,
}

impl Target {
    pub(super) fn which(&self) -> Which {
        Which {
            pr: self.pr.clone(),
            repo: self.repo.clone(),
            reviewer: self.reviewer.clone(),
        }
    }
}

/// Submits an order and shows its outcome.
pub(super) fn give(event: Event, context: &Context) -> Result<Exit, Failure> {
    let outcome = submit(event, context)?;
    context.say(&CommandOutput::new(outcome), OrderOutcome::text)?;
    Ok(Exit::Ok)
}

/// Submits an order; fails if it is declined.
pub(super) fn submit(event: Event, context: &Context) -> Result<OrderOutcome, Failure> {
    let root = context.workspace()?;
    let heard = submit_order::submit(root, event).map_err(|error| failure(&error, root))?;
    let outcome = OrderOutcome::of(&heard.id, &heard.entry, &heard.record);
    match heard.record {
        EventRecord::Declined(DeclinedEvent { code, why, .. }) => Err(Failure::plain(
            exit(code),
            format!("{code}: {}", escaped(&why)),
        )
        .code(code.as_str())
        .data(&outcome)
        .next(context.command("status"))),
        EventRecord::Happened(_) => Ok(outcome),
    }
}

/// The failure to learn an order's outcome, classified by who has to act.
pub(super) fn failure(error: &SubmitError, root: &Path) -> Failure {
    match error {
        SubmitError::Unfit(_) => Failure::new(Exit::Usage, error),
        SubmitError::Unwritten { place, source }
            if source.kind() == io::ErrorKind::PermissionDenied =>
        {
            let message = format!(
                "only the owner of {} can give the daemon orders: {source}",
                place.display()
            );
            Failure::plain(Exit::Identity, message)
        }
        SubmitError::Unserved { file, error } => {
            let failure = serving::of_daemon(error, root);
            // An order that is not recorded yet is not lost, and the caller should know.
            let message = format!(
                "{}; the order is accepted and waits as {}",
                failure.message,
                file.display()
            );
            Failure { message, ..failure }
        }
        SubmitError::Unheard(_) => {
            let next = format!("settled log {}", quoted(root.as_os_str()));
            Failure::new(Exit::Temporary, error).next(next)
        }
        SubmitError::Unwritten { .. } | SubmitError::Gone { .. } | SubmitError::Ledger(_) => {
            Failure::new(Exit::Failed, error)
        }
    }
}

/// A missing review or thread has a different exit code than a decision that does not fit.
fn exit(code: Code) -> Exit {
    let is_missing = code == Code::NoOpenRequest || code == Code::ThreadUnknown;
    if is_missing {
        Exit::NotFound
    } else {
        Exit::Failed
    }
}

#[cfg(test)]
mod tests {
    use daemon::serve::DaemonError;

    use super::*;

    #[test]
    fn what_an_order_is_about_may_be_missing_or_unfit_for_it() {
        for (code, expected) in [
            (Code::NoOpenRequest, Exit::NotFound),
            (Code::ThreadUnknown, Exit::NotFound),
            (Code::ThreadNotOpen, Exit::Failed),
            (Code::ReviewClosed, Exit::Failed),
        ] {
            assert_eq!(exit(code), expected, "{code}");
        }
    }

    #[test]
    fn an_order_that_waits_is_not_lost_and_says_where_it_is() {
        let file = || "room/.settled/orders/o.json".into();
        let unheard = failure(&SubmitError::Unheard(file()), Path::new("room"));
        assert_eq!(unheard.exit, Exit::Temporary);
        assert_eq!(unheard.next[0].run, "settled log room");
        let error = DaemonError::Metrics(io::ErrorKind::AddrInUse.into());
        let unserved = SubmitError::Unserved {
            file: file(),
            error: Box::new(error),
        };
        let unserved = failure(&unserved, Path::new("room"));
        assert_eq!(unserved.exit, Exit::Temporary);
        let end = "; the order is accepted and waits as room/.settled/orders/o.json";
        assert!(unserved.message.ends_with(end), "{}", unserved.message);
        let unfit = SubmitError::Unfit("no".to_owned());
        assert_eq!(failure(&unfit, Path::new("room")).exit, Exit::Usage);
    }

    #[test]
    fn an_order_that_cannot_be_written_is_not_permitted_or_failed() {
        let failed = |kind: io::ErrorKind| {
            let unwritten = SubmitError::Unwritten {
                place: "room/.settled/orders".into(),
                source: kind.into(),
            };
            let failure = failure(&unwritten, Path::new("room"));
            (failure.exit, failure.message.contains("only the owner"))
        };
        assert_eq!(
            failed(io::ErrorKind::PermissionDenied),
            (Exit::Identity, true)
        );
        assert_eq!(failed(io::ErrorKind::StorageFull), (Exit::Temporary, false));
        assert_eq!(failed(io::ErrorKind::NotFound), (Exit::Failed, false));
    }
}
