//! Reads `[agents.<name>]`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use ::runner::stream::OutputFormat;
use message_schema::id::AgentName;
use review::Role;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::runner::{CheckoutMode, Concurrent, Input};
use super::sandbox::SandboxSection;
use super::{field, runner, sandbox};

/// `[agents.<name>]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct AgentSection {
    /// The roles that the agent may take; none given means both.
    pub roles: BTreeSet<Role>,
    /// The user that the agent runs as, 1 to 4294967294: a file of another user is not from the agent.
    #[serde(deserialize_with = "field::uid")]
    pub uid: Option<u32>,
    /// The vendor of its model, one word.
    #[serde(deserialize_with = "field::vendor")]
    pub vendor: Option<String>,
    /// The program and arguments that the daemon starts for each request to this agent; empty for none. `{prompt}` in
    /// an argument becomes the prompt, `{run}` the folder of the run, and so on.
    #[serde(deserialize_with = "runner::command")]
    pub command: Vec<String>,
    /// The command's working directory, relative to the workspace; the workspace itself by default.
    pub workdir: PathBuf,
    /// The files that the command works on: those of the commit under review, or those in `workdir`.
    #[serde(deserialize_with = "runner::checkout")]
    pub checkout: CheckoutMode,
    /// The names of files and directories to leave out of that tree.
    #[serde(deserialize_with = "runner::leave_out")]
    pub leave_out: Vec<String>,
    /// The sandbox around the command, if there is one.
    #[serde(deserialize_with = "sandbox::section")]
    pub sandbox: Option<SandboxSection>,
    /// Variables that are added to the daemon's environment.
    #[serde(deserialize_with = "runner::env")]
    pub env: BTreeMap<String, String>,
    /// The path of the prompt template, relative to the workspace; empty for the built-in one.
    pub prompt: PathBuf,
    /// Its standard input.
    #[serde(deserialize_with = "runner::input")]
    pub stdin: Input,
    /// The form of its output.
    #[serde(deserialize_with = "field::output")]
    pub output: OutputFormat,
    /// The number of its commands that may run at a time: 1 to 64.
    #[serde(deserialize_with = "runner::concurrent_of_agent")]
    pub concurrent: Concurrent,
}

/// The name of an agent that can have a mailbox.
#[derive(PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
struct Agent(AgentName);

impl TryFrom<String> for Agent {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        match AgentName::new(text) {
            Ok(name) if name.is_daemon() => {
                Err("`settled` is the daemon's name, so no agent may have it".to_owned())
            }
            Ok(name) => Ok(Self(name)),
            Err(error) => Err(error.to_string()),
        }
    }
}

pub(super) fn agents<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<AgentName, AgentSection>, D::Error> {
    let agents = BTreeMap::<Agent, AgentSection>::deserialize(deserializer)?;
    let mut users = BTreeMap::new();
    for (agent, section) in &agents {
        // The daemon's commands run as the daemon's user, so what they write would not be from the agent's user.
        if section.uid.is_some() && !section.command.is_empty() {
            let what = format!(
                "agent {} has a uid and a command, expected one of the two",
                agent.0
            );
            return Err(Error::custom(what));
        }
        // A user that two agents share identifies neither of them.
        if let Some(uid) = section.uid
            && let Some(other) = users.insert(uid, &agent.0)
        {
            let what = format!(
                "agents {other} and {} have the same uid {uid}, expected one each",
                agent.0
            );
            return Err(Error::custom(what));
        }
    }
    Ok(agents
        .into_iter()
        .map(|(agent, section)| (agent.0, section))
        .collect())
}
