//! Reads from options or the environment who asks, about which workspace, and in which form to answer: the same for
//! every command. It guesses nothing from the current directory.

use std::path::{Path, PathBuf};

use inspect::status::WorkspaceStatus;
use message_schema::id::AgentName;
use message_schema::line::escaped;
use review::Policy;
use serde::Serialize;
use workspace::config::Config;
use workspace::remote_agent::RemoteAgent;
use workspace::{directory, shell};

use super::answer::{CommandOutput, print};
use super::failure::Failure;
use crate::exit::Exit;
pub(super) use workspace::shell::quoted;

/// The options every command has.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(super) struct Global {
    /// The workspace [default: $SETTLED_ROOT]
    #[arg(long, value_name = "DIR", global = true)]
    root: Option<PathBuf>,
    /// The agent you act as [default: $SETTLED_AGENT]
    #[arg(long, value_name = "NAME", global = true)]
    agent: Option<String>,
    /// Print one JSON document instead of text
    #[arg(long, global = true)]
    json: bool,
}

/// The workspace, as the only argument of a command.
#[derive(Debug, clap::Args)]
pub(super) struct Root {
    /// The workspace; the same as --root
    #[arg(value_name = "ROOT", id = "workspace")]
    root: Option<PathBuf>,
}

/// The caller's options: workspace, agent and output form.
#[derive(Debug)]
pub(super) struct Context {
    root: Option<Setting<PathBuf>>,
    agent: Option<Setting<String>>,
    /// True if the output is JSON.
    pub(super) json: bool,
    /// Makes the parser of the whole command line, which describes every command and option.
    pub(super) command_line: fn() -> clap::Command,
}

/// A setting, and true if it comes from the environment, which other commands of this shell share.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Setting<T> {
    value: T,
    by_environment: bool,
}

/// The agent that asks, in its workspace.
#[derive(Clone, Debug)]
pub(super) struct Me {
    pub(super) root: PathBuf,
    pub(super) agent: AgentName,
}

impl Context {
    /// Reads the options or, where they are missing, the environment.
    pub(super) fn new(global: Global, command_line: fn() -> clap::Command) -> Self {
        let environment = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let agent = environment("SETTLED_AGENT").map(|value| value.to_string_lossy().into_owned());
        Self {
            root: setting(global.root, environment("SETTLED_ROOT").map(PathBuf::from)),
            agent: setting(global.agent, agent),
            json: global.json,
            command_line,
        }
    }

    /// Uses the workspace given in place of `--root`.
    pub(super) fn at(self, root: &Root) -> Self {
        match &root.root {
            Some(root) => Self {
                root: Some(Setting {
                    value: root.clone(),
                    by_environment: false,
                }),
                ..self
            },
            None => self,
        }
    }

    /// The given workspace, whether it exists or not.
    pub(super) fn root(&self) -> Result<&Path, Failure> {
        self.root
            .as_ref()
            .map(|told| told.value.as_path())
            .ok_or_else(|| {
                let message = "no workspace given: use --root DIR, or set SETTLED_ROOT".to_owned();
                Failure::plain(Exit::Identity, message).next("settled robot help".to_owned())
            })
    }

    /// The given workspace, which must exist.
    pub(super) fn workspace(&self) -> Result<&Path, Failure> {
        let root = self.root()?;
        existing(root)?;
        Ok(root)
    }

    /// Reads the status of the workspace; suggests `doctor` if that fails.
    pub(super) fn status(&self) -> Result<WorkspaceStatus, Failure> {
        WorkspaceStatus::read(self.workspace()?).map_err(|error| {
            Failure::new(Exit::Failed, &error).next(self.command_of(None, "doctor"))
        })
    }

    /// The policy of the workspace. Other commands report a config that cannot be read.
    pub(super) fn policy(&self, status: &WorkspaceStatus) -> Policy {
        let config = self.root().ok().and_then(|root| Config::load(root).ok());
        let agents = status.agents.iter().cloned();
        config.map_or_else(Policy::default, |config| config.policy(agents))
    }

