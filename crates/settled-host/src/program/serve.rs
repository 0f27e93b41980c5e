//! `settled serve` in a workspace that shares its ledger: the same daemon, with a log.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use daemon::mailroom::{Sharing, SharingState};
use daemon::serve::{self, DaemonError, ServeEnd, ServedOnce, Tally, Until};
use logs::{self, LogFormat};
use message_schema::id::AgentName;
use message_schema::line::escaped;
use settled_host::place::HostDirectory;
use views::answer::CommandOutput;
use views::exit::Exit;
use views::failure::Failure;
use views::serving::{self, of_daemon};
use workspace::config::SharedLog;
use workspace::directory;

use super::{HostContext, member, of_place};

/// For how long a host that begins again waits for the lock: a command may hold it in between.
const LOCK_WAIT: Duration = Duration::from_secs(30);
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// `settled-host serve`
#[derive(Debug, clap::Args)]
pub(super) struct ServeArgs {
    /// Stop when standard input ends
    #[arg(long, conflicts_with = "once")]
    until_eof: bool,
    /// Judge and deliver everything that is waiting, then exit
    #[arg(long)]
    once: bool,
    /// The log format: text, json or journald
    #[arg(long, value_name = "FORM", value_parser = log_format)]
    log_format: Option<LogFormat>,
}

fn log_format(word: &str) -> Result<LogFormat, String> {
    let mut known = [LogFormat::Text, LogFormat::Json, LogFormat::Journald].into_iter();
    let form = known.find(|form| form.word() == word);
    form.ok_or_else(|| "expected text, json or journald".to_owned())
}

pub(super) fn run(args: &ServeArgs, context: &HostContext) -> Result<Exit, Failure> {
    logs::start(args.log_format);
    let until = if args.until_eof {
        Until::EndOfInput
    } else {
        Until::Signal
    };
    let mut before = Tally::default();
    let mut left_at = None;
    loop {
        let (root, shared) = context.shared()?;
        if args.once {
            match once(root, &shared, context, &mut before)? {
                Some(exit) => return Ok(exit),
                None => continue,
            }
        }
        let sharing = ready(root, &shared)?;
        let ended = serve::serve_shared(root, until, sharing, |_| {
            tracing::info!(root = %root.display(), host = %shared.host, log = %shared.log, "serving as one of several hosts");
        });
        match ended {
            Ok(ServeEnd::Stopped) => return Ok(Exit::Ok),
            Ok(ServeEnd::OtherHomes) => {
                tracing::info!("agents moved to or from this host; serving their mail from now on");
                left_at = Some(Instant::now());
            }
            Err(error) if is_lent(&error, left_at.map(|at| at.elapsed())) => {
                thread::sleep(LOCK_PAUSE);
            }
            Err(error) => return Err(of_daemon(&error, root)),
        }
    }
}

/// Returns whether a command has the lock that this host gave back so long ago.
fn is_lent(error: &DaemonError, given_back: Option<Duration>) -> bool {
    error.is_locked() && given_back.is_some_and(|ago| ago < LOCK_WAIT)
}

/// Checks that this host may serve, makes the mailboxes, and starts to follow the log.
fn ready(root: &Path, shared: &SharedLog) -> Result<Sharing, Failure> {
    let own = HostDirectory::of(root);
    let fleet = member::fleet(root)?;
    member::check_key(root, shared, &fleet)?;
    let agents: Vec<AgentName> = fleet.agents().cloned().collect();
    // An agent may have come home since, and the agents of other hosts need mailboxes as addressees.
    directory::init(root, &agents)?;
    let log = own.open(shared).map_err(|error| of_place(&error))?;
    member::sharing(root, shared, log, fleet)
}

/// Serves once and adds to the tally; `None` if agents came home meanwhile, so that there is more to do.
fn once(
    root: &Path,
    shared: &SharedLog,
    context: &HostContext,
    before: &mut Tally,
) -> Result<Option<Exit>, Failure> {
    let mut log = HostDirectory::of(root)
        .open_existing(shared)
        .map_err(|error| of_place(&error))?;
    let end = context
        .wait
        .answer(|| log.head())
        .map_err(|error| super::of_log(&error))?;
    drop(log);
    let sharing = ready(root, shared)?;
    let served = serve::serve_shared_once(root, sharing, end.seq);
    let ServedOnce {
        tally,
        sharing_state,
        has_other_homes,
    } = served.map_err(|error| of_daemon(&error, root))?;
    let tally = before.then(tally);
    *before = tally;
    let done = match sharing_state {
        SharingState::InStep if has_other_homes => return Ok(None),
        SharingState::InStep => serving::exit_of(&tally),
        SharingState::Waiting { why, .. } => Err(Failure::plain(
            Exit::Temporary,
            format!(
                "the shared ledger gave no answer: {}; nothing is lost, run this again",
                escaped(&why)
            ),
        )),
        SharingState::Frozen { seq, why } => Err(Failure::plain(
            Exit::ActionRequired,
            format!(
                "frozen at record {seq} of the shared ledger: {}",
                escaped(&why)
            ),
        )),
        SharingState::Outdated { why } => Err(Failure::plain(Exit::ActionRequired, escaped(&why))),
    };
    let exit = done.map_err(|failure| failure.data(&tally).next(context.command("status")))?;
    context.say(&CommandOutput::new(tally), serving::judged)?;
    Ok(Some(exit))
}

#[cfg(test)]
mod tests {
    use daemon::mailroom::MailroomError;
    use spool::SpoolError;

    use super::*;

    #[test]
    fn only_a_lock_that_this_host_gave_back_a_short_time_ago_is_waited_for() {
        let failed = |spool| DaemonError::Mailroom(MailroomError::Spool(spool));
        let locked = || {
            failed(SpoolError::Locked {
                lock: "lock".into(),
                pid: None,
            })
        };
        assert!(is_lent(&locked(), Some(Duration::ZERO)));
        assert!(!is_lent(&locked(), Some(LOCK_WAIT)));
        assert!(!is_lent(&locked(), None), "another daemon serves");
        let other = failed(SpoolError::NotContradicted);
        assert!(!is_lent(&other, Some(Duration::ZERO)));
    }
}
