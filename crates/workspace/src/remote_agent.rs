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
    use std::sync::Arc;

    use spool::log::Signed;
    use spool::{EntryDraft, Os, Spool};

    use super::*;
    use crate::config;

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

    #[test]
    fn the_host_that_handles_the_mail_is_named_while_it_has_a_key() {
        let host = |name: &str| -> HostName { name.parse().expect("a host's name") };
        let agent = |name: &str| -> AgentName { name.parse().expect("an agent's name") };
        let mut fleet = Fleet::default();
        fleet
            .join(host("box"), "key".to_owned())
            .expect("a new host");
        fleet.claim(agent("pi"), host("box")).expect("a free agent");
        let elsewhere = |fleet: &Fleet, name| {
            let remote = RemoteAgent::among(fleet, &host("tower"), &agent(name));
            remote.expect("not here").elsewhere().cloned()
        };
        assert_eq!(elsewhere(&fleet, "pi"), Some(host("box")));
        assert_eq!(elsewhere(&fleet, "gpt"), None);
        fleet.retire(&host("box")).expect("a host");
        assert_eq!(elsewhere(&fleet, "pi"), None);
    }

    /// A ledger in which the host `box` joined, with the agent pi at home on it.
    fn shared_ledger(root: &Path) {
        let event = serde_json::json!({"happened": {"event": {"host": {"joined": {
            "host": "box", "key": "key", "version": "1", "agents": ["pi"], "policy": "",
        }}}}});
        let joined = EntryDraft {
            at: "2026-02-13T10:00:00.000Z".to_owned(),
            kind: "host".to_owned(),
            rules: 1,
            review: None,
            id: None,
            original: None,
            deliveries: Vec::new(),
            decision: serde_json::value::to_raw_value(&event).expect("JSON"),
        };
        let host: HostName = "box".parse().expect("a host's name");
        let opened = Spool::open(root, Arc::new(Os), &mut |_| Ok(()));
        let mut spool = opened.expect("a spool").spool;
        let batch = spool.propose(vec![joined], &host).expect("a batch");
        let signature = Vec::new();
        let signed = Signed {
            batch,
            host,
            signature,
        };
        spool.mirror(&signed).expect("a record");
    }

    #[test]
    fn the_home_of_an_agent_is_read_from_the_ledger_that_hosts_share() {
        let root = tempfile::tempdir().expect("a directory");
        let pi: AgentName = "pi".parse().expect("a name");
        crate::directory::init(root.path(), std::slice::from_ref(&pi)).expect("a workspace");
        shared_ledger(root.path());
        let of = |host: &str| {
            let config = match host {
                "" => String::new(),
                _ => format!("[ledger]\nlog = \"l\"\nworkspace = \"w\"\nhost = \"{host}\"\n"),
            };
            std::fs::write(root.path().join(config::FILE), config).expect("a config");
            RemoteAgent::of(root.path(), &pi).map(|remote| remote.to_string())
        };
        let elsewhere = "pi is at home on host box".to_owned();
        assert_eq!(of("tower"), Some(elsewhere));
        assert_eq!(of("box"), None, "it is here");
        assert_eq!(of(""), None, "no other host is asked");
    }
}
