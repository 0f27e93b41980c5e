//! A change of the hosts that share a ledger. The room `fleet` folds them; no review moves by one.

use message_schema::id::AgentName;
use message_schema::line::escaped;
use serde::{Deserialize, Serialize};

/// A change of the hosts, their keys, the homes of agents or the shared policy. It forms a batch of its own, so that
/// everything after it is judged for the new hosts.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostChange {
    /// A host joined, or rejoined with a newer version. Only the host itself reports that.
    Joined(JoinedHost),
    /// A host became the home of agents that had none. Only the host itself reports that.
    Claimed {
        /// The host.
        host: String,
        /// The agents.
        agents: Vec<AgentName>,
    },
    /// A person moved the home of an agent.
    HomeMoved {
        /// The agent.
        agent: AgentName,
        /// Its home before.
        from: String,
        /// Its home from now on.
        to: String,
        /// The person who decided it, and the reason.
        #[serde(flatten)]
        decision: HostDecision,
    },
    /// A person retired the key of a host: later signatures with it are refused.
    KeyRetired {
        /// The host.
        host: String,
        /// The person who decided it, and the reason.
        #[serde(flatten)]
        decision: HostDecision,
    },
    /// A person changed the policy that all hosts judge by.
    PolicyChanged {
        /// The shared part of `settled.toml`.
        policy: String,
        /// The person who decided it, and the reason.
        #[serde(flatten)]
        decision: HostDecision,
    },
}

/// A host's report when it joins.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct JoinedHost {
    /// Its name.
    pub host: String,
    /// Its public key.
    pub key: String,
    /// Its version of settled.
    pub version: String,
    /// The agents at home on it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub agents: Vec<AgentName>,
    /// The shared part of its `settled.toml`: the same on every host.
    pub policy: String,
}

/// The person who decided a change of hosts, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HostDecision {
    /// The person.
    pub by: String,
    /// The reason.
    pub reason: String,
}

impl HostChange {
    /// Returns the change in a few words.
    pub fn sentence(&self) -> String {
        match self {
            Self::Joined(JoinedHost { host, agents, .. }) if agents.is_empty() => {
                format!("host {} joined", escaped(host))
            }
            Self::Joined(JoinedHost { host, agents, .. }) => {
                format!(
                    "host {} joined, the home of {}",
                    escaped(host),
                    names(agents)
                )
            }
            Self::Claimed { host, agents } => {
                format!("host {} is the home of {}", escaped(host), names(agents))
            }
            Self::HomeMoved {
                agent,
                from,
                to,
                decision,
            } => decision.says(&format!(
                "moved the home of {agent} from {} to {}",
                escaped(from),
                escaped(to)
            )),
            Self::KeyRetired { host, decision } => {
                decision.says(&format!("retired the key of host {}", escaped(host)))
            }
            Self::PolicyChanged { decision, .. } => {
                decision.says("changed the policy of all hosts")
            }
        }
    }

    /// Returns the person or the host that caused the change.
    pub fn actor(&self) -> &str {
        match self {
            Self::Joined(JoinedHost { host, .. }) | Self::Claimed { host, .. } => host,
            Self::HomeMoved { decision, .. }
            | Self::KeyRetired { decision, .. }
            | Self::PolicyChanged { decision, .. } => &decision.by,
        }
    }

    /// Returns the person's decision, if it is one.
    pub fn decision(&self) -> Option<&HostDecision> {
        match self {
            Self::Joined(_) | Self::Claimed { .. } => None,
            Self::HomeMoved { decision, .. }
            | Self::KeyRetired { decision, .. }
            | Self::PolicyChanged { decision, .. } => Some(decision),
        }
    }
}

impl HostDecision {
    fn says(&self, what: &str) -> String {
        format!("{}: {what} ({})", escaped(&self.by), escaped(&self.reason))
    }
}

fn names(agents: &[AgentName]) -> String {
    let names: Vec<&str> = agents.iter().map(AgentName::as_str).collect();
    names.join(", ")
}
