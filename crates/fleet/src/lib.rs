//! The hosts that share a ledger: their keys, the agents at home on each, and who may fire a deadline when. Arithmetic on
//! values; the time is handed in.

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use message_schema::id::AgentName;
use spool::HostName;

/// How long after a deadline the home host of the agent it concerns is waited for. That host has looked into the agent's
/// outbox, and an answer in time counts; after this, another host ends the wait.
pub const GRACE: TimeDelta = TimeDelta::seconds(60);

/// The hosts of a workspace and the homes of its agents. Every host has the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fleet {
    keys: BTreeMap<HostName, Key>,
    homes: BTreeMap<AgentName, HostName>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    text: String,
    is_retired: bool,
}

/// Why a change of the fleet is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FleetRefusal {
    /// A host of that name has another key.
    #[error("host {0} has joined with another key")]
    OtherKey(HostName),
    /// There is no such host, or its key is retired.
    #[error("host {0} has not joined, or its key is retired")]
    UnknownHost(HostName),
    /// The agent is at home elsewhere.
    #[error("agent {agent} is at home on {home}; move its home first")]
    AtHomeElsewhere {
        /// The agent.
        agent: AgentName,
        /// Its home.
        home: HostName,
    },
}

impl Fleet {
    /// Lets a host join with its public key. Idempotent; a retired key does not come back.
    pub fn join(&mut self, host: HostName, key: String) -> Result<(), FleetRefusal> {
        match self.keys.get(&host) {
            Some(known) if known.text != key || known.is_retired => {
                Err(FleetRefusal::OtherKey(host))
            }
            Some(_) => Ok(()),
            None => {
                let is_retired = false;
                let text = key;
                self.keys.insert(host, Key { text, is_retired });
                Ok(())
            }
        }
    }

    /// Retires a host's key: what it signs from now on is refused.
    pub fn retire(&mut self, host: &HostName) -> Result<(), FleetRefusal> {
        let known = self.keys.get_mut(host);
        let key = known.ok_or_else(|| FleetRefusal::UnknownHost(host.clone()))?;
        key.is_retired = true;
        Ok(())
    }

    /// Makes a host the home of an agent. A second claim is refused.
    pub fn claim(&mut self, agent: AgentName, host: HostName) -> Result<(), FleetRefusal> {
        if self.key(&host).is_none() {
            return Err(FleetRefusal::UnknownHost(host));
        }
        match self.homes.get(&agent) {
            Some(home) if *home != host => {
                let home = home.clone();
                Err(FleetRefusal::AtHomeElsewhere { agent, home })
            }
            Some(_) | None => {
                self.homes.insert(agent, host);
                Ok(())
            }
        }
    }

    /// The public key of a host, unless it is retired.
    pub fn key(&self, host: &HostName) -> Option<&str> {
        let key = self.keys.get(host).filter(|key| !key.is_retired)?;
        Some(&key.text)
    }

    /// The hosts, by name.
    pub fn hosts(&self) -> impl Iterator<Item = &HostName> {
        self.keys.keys()
    }

    /// Where an agent is at home.
    pub fn home(&self, agent: &AgentName) -> Option<&HostName> {
        self.homes.get(agent)
    }

    /// Every agent that has a home, by name.
    pub fn agents(&self) -> impl Iterator<Item = &AgentName> {
        self.homes.keys()
    }

    /// The agents at home on a host.
    pub fn at_home<'a>(&'a self, host: &'a HostName) -> impl Iterator<Item = &'a AgentName> {
        let here = self.homes.iter().filter(move |(_, home)| *home == host);
        here.map(|(agent, _)| agent)
    }

    /// When a host may fire a deadline that concerns this agent: at once at the agent's home, elsewhere after a grace.
    pub fn may_fire_from(
        &self,
        host: &HostName,
        agent: &AgentName,
        deadline: DateTime<Utc>,
    ) -> DateTime<Utc> {
        match self.home(agent) {
            Some(home) if home != host => deadline + GRACE,
            Some(_) | None => deadline,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str) -> HostName {
        name.parse().expect("a host's name")
    }

    fn agent(name: &str) -> AgentName {
        name.parse().expect("an agent's name")
    }

    fn fleet() -> Fleet {
        let mut fleet = Fleet::default();
        for name in ["tower", "laptop"] {
            fleet
                .join(host(name), format!("key of {name}"))
                .expect("a new host");
        }
        fleet
            .claim(agent("codex"), host("tower"))
            .expect("a free agent");
        fleet
    }

    #[test]
    fn a_second_claim_of_an_agent_is_refused() {
        let mut fleet = fleet();
        assert_eq!(fleet.claim(agent("codex"), host("tower")), Ok(()));
        let refused = fleet.claim(agent("codex"), host("laptop"));
        let (agent, home) = (agent("codex"), host("tower"));
        assert_eq!(refused, Err(FleetRefusal::AtHomeElsewhere { agent, home }));
        let nowhere = fleet.claim("pi".parse().expect("a name"), host("nowhere"));
        assert_eq!(nowhere, Err(FleetRefusal::UnknownHost(host("nowhere"))));
    }

    #[test]
    fn a_retired_key_is_gone_and_does_not_come_back() {
        let mut fleet = fleet();
        assert_eq!(fleet.key(&host("laptop")), Some("key of laptop"));
        fleet.retire(&host("laptop")).expect("a host");
        assert_eq!(fleet.key(&host("laptop")), None);
        let again = fleet.join(host("laptop"), "key of laptop".to_owned());
        assert_eq!(again, Err(FleetRefusal::OtherKey(host("laptop"))));
    }

    #[test]
    fn a_host_of_a_known_name_joins_only_with_its_key() {
        let mut fleet = fleet();
        assert_eq!(fleet.join(host("tower"), "key of tower".to_owned()), Ok(()));
        let other = fleet.join(host("tower"), "another".to_owned());
        assert_eq!(other, Err(FleetRefusal::OtherKey(host("tower"))));
    }

    #[test]
    fn a_deadline_is_the_home_hosts_first() {
        let fleet = fleet();
        let deadline = DateTime::UNIX_EPOCH;
        let from = |name: &str| fleet.may_fire_from(&host(name), &agent("codex"), deadline);
        assert_eq!(from("tower"), deadline);
        assert_eq!(from("laptop"), deadline + GRACE);
    }
}
