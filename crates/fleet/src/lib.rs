//! The hosts that share a ledger: their keys, the agents at home on each, their common policy, and who may fire a
//! deadline when. A fold of the ledger's records; pure, the time is handed in.

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};
use ledger_records::HostName;
use message_schema::id::AgentName;
use review_words::host_change::{HostChange, JoinedHost};
use serde::{Deserialize, Serialize};

/// The time after a deadline in which only the home host of the agent concerned may fire it. That host has read the
/// agent's outbox, which may still hold an answer in time; after this, another host may end the wait.
pub const GRACE: TimeDelta = TimeDelta::seconds(60);

/// The hosts of a workspace and the homes of its agents; the same on every host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fleet {
    members: BTreeMap<HostName, Member>,
    homes: BTreeMap<AgentName, HostName>,
    /// Retired keys: none of them is accepted again, under any name.
    retired_keys: BTreeSet<String>,
    policy: Option<String>,
}

/// One host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its public key.
    pub key: String,
    /// True if the key is retired: its signatures no longer count.
    pub is_retired: bool,
    /// Its version of settled when it joined.
    pub version: String,
    /// The number and the time of its last record.
    pub last_record: Option<(u64, DateTime<Utc>)>,
}

/// Why a change of the fleet is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FleetRefusal {
    /// A host of that name has another key.
    #[error("host {0} has joined with another key")]
    OtherKey(HostName),
    /// The key was retired.
    #[error("the key of host {0} was retired and cannot be used again")]
    RetiredKey(HostName),
    /// There is no such host, or its key is retired.
    #[error("host {0} has not joined, or its key is retired")]
    UnknownHost(HostName),
    /// The agent is at home elsewhere.
    #[error("agent {agent} is at home on {home}")]
    AtHomeElsewhere {
        /// The agent.
        agent: AgentName,
        /// Its home.
        home: HostName,
    },
    /// The agent has no home.
    #[error("agent {0} has no home on any host")]
    Homeless(AgentName),
    /// A name that no host can have.
    #[error("`{0}` is not a valid host name")]
    NotAHost(String),
    /// Only the host itself may record this.
    #[error("host {by} speaks for host {host}")]
    Elsewhere {
        /// The host that recorded the change.
        by: HostName,
        /// The host that the change is about; only it may record it.
        host: HostName,
    },
    /// The joining host judges by another policy.
    #[error("its policy differs from that of the other hosts")]
    OtherPolicy,
}

impl Fleet {
    /// Folds a change that host `by` recorded. A refused change leaves everything as it was.
    pub fn change(&mut self, change: &HostChange, by: &HostName) -> Result<(), FleetRefusal> {
        let mut next = self.clone();
        next.folded(change, by)?;
        *self = next;
        Ok(())
    }

    fn folded(&mut self, change: &HostChange, by: &HostName) -> Result<(), FleetRefusal> {
        match change {
            HostChange::Joined(joined) => {
                let JoinedHost {
                    host,
                    key,
                    version,
                    agents,
                    policy,
                } = joined;
                let host = own_name(host, by)?;
                if self.policy.get_or_insert_with(|| policy.clone()) != policy {
                    return Err(FleetRefusal::OtherPolicy);
                }
                self.join(host.clone(), key.clone())?;
                let member = self.members.get_mut(&host).expect("it has just joined");
                member.version.clone_from(version);
                agents
                    .iter()
                    .try_for_each(|agent| self.claim(agent.clone(), host.clone()))
            }
            HostChange::Claimed { host, agents } => {
                let host = own_name(host, by)?;
                agents
                    .iter()
                    .try_for_each(|agent| self.claim(agent.clone(), host.clone()))
            }
            HostChange::HomeMoved {
                agent, from, to, ..
            } => {
                let to = name(to)?;
                if self.key(&to).is_none() {
                    return Err(FleetRefusal::UnknownHost(to));
                }
                // A move decided on an older state does nothing.
                match self.homes.get(agent) {
                    None => Err(FleetRefusal::Homeless(agent.clone())),
                    Some(home) if home.as_str() != from => Err(FleetRefusal::AtHomeElsewhere {
                        agent: agent.clone(),
                        home: home.clone(),
                    }),
                    Some(_) => {
                        self.homes.insert(agent.clone(), to);
                        Ok(())
                    }
                }
            }
            HostChange::KeyRetired { host, .. } => self.retire(&name(host)?),
            HostChange::PolicyChanged { policy, .. } => {
                self.policy = Some(policy.clone());
                Ok(())
            }
        }
    }

