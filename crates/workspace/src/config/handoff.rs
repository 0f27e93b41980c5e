//! Reads `[handoff]`: which findings become tasks when a pull request is merged, and for which agent.

use std::collections::{BTreeMap, BTreeSet};

use message_schema::id::AgentName;
use message_schema::packet::Severity;
use review::{HandoffMode, HandoffPolicy};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::field;

/// The expected form of an agent's name.
const AGENT: &str = "the name of an agent";

/// `[handoff]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct HandoffSection {
    /// The findings that the daemon hands off without a person.
    #[serde(deserialize_with = "field::handoff_mode")]
    pub mode: HandoffMode,
    /// In threshold mode: the mildest severity that is handed off.
    #[serde(deserialize_with = "field::handoff_threshold")]
    pub threshold: Severity,
    /// In threshold mode: the categories that are handed off; empty for all.
    #[serde(deserialize_with = "categories")]
    pub categories: BTreeSet<String>,
    /// Logins at the forge whose pull requests are never handed off automatically.
    #[serde(deserialize_with = "bots")]
    pub bots: BTreeSet<String>,
    /// Agents whose requests may come from a verify run.
    #[serde(deserialize_with = "verify_agents")]
    pub verify_agents: BTreeSet<AgentName>,
    /// The agent for a finding without a target or a route for its category; none if empty.
    #[serde(deserialize_with = "target")]
    pub target: Option<AgentName>,
    /// The agent for each category of findings.
    #[serde(deserialize_with = "routes")]
    pub routes: BTreeMap<String, AgentName>,
}

impl Default for HandoffSection {
    fn default() -> Self {
        let HandoffPolicy {
            mode,
            threshold,
            categories,
            bots,
            verify_agents,
            target,
            routes,
        } = HandoffPolicy::default();
        Self {
            mode,
            threshold,
            categories,
            bots,
            verify_agents,
            target,
            routes,
        }
    }
}

impl HandoffSection {
    /// The handoff policy for the rules.
    pub(super) fn policy(&self) -> HandoffPolicy {
        let Self {
            mode,
            threshold,
            categories,
            bots,
            verify_agents,
            target,
            routes,
        } = self.clone();
        HandoffPolicy {
            mode,
            threshold,
            categories,
            bots,
            verify_agents,
            target,
            routes,
        }
    }

    /// Every agent that the section names.
    pub(super) fn agents(&self) -> impl Iterator<Item = &AgentName> {
        self.verify_agents
            .iter()
            .chain(&self.target)
            .chain(self.routes.values())
    }
}

fn categories<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeSet<String>, D::Error> {
    texts(
        deserializer,
        "handoff.categories: category",
        "the kind of a finding",
    )
}

fn bots<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeSet<String>, D::Error> {
    texts(deserializer, "handoff.bots: name", "a name at the forge")
}

fn texts<'de, D: Deserializer<'de>>(
    deserializer: D,
    item: &str,
    expected: &str,
) -> Result<BTreeSet<String>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    field::no_blank(&texts, item, expected).map_err(Error::custom)?;
    Ok(texts.into_iter().collect())
}

fn verify_agents<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeSet<AgentName>, D::Error> {
    let names = Vec::<String>::deserialize(deserializer)?;
    let names = names
        .iter()
        .map(|name| agent(name, "handoff.verify_agents names"));
    names.collect::<Result<_, _>>().map_err(Error::custom)
}

fn target<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<AgentName>, D::Error> {
    let name = field::text(deserializer, "handoff.target", AGENT)?;
    if name.is_empty() {
        return Ok(None);
    }
    agent(&name, "handoff.target is")
        .map(Some)
        .map_err(Error::custom)
}

/// The target of a category, parsed alone so that an error points at the name.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Route(AgentName);

impl TryFrom<String> for Route {
    type Error = String;
    fn try_from(name: String) -> Result<Self, String> {
        agent(&name, "handoff.routes leads to").map(Self)
    }
}

fn routes<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, AgentName>, D::Error> {
    let routes = BTreeMap::<String, Route>::deserialize(deserializer)?;
    if routes.keys().any(|category| category.trim().is_empty()) {
        return Err(Error::custom(
            "handoff.routes has a blank category, expected the kind of a finding",
        ));
    }
    Ok(routes
        .into_iter()
        .map(|(category, route)| (category, route.0))
        .collect())
}

fn agent(name: &str, found: &str) -> Result<AgentName, String> {
    match AgentName::new(name) {
        Ok(agent) if !agent.is_daemon() => Ok(agent),
        Ok(_) => Err(format!(
            "{found} `settled`, expected {AGENT}; `settled` is the daemon's name"
        )),
        Err(error) => Err(format!("{found} `{name}`, {error}")),
    }
}
