//! Says why this host does not handle an agent's mail, where several hosts share a ledger.

use std::fmt;
use std::path::Path;

use fleet::Fleet;
use message_schema::id::AgentName;
use spool::HostName;

use crate::config::Config;
use crate::index::LedgerIndex;

/// An agent whose outbox this host does not read and to which it does not deliver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteAgent {
    agent: AgentName,
    this: HostName,
    home: RemoteHome,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum RemoteHome {
    Elsewhere(HostName),
    Retired(HostName),
    None,
}

impl RemoteAgent {
    /// Looks for the agent's home in the ledger; none if it is this host, or if this is the only host.
    pub fn of(root: &Path, agent: &AgentName) -> Option<RemoteAgent> {
        // Other commands report a config that cannot be read.
        let this = Config::load(root).ok()?.ledger.shared().ok()??.host;
        let (index, _) = LedgerIndex::read(root).ok()?;
        RemoteAgent::among(&index.fleet, &this, agent)
    }

    /// Looks for the agent's home among the hosts of a ledger; `this` is one of them.
    pub fn among(fleet: &Fleet, this: &HostName, agent: &AgentName) -> Option<RemoteAgent> {
        let home = match fleet.home(agent) {
            _ if fleet.is_empty() => return None,
            Some(home) if home == this => return None,
            Some(home) if fleet.key(home).is_none() => RemoteHome::Retired(home.clone()),
            Some(home) => RemoteHome::Elsewhere(home.clone()),
            None => RemoteHome::None,
        };
        let (agent, this) = (agent.clone(), this.clone());
        Some(RemoteAgent { agent, this, home })
    }

    /// The other host that handles the agent's mail; none if no host does.
    pub fn elsewhere(&self) -> Option<&HostName> {
        match &self.home {
            RemoteHome::Elsewhere(home) => Some(home),
            RemoteHome::Retired(_) | RemoteHome::None => None,
        }
    }

    /// The command, without our name, that makes this host the agent's home.
    pub fn command(&self) -> String {
        let RemoteAgent { agent, this, home } = self;
        match home {
            RemoteHome::Elsewhere(_) | RemoteHome::Retired(_) => {
                format!("host move-home {agent} --to {this}")
            }
            RemoteHome::None => format!("host claim {agent}"),
        }
    }
}

impl fmt::Display for RemoteAgent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let agent = &self.agent;
        match &self.home {
            RemoteHome::Elsewhere(home) => write!(out, "{agent} is at home on host {home}"),
            RemoteHome::Retired(home) => {
                write!(
                    out,
                    "{agent} is at home on host {home}, whose key was retired"
                )
            }
            RemoteHome::None => write!(out, "{agent} has no home on any host"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_here_or_elsewhere_or_nobody_handles_its_mail() {
        let host = |name: &str| -> HostName { name.parse().expect("a host's name") };
        let agent = |name: &str| -> AgentName { name.parse().expect("an agent's name") };
        let mut fleet = Fleet::default();
        let remote = |fleet: &Fleet, name| {
            let remote = RemoteAgent::among(fleet, &host("tower"), &agent(name))?;
            Some((remote.to_string(), remote.command()))
        };
        assert_eq!(remote(&fleet, "claude"), None, "this is the only host");
        for (name, lives) in [("tower", "claude"), ("laptop", "codex"), ("box", "pi")] {
            fleet.join(host(name), name.to_owned()).expect("a new host");
            fleet.claim(agent(lives), host(name)).expect("a free agent");
        }
        fleet.retire(&host("box")).expect("a host");
        let some = |why: &str, command: &str| Some((why.to_owned(), command.to_owned()));
        assert_eq!(remote(&fleet, "claude"), None);
        assert_eq!(
            remote(&fleet, "codex"),
            some(
                "codex is at home on host laptop",
                "host move-home codex --to tower"
            )
        );
        assert_eq!(
            remote(&fleet, "pi"),
            some(
                "pi is at home on host box, whose key was retired",
                "host move-home pi --to tower"
            )
        );
        assert_eq!(
            remote(&fleet, "gpt"),
            some("gpt has no home on any host", "host claim gpt")
        );
    }
}
