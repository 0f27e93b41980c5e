//! `settled host list`: the hosts, the agents at home on each, and how far each has come.

use message_schema::id::AgentName;
use screen::ago;
use serde::Serialize;
use views::answer::CommandOutput;
use views::exit::Exit;
use views::failure::Failure;
use views::table::columns;
use workspace::{clock, operator_alerts};

use super::{HostContext, member};

/// The hosts of a ledger. Fields are added, never changed.
#[derive(Debug, Serialize)]
struct Hosts {
    /// This host.
    host: String,
    /// Where the ledger's end is.
    log: String,
    /// The workspace's name there.
    workspace: String,
    /// What keeps this host from following, if anything does.
    trouble: Option<String>,
    /// All of them, by name.
    hosts: Vec<Host>,
}

/// One host.
#[derive(Debug, Serialize)]
struct Host {
    /// Its name.
    name: String,
    /// Its public key.
    key: String,
    /// Whether the key is retired.
    is_retired: bool,
    /// Its version when it joined.
    version: String,
    /// The agents at home there.
    agents: Vec<AgentName>,
    /// Its last record.
    last_record: Option<HostRecord>,
}

#[derive(Debug, Serialize)]
struct HostRecord {
    /// Its number.
    seq: u64,
    /// When it was judged.
    at: String,
    /// How long ago, in seconds.
    ago_s: i64,
}

pub(super) fn run(context: &HostContext) -> Result<Exit, Failure> {
    let (root, shared) = context.shared()?;
    let (fleet, now) = (member::fleet(root)?, clock::now());
    let hosts = fleet.members().map(|(name, member)| Host {
        name: name.to_string(),
        key: member.key.clone(),
        is_retired: member.is_retired,
        version: member.version.clone(),
        agents: fleet.at_home(name).cloned().collect(),
        last_record: member.last_record.map(|(seq, at)| HostRecord {
            seq,
            at: at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true),
            ago_s: (now - at).num_seconds(),
        }),
    });
    let mut alerts = operator_alerts::read(root).into_iter();
    let trouble = alerts.find(|alert| alert.kind == operator_alerts::AlertKind::SharedLedger);
    let hosts = Hosts {
        host: shared.host.to_string(),
        log: shared.log,
        workspace: shared.workspace,
        trouble: trouble.map(|alert| alert.what),
        hosts: hosts.collect(),
    };
    context.say(&CommandOutput::new(hosts), said)
}

fn said(hosts: &Hosts) -> String {
    let mut lines = vec![["HOST", "AGENTS", "LAST RECORD", "VERSION"].map(str::to_owned)];
    for host in &hosts.hosts {
        let agents: Vec<&str> = host.agents.iter().map(AgentName::as_str).collect();
        let last = host.last_record.as_ref().map_or("-".to_owned(), |last| {
            format!(
                "{}, {}",
                last.seq,
                ago(chrono::TimeDelta::seconds(last.ago_s))
            )
        });
        let mark = if host.name == hosts.host {
            " (this one)"
        } else {
            ""
        };
        let version = if host.is_retired {
            "key retired"
        } else {
            &host.version
        };
        lines.push([
            format!("{}{mark}", host.name),
            if agents.is_empty() {
                "-".to_owned()
            } else {
                agents.join(", ")
            },
            last,
            version.to_owned(),
        ]);
    }
    let mut text = columns(&lines);
    text += &format!("ledger: {} at {}\n", hosts.workspace, hosts.log);
    if let Some(trouble) = &hosts.trouble {
        text += &format!("{}\n", message_schema::line::escaped(trouble));
    }
    text
}
