//! `settled.toml`: policy and limits. Every key is optional, none is guessed: an unknown key or a
//! value out of range is an error with line and column, and nothing starts on half a config.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use message_schema::id::AgentName;
use message_schema::limit::Rounds;
use review::{GatePolicy, MessagesPerHour, Policy, Role, ThreadMode};
use serde::{Deserialize, Deserializer};

/// The file's name in the workspace.
pub const FILE: &str = "settled.toml";

/// What `settled init` writes: every key with its default, commented out.
pub const TEMPLATE: &str = include_str!("settled.toml");

/// The config as written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Config {
    /// How silence about an open thread is read.
    pub threads: ThreadMode,
    /// Round limits.
    pub rounds: RoundsSection,
    /// The quality gate.
    pub gate: GateSection,
    /// Rates.
    pub limits: LimitsSection,
    /// What is set per agent; an agent needs no entry.
    #[serde(deserialize_with = "agents")]
    pub agents: BTreeMap<AgentName, AgentSection>,
}

/// `[rounds]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct RoundsSection {
    /// Rounds per generation: 1 to 3.
    #[serde(deserialize_with = "rounds")]
    pub max: Rounds,
}

/// `[gate]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct GateSection {
    /// Whether an approval without any recorded validation command is refused.
    pub require_validation: bool,
    /// Commands that must be recorded as passing.
    #[serde(deserialize_with = "commands")]
    pub validation_commands: Vec<String>,
}

/// `[limits]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct LimitsSection {
    /// Messages outside the review loop, per hour and pair: 1 to 10 000.
    #[serde(deserialize_with = "messages_per_hour")]
    pub messages_per_hour: MessagesPerHour,
}

/// `[agents.<name>]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct AgentSection {
    /// The parts the agent may take; none named means both.
    pub roles: BTreeSet<Role>,
}

/// A config that cannot be used, and where.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file is there but cannot be read.
    #[error("{path}: {source}", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
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
        /// What is wrong and what would have been accepted.
        message: String,
    },
}

impl Config {
    /// Reads the workspace's config; a workspace without one has the defaults.
    pub fn load(root: &Path) -> Result<Self, ConfigError> {
        let path = root.join(FILE);
        match std::fs::read(&path) {
            Ok(bytes) => Self::parse(text_of(&bytes, &path)?, &path),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(source) => Err(ConfigError::Unreadable { path, source }),
        }
    }

    /// Reads a config from its text; `path` is for the error only.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        toml::from_str(text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            let (line, column) = line_and_column(text, offset);
            let message = error.message().replace('\n', " ");
            ConfigError::Invalid { path: path.to_owned(), line, column, message }
        })
    }

    /// The agents that have an entry and no mailbox: perhaps not yet, perhaps a slip of the pen.
    pub fn strangers<'c>(&'c self, agents: &'c [AgentName]) -> impl Iterator<Item = &'c AgentName> {
        self.agents.keys().filter(|name| !agents.contains(name))
    }

    /// The rules' view of the config, for the agents that have a mailbox.
    pub fn policy(&self, agents: impl IntoIterator<Item = AgentName>) -> Policy {
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
            gate: GatePolicy {
                require_validation: self.gate.require_validation,
                validation_commands: self.gate.validation_commands.clone(),
            },
            messages_per_hour: self.limits.messages_per_hour,
            ..Policy::default()
        }
    }
}

fn text_of<'b>(bytes: &'b [u8], path: &Path) -> Result<&'b str, ConfigError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let good = std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default();
        let (line, column) = line_and_column(good, good.len());
        let message = "the bytes from here on are not UTF-8 text".to_owned();
        ConfigError::Invalid { path: path.to_owned(), line, column, message }
    })
}

fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |tail| tail.chars().count()) + 1;
    (line, column)
}

fn rounds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Rounds, D::Error> {
    let number = integer(deserializer, "rounds.max", "1, 2 or 3")?;
    u64::try_from(number)
        .ok()
        .and_then(|n| Rounds::new(n).ok())
        .ok_or_else(|| serde::de::Error::custom(format!("rounds.max is {number}, expected 1, 2 or 3")))
}

fn messages_per_hour<'de, D: Deserializer<'de>>(deserializer: D) -> Result<MessagesPerHour, D::Error> {
    let number = integer(deserializer, "limits.messages_per_hour", "1 to 10000")?;
    u64::try_from(number).ok().and_then(MessagesPerHour::new).ok_or_else(|| {
        serde::de::Error::custom(format!("limits.messages_per_hour is {number}, expected 1 to 10000"))
    })
}

fn integer<'de, D: Deserializer<'de>>(deserializer: D, key: &str, range: &str) -> Result<i64, D::Error> {
    i64::deserialize(deserializer).map_err(|_| {
        serde::de::Error::custom(format!("{key} is not an integer, expected an integer, {range}"))
    })
}

