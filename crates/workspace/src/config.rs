//! `settled.toml`: policy and limits. Every key is optional, none is guessed: an unknown key or a
//! value out of range is an error with line and column, and nothing starts on half a config.

mod budget;
mod field;
mod handoff;
mod ledger;
mod metrics;
mod notify;
mod retention;
mod runner;
mod sandbox;
mod shared;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ::runner::stream::OutputFormat;
use message_schema::id::AgentName;
use message_schema::limit::Rounds;
use review::{
    EvidenceMode, FilesPerHour, GatePolicy, HumanPaths, LateFindings, MessagesPerHour, OpenReviews,
    Policy, Profile, Role, RuntimeClock, ThreadMode,
};
use serde::Deserialize;

pub use self::budget::{BudgetSection, LimitSection};
pub use self::handoff::HandoffSection;
pub use self::ledger::{LedgerSection, SharedLog, is_workspace_name};
pub use self::metrics::{Listen, MetricsSection};
pub use self::notify::{NotifySection, QuietHours};
pub use self::retention::RetentionSection;
pub use self::runner::{CheckoutMode, Concurrent, Input, RunnerSection};
pub use self::sandbox::SandboxSection;
pub use self::shared::{OF_AN_AGENT, OF_ONE_HOST, shared_part};

/// The file's name in the workspace.
pub const FILE: &str = "settled.toml";

/// The config `settled init` writes: every key with its default, commented out.
pub const TEMPLATE: &str = include_str!("settled.toml");

/// The config as written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Config {
    /// The mode of the quality gate: it decides or it advises.
    #[serde(deserialize_with = "field::profile")]
    pub profile: Profile,
    /// The instant a reviewer's seconds begin to count.
    #[serde(deserialize_with = "field::runtime_clock")]
    pub runtime_clock: RuntimeClock,
    /// The meaning of a response's silence about an open thread.
    #[serde(deserialize_with = "field::threads")]
    pub threads: ThreadMode,
    /// The treatment of a blocker found late, outside the files the author touched.
    #[serde(deserialize_with = "field::late_findings")]
    pub late_findings: LateFindings,
    /// The order of reviewers, from the first to the last; `person` may end it.
    #[serde(deserialize_with = "field::reviewers")]
    pub reviewers: Vec<AgentName>,
    /// Round limits.
    pub rounds: RoundsSection,
    /// The quality gate.
    pub gate: GateSection,
    /// The findings to hand off once a pull request is merged, and their targets.
    pub handoff: HandoffSection,
    /// Rates.
    pub limits: LimitsSection,
    /// The tokens and the money that the commands of agents may use.
    pub budget: BudgetSection,
    /// The ledger's segments and snapshots.
    pub ledger: LedgerSection,
    /// The retention of files after use.
    pub retention: RetentionSection,
    /// The address of the metrics.
    pub metrics: MetricsSection,
    /// The channels that tell people they are needed.
    pub notify: NotifySection,
    /// The commands of agents, all together.
    #[serde(deserialize_with = "runner::section")]
    pub runner: RunnerSection,
    /// The settings per agent; an agent needs no entry.
    #[serde(deserialize_with = "field::agents")]
    pub agents: BTreeMap<AgentName, AgentSection>,
}

/// `[rounds]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct RoundsSection {
    /// Rounds per generation: 1 to 3.
    #[serde(deserialize_with = "field::rounds")]
    pub max: Rounds,
}

/// `[gate]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct GateSection {
    /// True if the gate refuses an approval without a recorded validation command.
    pub require_validation: bool,
    /// True if silence resolves no thread.
    pub require_actions: bool,
    /// True if the gate refuses an approval that names no commit.
    pub require_head: bool,
    /// Commands that must be recorded as passing.
    #[serde(deserialize_with = "field::commands")]
    pub validation_commands: Vec<String>,
    /// The treatment of an approval that does not show that its change was read: `warn` or `require`.
    #[serde(deserialize_with = "field::evidence")]
    pub evidence: EvidenceMode,
    /// True if author and reviewer must be of two vendors.
    pub reviewer_other_vendor: bool,
    /// The files whose change only a person approves.
    #[serde(deserialize_with = "field::human_paths")]
    pub human_paths: HumanPaths,
}

/// `[limits]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct LimitsSection {
    /// Messages outside the review loop, per hour and pair: 1 to 10 000.
    #[serde(deserialize_with = "field::messages_per_hour")]
    pub messages_per_hour: MessagesPerHour,
    /// Files out of one outbox per hour, before only open reviews go on: 1 to 1 000 000.
    #[serde(deserialize_with = "field::files_per_hour")]
    pub files_per_hour: FilesPerHour,
    /// Reviews of one author that are open with one reviewer at a time: 1 to 1 000 000.
    #[serde(deserialize_with = "field::open_reviews")]
    pub open_reviews: OpenReviews,
}