    /// The agent that asks; it must have mailboxes in the workspace.
    pub(super) fn me(&self) -> Result<Me, Failure> {
        let root = self.workspace()?.to_owned();
        let no_agent = |message: String| {
            let known = directory::agents(&root).unwrap_or_default();
            let known: Vec<String> = known.iter().map(ToString::to_string).collect();
            let message = format!(
                "{message}; this workspace has {}\na person needs no name for status, why and watch",
                known.join(", ")
            );
            Failure::plain(Exit::Identity, message)
                .next(self.command_of(None, "status"))
                .or("settled robot help".to_owned())
        };
        let Some(Setting { value, .. }) = &self.agent else {
            return Err(no_agent(
                "no agent given: use --agent NAME, or set SETTLED_AGENT".to_owned(),
            ));
        };
        let agent = directory::agent_name(value)
            .map_err(|why| no_agent(format!("{}: {why}", escaped(value))))?;
        if !spool::Layout::new(&root).agent(agent.as_str()).is_dir() {
            return Err(no_agent(format!("{agent} has no mailboxes here")));
        }
        match RemoteAgent::of(&root, &agent) {
            None => Ok(Me { root, agent }),
            Some(away) if away.elsewhere().is_some() => {
                let message = format!("{away}: run this there");
                Err(Failure::plain(Exit::Identity, message))
            }
            Some(away) => {
                let message = format!("{away}: no host handles its mail");
                let claim = self.command_of(None, &away.command());
                Err(Failure::plain(Exit::Identity, message).next(claim))
            }
        }
    }

    /// The agent that asks, if one is given, for commands that it only narrows.
    pub(super) fn me_if_told(&self) -> Result<Option<Me>, Failure> {
        self.agent.as_ref().map(|_| self.me()).transpose()
    }

    /// A command of ours for the same workspace and agent, ready to run unchanged.
    pub(super) fn command(&self, words: &str) -> String {
        let mut command = self.command_of(None, words);
        if let Some(Setting {
            value,
            by_environment: false,
        }) = &self.agent
        {
            command += &format!(" --agent {}", quoted(value.as_ref()));
        }
        command
    }

    /// A command about one message. An id that begins like an option comes after all options.
    pub(super) fn command_on(&self, verb: &str, name: &str, options: &str) -> String {
        let word = quoted(name.as_ref());
        if name.starts_with('-') {
            return format!("{} -- {word}", self.command(&format!("{verb}{options}")));
        }
        self.command(&format!("{verb} {word}{options}"))
    }

    /// A command for another agent, or for a person if `agent` is none.
    pub(super) fn command_of(&self, agent: Option<&AgentName>, words: &str) -> String {
        let root = self.root.as_ref().filter(|told| !told.by_environment);
        shell::settled(words, root.map(|told| told.value.as_path()), agent)
    }

    /// Prints an answer in the requested form.
    pub(super) fn say<T: Serialize>(
        &self,
        answer: &CommandOutput<T>,
        said: impl FnOnce(&T) -> String,
    ) -> Result<(), Failure> {
        if self.json {
            print(&answer.json())
        } else {
            print(&answer.text(&said(&answer.data)))
        }
    }
}

/// Fails if the directory is no workspace.
pub(super) fn existing(root: &Path) -> Result<(), Failure> {
    let agents = spool::Layout::new(root).agents();
    let is_workspace = directory::is_workspace(root).map_err(|error| {
        let message = format!("cannot look at {}: {error}", agents.display());
        Failure::plain(Exit::Failed, message).next(format!("ls -ld {}", quoted(agents.as_os_str())))
    })?;
    if is_workspace {
        return Ok(());
    }
    let message = format!(
        "{} is not a workspace: it has no agents/ directory",
        root.display()
    );
    let next = format!(
        "settled up {} --agents claude,codex",
        quoted(root.as_os_str())
    );
    Err(Failure::plain(Exit::NotFound, message).next(next))
}

fn setting<T>(option: Option<T>, environment: Option<T>) -> Option<Setting<T>> {
    let by = |by_environment| {
        move |value| Setting {
            value,
            by_environment,
        }
    };
    option.map(by(false)).or(environment.map(by(true)))
}

#[cfg(test)]
mod tests {
    use super::super::SettledCli;
    use super::*;

    impl Context {
        /// Uses these options and ignores the environment.
        pub(in crate::cli) fn of(root: &Path, agent: &str) -> Self {
            Self {
                root: setting(Some(root.to_owned()), None),
                agent: setting(Some(agent.to_owned()), None),
                json: false,
                command_line: <SettledCli as clap::CommandFactory>::command,
            }
        }
    }

    #[test]
    fn a_command_names_what_the_environment_does_not() {
        let told = |value: &str, by_environment| {
            Some(Setting {
                value: value.to_owned(),
                by_environment,
            })
        };
        let context = |by_environment| Context {
            root: Some(Setting {
                value: PathBuf::from("a b"),
                by_environment,
            }),
            agent: told("codex", by_environment),
            json: false,
            command_line: <SettledCli as clap::CommandFactory>::command,
        };
        assert_eq!(context(true).command("inbox"), "settled inbox");
        assert_eq!(
            context(false).command("inbox"),
            "settled inbox --root 'a b' --agent codex"
        );
        assert_eq!(
            context(true).command_on("show", "q-1", ""),
            "settled show q-1"
        );
        assert_eq!(
            context(false).command_on("reply", "-x", " --body-file -"),
            "settled reply --body-file - --root 'a b' --agent codex -- -x"
        );
    }
}