fn commands<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let commands = Vec::<String>::deserialize(deserializer)?;
    match commands.iter().position(|command| command.trim().is_empty()) {
        // The reader knows the place of the list, not of its items.
        Some(at) => {
            let number = at + 1;
            Err(serde::de::Error::custom(format!("command {number} is blank, expected a command line")))
        }
        None => Ok(commands),
    }
}

/// An agent that can have a mailbox.
#[derive(PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
struct Agent(AgentName);

impl TryFrom<String> for Agent {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        match AgentName::new(text) {
            Ok(name) if name.is_daemon() => {
                Err("`settled` is the daemon's own name and no agent's".to_owned())
            }
            Ok(name) => Ok(Self(name)),
            Err(error) => Err(error.to_string()),
        }
    }
}

fn agents<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<AgentName, AgentSection>, D::Error> {
    let agents = BTreeMap::<Agent, AgentSection>::deserialize(deserializer)?;
    Ok(agents.into_iter().map(|(agent, section)| (agent.0, section)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, String> {
        Config::parse(text, Path::new("settled.toml")).map_err(|error| error.to_string())
    }

    #[test]
    fn the_template_is_the_default() {
        assert_eq!(parse(TEMPLATE), Ok(Config::default()));
    }

    #[test]
    fn the_template_shows_every_key_with_its_default() {
        let live: String = TEMPLATE
            .lines()
            .map(|line| line.strip_prefix("#: ").unwrap_or(line))
            .fold(String::new(), |text, line| text + line + "\n");
        let config = parse(&live).expect("the commented keys are valid");
        assert_eq!(Config { agents: BTreeMap::new(), ..config.clone() }, Config::default());
        assert_eq!(config.agents.len(), 1, "the template shows an agent");
    }

    #[test]
    fn an_unknown_key_is_named_with_its_place() {
        let error = parse("[rounds]\nmax = 2\nmaks = 3\n").expect_err("unknown");
        assert!(error.starts_with("settled.toml:3:1: config_invalid: unknown field `maks`"), "{error}");
    }

    #[test]
    fn four_rounds_are_refused_with_their_place() {
        let error = parse("[rounds]\nmax = 4\n").expect_err("out of range");
        assert!(error.starts_with("settled.toml:2:7: config_invalid: rounds.max is 4"), "{error}");
    }

    #[test]
    fn a_value_of_another_kind_is_told_in_words_with_its_place() {
        for (text, said) in [
            (
                "[rounds]\nmax = \"2\"\n",
                "settled.toml:2:7: config_invalid: rounds.max is not an integer, expected an integer, 1, 2 or 3",
            ),
            (
                "[limits]\nmessages_per_hour = 1.5\n",
                "settled.toml:2:21: config_invalid: limits.messages_per_hour is not an integer, expected an integer, 1 to 10000",
            ),
            (
                "rounds = 2\n",
                "settled.toml:1:10: config_invalid: invalid type: integer `2`, expected a table",
            ),
            (
                "[agents]\ncodex = 1\n",
                "settled.toml:2:9: config_invalid: invalid type: integer `1`, expected a table",
            ),
        ] {
            assert_eq!(parse(text), Err(said.to_owned()));
        }
    }

    #[test]
    fn a_blank_command_could_never_be_recorded_and_is_refused() {
        let error = parse("[gate]\nvalidation_commands = [\"make\", \" \"]\n").expect_err("blank");
        assert_eq!(error, "settled.toml:2:23: config_invalid: command 2 is blank, expected a command line");
    }

    #[test]
    fn the_daemon_is_no_agent() {
        let error = parse("[agents.settled]\nroles = [\"author\"]\n").expect_err("the daemon");
        assert_eq!(
            error,
            "settled.toml:1:9: config_invalid: `settled` is the daemon's own name and no agent's"
        );
    }

    #[test]
    fn an_entry_without_a_mailbox_is_a_stranger_and_no_error() {
        let config = parse("[agents.codex]\n[agents.codx]\n").expect("valid");
        let agents = ["claude", "codex"].map(|name| AgentName::new(name).expect("a name"));
        let strangers: Vec<&str> = config.strangers(&agents).map(AgentName::as_str).collect();
        assert_eq!(strangers, ["codx"]);
    }

    #[test]
    fn bytes_that_are_no_text_are_refused_at_their_place() {
        let error = text_of(b"# gro\xc3\x9f\n# x\xff\n", Path::new("settled.toml")).expect_err("not UTF-8");
        let said = "settled.toml:2:4: config_invalid: the bytes from here on are not UTF-8 text";
        assert_eq!(error.to_string(), said);
    }

    #[test]
    fn an_agent_that_could_not_exist_is_refused() {
        let error = parse("[agents.\"../x\"]\nroles = [\"author\"]\n").expect_err("not a name");
        assert!(error.contains("agent name"), "{error}");
    }
}
