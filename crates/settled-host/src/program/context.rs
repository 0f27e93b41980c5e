//! The workspace and the format of the output, which all commands share, and the exit code of each failure of a log.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use settled_host::is_missing;
use settled_host::place::PlaceError;
use spool::Os;
use spool::log::{HostName, Local, LogError};
use views::answer::{self, CommandOutput};
use views::exit::Exit;
use views::failure::Failure;
use views::serving::of_spool;
use workspace::config::{Config, SharedLog};
use workspace::directory;
use workspace::shell::quoted;

use super::wait::Wait;

/// The workspace, and the format of the output.
pub(super) struct HostContext {
    pub(super) root: Option<PathBuf>,
    pub(super) is_json: bool,
    /// The time that a command waits for the log.
    pub(super) wait: Wait,
}

impl HostContext {
    pub(super) fn root(&self) -> Result<&Path, Failure> {
        self.root.as_deref().ok_or_else(|| {
            let message = "no workspace given: use --root DIR, or set SETTLED_ROOT".to_owned();
            Failure::plain(Exit::Identity, message)
        })
    }

    /// The workspace and its shared log; fails if it is no workspace or shares none.
    pub(super) fn shared(&self) -> Result<(&Path, SharedLog), Failure> {
        let root = self.root()?;
        let is_workspace = directory::is_workspace(root)?;
        if !is_workspace {
            let message = format!("{} is not a workspace", root.display());
            return Err(Failure::plain(Exit::NotFound, message));
        }
        let config = load(root)?;
        match shared_log(&config)? {
            Some(shared) => Ok((root, shared)),
            None => Err(Failure::plain(
                Exit::NotFound,
                format!("{} shares its ledger with no other host", root.display()),
            )
            .next(self.command("host join nats://HOST --workspace NAME"))),
        }
    }

    /// The text of a `settled` command for this workspace.
    pub(super) fn command(&self, words: &str) -> String {
        workspace::shell::settled(words, self.root.as_deref(), None)
    }

    pub(super) fn say<T: Serialize>(
        &self,
        answer: &CommandOutput<T>,
        said: impl FnOnce(&T) -> String,
    ) -> Result<Exit, Failure> {
        let text = if self.is_json {
            answer.json()
        } else {
            answer.text(&said(&answer.data))
        };
        answer::write(&mut std::io::stdout(), &text)?;
        Ok(Exit::Ok)
    }

    pub(super) fn complain(&self, failure: &Failure) {
        if self.is_json {
            // If standard output is closed, the exit code still reports the failure.
            let _ = answer::write(&mut std::io::stdout(), &answer::failure(failure));
        }
        let text = answer::complaint("settled host", failure);
        // If standard error is closed as well, there is nowhere to report it.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

pub(super) fn load(root: &Path) -> Result<Config, Failure> {
    Config::load(root).map_err(|error| Failure::new(Exit::Usage, &error))
}

/// The shared log of the config, if it has one.
pub(super) fn shared_log(config: &Config) -> Result<Option<SharedLog>, Failure> {
    config.ledger.shared().map_err(|key| {
        let message =
            format!("settled.toml has ledger.log and no {key}; `settled host join` writes both");
        Failure::plain(Exit::Usage, message)
    })
}

/// The failure for a log that cannot be opened or reached.
pub(super) fn of_place(error: &PlaceError) -> Failure {
    let exit = match error {
        PlaceError::Log(error) => return of_log(error),
        PlaceError::Access(_) | PlaceError::Key(_) | PlaceError::Unfit(_) => Exit::Usage,
        PlaceError::NoRepository { .. } => Exit::NotFound,
        PlaceError::Io { .. } => Exit::Failed,
    };
    Failure::new(exit, error)
}

/// The failure for a log that a person has just named.
pub(super) fn of_new_log(error: &LogError, log: &str) -> Failure {
    let failure = of_log(error);
    if !is_missing(error) {
        return failure;
    }
    let message = format!("there is no git repository at {log}: {}", failure.message);
    Failure::plain(Exit::NotFound, message)
}

/// The ledger of this host, as a log.
pub(super) fn local(root: &Path, host: &HostName) -> Result<Local, Failure> {
    let local = Local::open(root, Arc::new(Os), host.clone());
    local.map_err(|error| of_spool(&error, &error, &quoted(root.as_os_str())))
}

pub(super) fn of_log(error: &LogError) -> Failure {
    let exit = match error {
        LogError::Unreachable { .. } => Exit::Temporary,
        LogError::Denied { .. } => Exit::Identity,
        LogError::TooLarge { .. }
        | LogError::RolledBack { .. }
        | LogError::Forked { .. }
        | LogError::TooNew(_)
        | LogError::Broken { .. } => Exit::ActionRequired,
    };
    Failure::new(exit, error)
}

#[cfg(test)]
mod tests {
    use spool::log::Head;

    use super::*;

    #[test]
    fn an_exit_code_says_who_can_help() {
        let why = || "x".to_owned();
        let (log, ours) = (Head::EMPTY, Head::EMPTY);
        for (error, exit) in [
            (LogError::Unreachable { why: why() }, Exit::Temporary),
            (LogError::Denied { why: why() }, Exit::Identity),
            (LogError::Broken { what: why() }, Exit::ActionRequired),
            (LogError::RolledBack { log, ours }, Exit::ActionRequired),
        ] {
            assert_eq!(of_log(&error).exit, exit);
            assert_eq!(of_place(&PlaceError::Log(error)).exit, exit);
        }
        let unfit = PlaceError::Unfit(why());
        assert_eq!(of_place(&unfit).exit, Exit::Usage);
        let path = PathBuf::from("p");
        let source = std::io::Error::other("full");
        let io = PlaceError::Io { path, source };
        assert_eq!(of_place(&io).exit, Exit::Failed);
    }
}