    /// Notes a record of a host, whatever it contains.
    pub fn note(&mut self, host: &HostName, seq: u64, at: DateTime<Utc>) {
        if let Some(member) = self.members.get_mut(host) {
            member.last_record = Some((seq, at));
        }
    }

    /// Lets a host join with its public key. Idempotent. A retired key is not accepted again; its host joins with a new
    /// one.
    pub fn join(&mut self, host: HostName, key: String) -> Result<(), FleetRefusal> {
        if self.retired_keys.contains(&key) {
            return Err(FleetRefusal::RetiredKey(host));
        }
        match self.members.get(&host) {
            Some(known) if known.key == key => Ok(()),
            Some(known) if !known.is_retired => Err(FleetRefusal::OtherKey(host)),
            Some(_) | None => {
                let member = Member {
                    key,
                    is_retired: false,
                    version: String::new(),
                    last_record: None,
                };
                self.members.insert(host, member);
                Ok(())
            }
        }
    }

    /// Retires a host's key: later signatures with it are refused.
    pub fn retire(&mut self, host: &HostName) -> Result<(), FleetRefusal> {
        let known = self.members.get_mut(host);
        let member = known.ok_or_else(|| FleetRefusal::UnknownHost(host.clone()))?;
        member.is_retired = true;
        self.retired_keys.insert(member.key.clone());
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

    /// Returns the public key of a host, unless it is retired.
    pub fn key(&self, host: &HostName) -> Option<&str> {
        let member = self.members.get(host).filter(|member| !member.is_retired)?;
        Some(&member.key)
    }

    /// Checks that the other hosts accept what a host signs with the key that has this public half. A name alone is not
    /// enough: another machine may have joined under it since.
    pub fn check_key(&self, host: &HostName, key: &str) -> Result<(), FleetRefusal> {
        let name = host.clone();
        match self.members.get(host) {
            None => Err(FleetRefusal::UnknownHost(name)),
            Some(member) if member.key != key => Err(FleetRefusal::OtherKey(name)),
            Some(member) if member.is_retired => Err(FleetRefusal::RetiredKey(name)),
            Some(_) => Ok(()),
        }
    }

    /// True if no host has joined: the workspace has one host.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Returns the hosts, by name, including those with a retired key.
    pub fn members(&self) -> impl Iterator<Item = (&HostName, &Member)> {
        self.members.iter()
    }

    /// Returns the shared part of `settled.toml`, by which every host judges.
    pub fn policy(&self) -> Option<&str> {
        self.policy.as_deref()
    }

    /// Returns the home of an agent.
    pub fn home(&self, agent: &AgentName) -> Option<&HostName> {
        self.homes.get(agent)
    }

    /// Returns every agent that has a home, by name.
    pub fn agents(&self) -> impl Iterator<Item = &AgentName> {
        self.homes.keys()
    }

    /// Returns the agents at home on a host.
    pub fn at_home<'a>(&'a self, host: &'a HostName) -> impl Iterator<Item = &'a AgentName> {
        let here = self.homes.iter().filter(move |(_, home)| *home == host);
        here.map(|(agent, _)| agent)
    }

    /// Returns the time from which a host may fire a deadline that concerns this agent: at once at the agent's home,
    /// elsewhere after [`GRACE`].
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

fn name(text: &str) -> Result<HostName, FleetRefusal> {
    text.parse()
        .map_err(|_| FleetRefusal::NotAHost(text.to_owned()))
}

/// Reads the name of a host, which must be `by` itself.
fn own_name(text: &str, by: &HostName) -> Result<HostName, FleetRefusal> {
    let host = name(text)?;
    if host == *by {
        Ok(host)
    } else {
        let by = by.clone();
        Err(FleetRefusal::Elsewhere { by, host })
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
        assert_eq!(again, Err(FleetRefusal::RetiredKey(host("laptop"))));
        let elsewhere = fleet.join(host("box"), "key of laptop".to_owned());
        assert_eq!(elsewhere, Err(FleetRefusal::RetiredKey(host("box"))));
        assert_eq!(fleet.join(host("laptop"), "another".to_owned()), Ok(()));
        assert_eq!(fleet.key(&host("laptop")), Some("another"));
    }

    #[test]
    fn a_host_has_the_key_it_joined_with_last() {
        let mut fleet = fleet();
        let laptop = host("laptop");
        assert_eq!(fleet.check_key(&laptop, "key of laptop"), Ok(()));
        fleet.retire(&laptop).expect("a host");
        let retired = Err(FleetRefusal::RetiredKey(laptop.clone()));
        assert_eq!(fleet.check_key(&laptop, "key of laptop"), retired);
        let rejoined = fleet.join(laptop.clone(), "another".to_owned());
        assert_eq!(rejoined, Ok(()));
        let other = Err(FleetRefusal::OtherKey(laptop.clone()));
        assert_eq!(fleet.check_key(&laptop, "key of laptop"), other);
        assert_eq!(fleet.check_key(&laptop, "another"), Ok(()));
        let unknown = Err(FleetRefusal::UnknownHost(host("box")));
        assert_eq!(fleet.check_key(&host("box"), "another"), unknown);
    }

    fn joined(name: &str, agents: &[&str], policy: &str) -> HostChange {
        HostChange::Joined(JoinedHost {
            host: name.to_owned(),
            key: format!("key of {name}"),
            version: "0.1.0".to_owned(),
            agents: agents.iter().map(|name| agent(name)).collect(),
            policy: policy.to_owned(),
        })
    }

    #[test]
    fn a_refused_change_leaves_everything_as_it_was() {
        let mut fleet = Fleet::default();
        let tower = joined("tower", &["claude", "codex"], "");
        assert_eq!(fleet.change(&tower, &host("tower")), Ok(()));
        let before = fleet.clone();
        for (change, by, refused) in [
            // The earlier agents of the same host are not claimed either.
            (
                joined("laptop", &["pi", "codex"], ""),
                "laptop",
                FleetRefusal::AtHomeElsewhere {
                    agent: agent("codex"),
                    home: host("tower"),
                },
            ),
            (
                joined("laptop", &[], "rounds.max = 3"),
                "laptop",
                FleetRefusal::OtherPolicy,
            ),
            (
                joined("laptop", &[], ""),
                "tower",
                FleetRefusal::Elsewhere {
                    by: host("tower"),
                    host: host("laptop"),
                },
            ),
        ] {
            assert_eq!(fleet.change(&change, &host(by)), Err(refused));
            assert_eq!(fleet, before);
        }
    }

    #[test]
    fn a_home_moves_only_from_where_it_is() {
        let mut fleet = Fleet::default();
        for (name, agents) in [("tower", &["codex"][..]), ("laptop", &[]), ("box", &[])] {
            let change = joined(name, agents, "");
            assert_eq!(fleet.change(&change, &host(name)), Ok(()));
        }
        let moved = |from: &str, to: &str| HostChange::HomeMoved {
            agent: agent("codex"),
            from: from.to_owned(),
            to: to.to_owned(),
            decision: review_words::host_change::HostDecision {
                by: "ann".to_owned(),
                reason: "the tower is off".to_owned(),
            },
        };
        let by = host("box");
        assert_eq!(fleet.change(&moved("tower", "laptop"), &by), Ok(()));
        let late = fleet.change(&moved("tower", "box"), &by);
        let (agent, home) = (agent("codex"), host("laptop"));
        assert_eq!(late, Err(FleetRefusal::AtHomeElsewhere { agent, home }));
        let nowhere = fleet.change(&moved("laptop", "nowhere"), &by);
        assert_eq!(nowhere, Err(FleetRefusal::UnknownHost(host("nowhere"))));
    }

    #[test]
    fn a_host_of_a_known_name_joins_only_with_its_key() {
        let mut fleet = fleet();
        assert_eq!(fleet.join(host("tower"), "key of tower".to_owned()), Ok(()));
        let other = fleet.join(host("tower"), "another".to_owned());
        assert_eq!(other, Err(FleetRefusal::OtherKey(host("tower"))));
    }

    #[test]
    fn a_fleet_lists_its_hosts_their_agents_and_their_last_records() {
        let mut fleet = Fleet::default();
        assert!(fleet.is_empty());
        assert_eq!(fleet.policy(), None);
        for (name, agents) in [("tower", &["pi", "codex"][..]), ("laptop", &["claude"])] {
            let change = joined(name, agents, "rounds.max = 3");
            assert_eq!(fleet.change(&change, &host(name)), Ok(()));
        }
        assert!(!fleet.is_empty());
        assert_eq!(fleet.policy(), Some("rounds.max = 3"));
        let at = DateTime::UNIX_EPOCH;
        fleet.note(&host("laptop"), 7, at);
        let before = fleet.clone();
        fleet.note(&host("nowhere"), 8, at);
        assert_eq!(fleet, before, "a host that has not joined has no records");
        let listed: Vec<_> = fleet
            .members()
            .map(|(name, member)| {
                let key = member.key.as_str();
                (name.as_str(), key, &*member.version, member.last_record)
            })
            .collect();
        assert_eq!(
            listed,
            [
                ("laptop", "key of laptop", "0.1.0", Some((7, at))),
                ("tower", "key of tower", "0.1.0", None),
            ]
        );
        let all: Vec<&str> = fleet.agents().map(AgentName::as_str).collect();
        assert_eq!(all, ["claude", "codex", "pi"]);
        let tower = host("tower");
        let there: Vec<&str> = fleet.at_home(&tower).map(AgentName::as_str).collect();
        assert_eq!(there, ["codex", "pi"]);
    }

    #[test]
    fn a_host_claims_more_agents_for_itself_alone() {
        let mut fleet = fleet();
        let claimed = |by: &str, agents: &[&str]| HostChange::Claimed {
            host: by.to_owned(),
            agents: agents.iter().map(|name| agent(name)).collect(),
        };
        let more = claimed("laptop", &["pi", "claude"]);
        assert_eq!(fleet.change(&more, &host("laptop")), Ok(()));
        assert_eq!(fleet.home(&agent("pi")), Some(&host("laptop")));
        assert_eq!(fleet.home(&agent("claude")), Some(&host("laptop")));
        let spoken_for = fleet.change(&claimed("laptop", &["gpt"]), &host("tower"));
        let (by, speaker_of) = (host("tower"), host("laptop"));
        assert_eq!(
            spoken_for,
            Err(FleetRefusal::Elsewhere {
                by,
                host: speaker_of
            })
        );
        assert_eq!(fleet.home(&agent("gpt")), None);
        let unfit = fleet.change(&claimed("a host", &["gpt"]), &host("tower"));
        assert_eq!(unfit, Err(FleetRefusal::NotAHost("a host".to_owned())));
    }

    #[test]
    fn any_host_retires_a_key_and_changes_the_policy_of_all() {
        let mut fleet = fleet();
        let decision = || review_words::host_change::HostDecision {
            by: "ann".to_owned(),
            reason: "stolen".to_owned(),
        };
        let retired = |host: &str| HostChange::KeyRetired {
            host: host.to_owned(),
            decision: decision(),
        };
        let by = host("tower");
        assert_eq!(fleet.change(&retired("laptop"), &by), Ok(()));
        assert_eq!(fleet.key(&host("laptop")), None);
        let unknown = fleet.change(&retired("nowhere"), &by);
        assert_eq!(unknown, Err(FleetRefusal::UnknownHost(host("nowhere"))));
        let changed = HostChange::PolicyChanged {
            policy: "profile = \"gate\"".to_owned(),
            decision: decision(),
        };
        assert_eq!(fleet.change(&changed, &by), Ok(()));
        assert_eq!(fleet.policy(), Some("profile = \"gate\""));
    }

    #[test]
    fn a_deadline_is_the_home_hosts_first() {
        let fleet = fleet();
        let deadline = DateTime::UNIX_EPOCH;
        let from = |name: &str| fleet.may_fire_from(&host(name), &agent("codex"), deadline);
        assert_eq!(from("tower"), deadline);
        assert_eq!(from("laptop"), deadline + GRACE);
        let homeless = fleet.may_fire_from(&host("laptop"), &agent("pi"), deadline);
        assert_eq!(homeless, deadline, "nobody is waited for");
    }
}
