//! `settled.toml`: policy and limits. Every key is optional and none is guessed: an unknown key or a value out of range
//! is an error with line and column, and nothing starts with half a config.

mod agent;
mod budget;
mod field;
pub(crate) use field::PERSON;
mod handoff;
mod ledger;
mod metrics;
mod notify;
mod retention;
mod runner;
mod sandbox;
mod shared;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use message_schema::id::AgentName;
use message_schema::limit::Rounds;
use review::{
    EvidenceMode, FilesPerHour, GatePolicy, HumanPaths, LateFindings, MessagesPerHour, OpenReviews,
    Policy, Profile, RuntimeClock, ThreadMode,
};
use serde::Deserialize;

use crate::regular_file;

pub use self::agent::AgentSection;
pub use self::budget::{BudgetSection, LimitSection};
pub use self::handoff::HandoffSection;
pub use self::ledger::{LedgerSection, SharedLog, is_workspace_name};
pub use self::metrics::{Listen, MetricsSection};
pub use self::notify::{NotifySection, QuietHours};
pub use self::retention::RetentionSection;
pub use self::runner::{CheckoutMode, Concurrent, Input, RunnerSection};
pub use self::sandbox::SandboxSection;
pub use self::shared::{OF_AN_AGENT, OF_ONE_HOST, is_same_policy, shared_part};

/// The name of the config file.
pub const FILE: &str = spool::dirs::CONFIG;

/// The largest config that is read, in bytes.
const BYTES_MAX: u64 = 1 << 20;

/// The config that `settled init` writes: every key with its default, commented out.
pub const TEMPLATE: &str = include_str!("settled.toml");

/// The config as written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Config {
    /// The mode of the quality gate: it decides or only advises.
    #[serde(deserialize_with = "field::profile")]
    pub profile: Profile,
    /// The event that starts a reviewer's clock.
    #[serde(deserialize_with = "field::runtime_clock")]
    pub runtime_clock: RuntimeClock,
    /// The meaning of a response's silence about an open thread.
    #[serde(deserialize_with = "field::threads")]
    pub threads: ThreadMode,
    /// The treatment of a blocker found late, outside the files the author touched.
    #[serde(deserialize_with = "field::late_findings")]
    pub late_findings: LateFindings,
    /// The reviewers in order, first to last; `person` may end the list.
    #[serde(deserialize_with = "field::reviewers")]
    pub reviewers: Vec<AgentName>,
    /// Round limits.
    pub rounds: RoundsSection,
    /// The quality gate.
    pub gate: GateSection,
    /// The findings that the daemon hands off when a pull request is merged, and their targets.
    pub handoff: HandoffSection,
    /// Rates.
    pub limits: LimitsSection,
    /// The tokens and the money that agents' commands may use.
    pub budget: BudgetSection,
    /// The size of segments and the frequency of snapshots.
    pub ledger: LedgerSection,
    /// The time for which files are kept after use.
    pub retention: RetentionSection,
    /// The address of the metrics.
    pub metrics: MetricsSection,
    /// The channels that tell people they are needed.
    pub notify: NotifySection,
    /// The limits and signals that all agents' commands share.
    #[serde(deserialize_with = "runner::section")]
    pub runner: RunnerSection,
    /// The settings per agent; an agent needs no entry.
    #[serde(deserialize_with = "agent::agents")]
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
    /// Commands that an approval must record as passing.
    #[serde(deserialize_with = "field::commands")]
    pub validation_commands: Vec<String>,
    /// The treatment of an approval without evidence that its change was read: `warn` or `require`.
    #[serde(deserialize_with = "field::evidence")]
    pub evidence: EvidenceMode,
    /// True if author and reviewer must use models of different vendors.
    pub reviewer_other_vendor: bool,
    /// The files whose changes only a person may approve.
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
    /// Files from one outbox per hour, after which only open reviews continue: 1 to 1 000 000.
    #[serde(deserialize_with = "field::files_per_hour")]
    pub files_per_hour: FilesPerHour,
    /// Reviews of one author that may be open with one reviewer at a time: 1 to 1 000 000.
    #[serde(deserialize_with = "field::open_reviews")]
    pub open_reviews: OpenReviews,
}

/// The reason a config cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file exists but cannot be read.
    #[error("{path}: {source}", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
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
        match text(&path)? {
            Some(text) => Self::parse(&text, &path),
            None => Ok(Self::default()),
        }
    }

    /// Reads a config from bytes; `path` is only for errors.
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<Self, ConfigError> {
        Self::parse(text_of(bytes, path)?, path)
    }

    /// Reads a config from text; `path` is only for errors.
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

    /// The agents in the config that have no mailbox: it may be missing yet, or the name may be misspelled.
    pub fn strangers<'c>(&'c self, agents: &[AgentName]) -> BTreeSet<&'c AgentName> {
        let named = self
            .agents
            .keys()
            .chain(self.handoff.agents())
            .chain(&self.reviewers);
        named.filter(|name| !agents.contains(name)).collect()
    }

    /// The user of each agent that has one.
    pub fn users(&self) -> BTreeMap<AgentName, u32> {
        self.agents
            .iter()
            .filter_map(|(name, agent)| Some((name.clone(), agent.uid?)))
            .collect()
    }

    /// The policy for the rules, for the agents that have a mailbox.
    pub fn policy(&self, agents: impl IntoIterator<Item = AgentName>) -> Policy {
        let agents: BTreeSet<AgentName> = agents.into_iter().collect();
        // An agent without a mailbox cannot get a request.
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

/// Reads the text of a config's file; `None` if there is no file. Never blocks: anything else at that path, a dangling
/// link included, is `config_invalid`.
pub fn text(path: &Path) -> Result<Option<String>, ConfigError> {
    match regular_file::read_followed(path, BYTES_MAX) {
        Ok(Some(bytes)) => Ok(Some(text_of(&bytes, path)?.to_owned())),
        Ok(None) => Err(ConfigError::Invalid {
            path: path.to_owned(),
            line: 1,
            column: 1,
            message: not_a_config(),
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ConfigError::Unreadable {
            path: path.to_owned(),
            source,
        }),
    }
}

/// Reads the text of a config's file. Never blocks: a pipe, a device or a file above 1 MiB is an error.
pub fn read_text(path: &Path) -> io::Result<String> {
    let bytes = regular_file::read_followed(path, BYTES_MAX)?;
    let bytes = bytes.ok_or_else(|| io::Error::other(not_a_config()))?;
    String::from_utf8(bytes).map_err(io::Error::other)
}

fn not_a_config() -> String {
    format!(
        "expected a regular file of at most {BYTES_MAX} bytes; put one there, or remove it for the defaults"
    )
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
    // A byte order mark takes no column.
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