/// `[agents.<name>]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct AgentSection {
    /// The parts the agent may take; none named means both.
    pub roles: BTreeSet<Role>,
    /// The user the agent runs as: what belongs to another user is not from it. 1 to 4294967294.
    #[serde(deserialize_with = "field::uid")]
    pub uid: Option<u32>,
    /// The maker of its model, in one word.
    #[serde(deserialize_with = "field::vendor")]
    pub vendor: Option<String>,
    /// The program the daemon starts for each request to this agent, and its arguments; none is started if it is empty.
    /// In an argument `{prompt}` stands for the prompt, `{run}` for the folder of the run, and so on.
    #[serde(deserialize_with = "runner::command")]
    pub command: Vec<String>,
    /// The command's working directory, relative to the workspace, which is the default.
    pub workdir: PathBuf,
    /// The files it finds there: those of the commit under review, or those in `workdir`.
    #[serde(deserialize_with = "field::checkout")]
    pub checkout: CheckoutMode,
    /// The names of files and directories that such a tree does not have.
    #[serde(deserialize_with = "runner::leave_out")]
    pub leave_out: Vec<String>,
    /// The walls around the command, if there are to be any.
    #[serde(deserialize_with = "sandbox::section")]
    pub sandbox: Option<SandboxSection>,
    /// Variables of its environment, added to the daemon's.
    #[serde(deserialize_with = "runner::env")]
    pub env: BTreeMap<String, String>,
    /// The template of its prompt, from the workspace on; the built-in one if it is empty.
    pub prompt: PathBuf,
    /// Its standard input.
    #[serde(deserialize_with = "field::input")]
    pub stdin: Input,
    /// The form of its output.
    #[serde(deserialize_with = "field::output")]
    pub output: OutputFormat,
    /// Its commands that run at a time: 1 to 64.
    #[serde(deserialize_with = "runner::concurrent_of_agent")]
    pub concurrent: Concurrent,
}

/// A config that cannot be used, and where.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file is there but cannot be read.
    #[error("{path}: {source}", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The file is not a valid config (`config_invalid`).
    #[error("{path}:{line}:{column}: config_invalid: {message}", path = path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column in characters, from 1.
        column: usize,
        /// The error and what would have been accepted.
        message: String,
    },
}

impl Config {
    /// Reads the workspace's config; a workspace without one has the defaults.
    pub fn load(root: &Path) -> Result<Self, ConfigError> {
        let path = root.join(FILE);
        match std::fs::read(&path) {
            Ok(bytes) => Self::from_bytes(&bytes, &path),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(source) => Err(ConfigError::Unreadable { path, source }),
        }
    }

    /// Reads a config from the bytes of its file; `path` is for the error only.
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<Self, ConfigError> {
        Self::parse(text_of(bytes, path)?, path)
    }

    /// Reads a config from its text; `path` is for the error only.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        toml::from_str(text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            let (line, column) = line_and_column(text, offset);
            let message = error.message().replace('\n', " ");
            ConfigError::Invalid {
                path: path.to_owned(),
                line,
                column,
                message,
            }
        })
    }

    /// The agents that are named and have no mailbox: perhaps not yet, perhaps a slip of the pen.
    pub fn strangers<'c>(&'c self, agents: &[AgentName]) -> BTreeSet<&'c AgentName> {
        let named = self
            .agents
            .keys()
            .chain(self.handoff.agents())
            .chain(&self.reviewers);
        named.filter(|name| !agents.contains(name)).collect()
    }

    /// The user of each agent that has one of its own.
    pub fn users(&self) -> BTreeMap<AgentName, u32> {
        self.agents
            .iter()
            .filter_map(|(name, agent)| Some((name.clone(), agent.uid?)))
            .collect()
    }

    /// The rules' view of the config, for the agents that have a mailbox.
    pub fn policy(&self, agents: impl IntoIterator<Item = AgentName>) -> Policy {
        let agents: BTreeSet<AgentName> = agents.into_iter().collect();
        // Nobody can deliver a request to an agent without a mailbox.
        let reviewers = self.reviewers.iter().filter(|name| agents.contains(*name));
        let reviewers = reviewers.cloned().collect();
        let roles = |name: &AgentName| self.agents.get(name).map(|agent| agent.roles.clone());
        Policy {
            agents: agents
                .into_iter()
                .map(|name| {
                    let roles = roles(&name).unwrap_or_default();
                    (name, roles)
                })
                .collect(),
            rounds: self.rounds.max,
            threads: self.threads,
            late_findings: self.late_findings,
            gate: GatePolicy {
                require_validation: self.gate.require_validation,
                require_actions: self.gate.require_actions,
                require_head: self.gate.require_head,
                validation_commands: self.gate.validation_commands.clone(),
                evidence: self.gate.evidence,
                reviewer_other_vendor: self.gate.reviewer_other_vendor,
                human_paths: self.gate.human_paths.clone(),
            },
            messages_per_hour: self.limits.messages_per_hour,
            files_per_hour: self.limits.files_per_hour,
            open_reviews: self.limits.open_reviews,
            profile: self.profile,
            runtime_clock: self.runtime_clock,
            handoff: self.handoff.policy(),
            reviewers,
            budget: self.budget.policy(),
            vendors: self
                .agents
                .iter()
                .filter_map(|(name, agent)| Some((name.clone(), agent.vendor.clone()?)))
                .collect(),
        }
    }
}

fn text_of<'b>(bytes: &'b [u8], path: &Path) -> Result<&'b str, ConfigError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let good = std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default();
        let (line, column) = line_and_column(good, good.len());
        let message = "the bytes from here on are not UTF-8 text".to_owned();
        ConfigError::Invalid {
            path: path.to_owned(),
            line,
            column,
            message,
        }
    })
}

fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    // A byte order mark has no column.
    let before = before.strip_prefix('\u{feff}').unwrap_or(before);
    let line = before.matches('\n').count() + 1;
    let column = before
        .rsplit('\n')
        .next()
        .map_or(0, |tail| tail.chars().count())
        + 1;
    (line, column)
}

#[cfg(test)]
mod tests;
