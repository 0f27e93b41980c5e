//! `settled serve` of a workspace that is one of several hosts: the same daemon, behind the log.

use std::path::Path;

use daemon::logs::{self, LogFormat};
use daemon::mailroom::MailroomError;
use daemon::serve::{self, DaemonError, ServeEnd, Until};
use message_schema::id::AgentName;
use settled_host::keys::HostKey;
use settled_host::place::HostDirectory;
use views::exit::Exit;
use views::failure::Failure;
use views::serving::of_spool;
use workspace::directory;
use workspace::shell::quoted;

use super::{HostContext, member, of_place};

/// `settled-host serve`
#[derive(Debug, clap::Args)]
pub(super) struct ServeArgs {
    /// Stop when standard input ends
    #[arg(long)]
    until_eof: bool,
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
    loop {
        let (root, shared) = context.shared()?;
        let own = HostDirectory::of(root);
        let fleet = member::fleet(root)?;
        let key = HostKey::load(&own.key()).map_err(|error| Failure::new(Exit::Usage, &error))?;
        if fleet.key(&shared.host) != Some(&key.public()) {
            let message = format!(
                "host {} has not joined with the key it has here, or that key was retired",
                shared.host
            );
            let join = format!("host join {} --workspace {}", shared.log, shared.workspace);
            return Err(Failure::plain(Exit::ActionRequired, message).next(context.command(&join)));
        }
        let agents: Vec<AgentName> = fleet.agents().cloned().collect();
        // Mail for an agent that came home since has a place, and a reader elsewhere can be addressed here.
        directory::init(root, &agents).map_err(|error| Failure::new(Exit::Failed, &error))?;
        let log = own.open(&shared).map_err(|error| of_place(&error))?;
        let sharing = member::sharing(root, &shared, log, fleet)?;
        let ended = serve::serve_shared(root, until, sharing, |_| {
            tracing::info!(root = %root.display(), host = %shared.host, log = %shared.log, "serving as one of several hosts");
        });
        match ended {
            Ok(ServeEnd::Stopped) => return Ok(Exit::Ok),
            Ok(ServeEnd::OtherHomes) => {
                tracing::info!("agents came home or left; beginning again with their mail");
            }
            Err(error) => return Err(failure(&error, root)),
        }
    }
}

fn failure(error: &DaemonError, root: &Path) -> Failure {
    let exit = match error {
        DaemonError::Mailroom(MailroomError::Spool(spool)) => {
            return of_spool(error, spool, &quoted(root.as_os_str()));
        }
        DaemonError::Metrics(_) => Exit::Temporary,
        DaemonError::Mailroom(MailroomError::Config(_)) => Exit::Usage,
        DaemonError::Mailroom(_) | DaemonError::Setup(_) => Exit::Failed,
    };
    Failure::new(exit, error)
}
