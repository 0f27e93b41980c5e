//! `settled host list`: the hosts, the agents at home on each, and the last record each has.

use chrono::{DateTime, Utc};
use inspect::status::hosts::{HostRow, rows};
use message_schema::id::AgentName;
use message_schema::line::escaped;
use screen::ago;
use serde::Serialize;
use views::answer::CommandOutput;
use views::exit::Exit;
use views::failure::Failure;
use views::table::columns;
use workspace::operator_alerts::{self, AlertKind};
use workspace::{clock, directory, heartbeat};

use super::{HostContext, member};

/// The hosts of a ledger. Fields are added, never changed.
#[derive(Debug, Serialize)]
struct Hosts {
    /// This host.
    host: String,
    /// The log.
    log: String,
    /// The workspace's name there.
    workspace: String,
    /// The reason this host cannot follow the log, if any.
    trouble: Option<String>,
    /// Agents with a mailbox here that have no home on any host: their mail is not read.
    homeless: Vec<AgentName>,
    /// All hosts, by name.
    hosts: Vec<HostRow>,
}

pub(super) fn run(context: &HostContext) -> Result<Exit, Failure> {
    let (root, shared) = context.shared()?;
    let (fleet, now) = (member::fleet(root)?, clock::now());
    let mut alerts = operator_alerts::read(root).into_iter();
    let trouble = alerts.find(|alert| alert.kind == AlertKind::SharedLedger);
    let mut homeless = directory::agents(root)?;
    homeless.retain(|agent| fleet.home(agent).is_none());
    let hosts = Hosts {
        host: shared.host.to_string(),
        log: shared.log,
        workspace: shared.workspace,
        trouble: trouble.map(|alert| alert.what),
        homeless,
        hosts: rows(&fleet, Some(&shared.host), &heartbeat::read(root)),
    };
    context.say(&CommandOutput::new(hosts), |hosts| table(hosts, now))
}

fn table(hosts: &Hosts, now: DateTime<Utc>) -> String {
    // A log without heartbeats would leave columns empty.
    let head = [
        "HOST",
        "AGENTS",
        "LAST RECORD",
        "HEARD",
        "BEHIND",
        "CLOCK",
        "VERSION",
    ];
    let rows = hosts.hosts.iter().map(|row| cells(row, now));
    let rows = std::iter::once(head.map(str::to_owned)).chain(rows);
    let mut text = if hosts.hosts.iter().any(|row| row.heard.is_some()) {
        columns(&rows.collect::<Vec<_>>())
    } else {
        // No heartbeat has come yet, or the log is a repository, which carries none.
        let rows = rows.map(|[host, agents, last, _, _, _, version]| [host, agents, last, version]);
        columns(&rows.collect::<Vec<_>>())
    };
    text += &format!("ledger: {} at {}\n", hosts.workspace, hosts.log);
    for agent in &hosts.homeless {
        text += &format!(
            "agent {agent} has a mailbox here and no home: `settled host claim {agent}`\n"
        );
    }
    if let Some(trouble) = &hosts.trouble {
        text += &format!("{}\n", escaped(trouble));
    }
    text
}

fn cells(row: &HostRow, now: DateTime<Utc>) -> [String; 7] {
    let agents: Vec<&str> = row.agents.iter().map(AgentName::as_str).collect();
    let last = row.last_record.zip(row.last_at);
    let last = last.map(|(seq, at)| format!("{seq}, {}", ago(now - at)));
    let mark = if row.is_this { " (this one)" } else { "" };
    let agents = if agents.is_empty() {
        "-".to_owned()
    } else {
        agents.join(", ")
    };
    let version = match &row.heard {
        _ if row.is_retired => "key retired",
        // The version of the running program, not of the one that joined.
        Some(heard) => &heard.version,
        None => &row.version,
    };
    let [heard, behind, clock] = heard_cells(row, now);
    [
        format!("{}{mark}", row.name),
        agents,
        last.unwrap_or_else(|| "-".to_owned()),
        heard,
        behind,
        clock,
        version.to_owned(),
    ]
}

/// A host's last heartbeat, how many records behind it was, and the offset of its clock.
fn heard_cells(row: &HostRow, now: DateTime<Utc>) -> [String; 3] {
    let none = || "-".to_owned();
    let Some(heard) = row.heard.as_ref().filter(|_| !row.is_retired) else {
        return [none(), none(), none()];
    };
    if heard.is_silent(now) {
        // The lag in an old heartbeat means nothing.
        return [heard.describe(now), none(), none()];
    }
    let state = match heard.state.as_str() {
        "in_step" => String::new(),
        other => format!(", {other}"),
    };
    [
        format!("{}{state}", ago(now - heard.at)),
        heard.behind.to_string(),
        heard.clock(),
    ]
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use inspect::status::hosts::LastHeard;

    use super::*;

    fn now() -> DateTime<Utc> {
        "2026-02-13T10:00:00Z".parse().expect("a time")
    }

    fn row(name: &str, agents: &[&str]) -> HostRow {
        HostRow {
            name: name.to_owned(),
            is_this: false,
            agents: agents
                .iter()
                .map(|name| name.parse().expect("a name"))
                .collect(),
            version: "0.1.0".to_owned(),
            key: "ed25519:00".to_owned(),
            is_retired: false,
            last_record: None,
            last_at: None,
            heard: None,
        }
    }

    fn heard(seconds: i64, state: &str) -> LastHeard {
        LastHeard {
            at: now() - TimeDelta::seconds(seconds),
            version: "0.2.0".to_owned(),
            state: state.to_owned(),
            behind: 4,
            clock_ahead_ms: -1_500,
        }
    }

    fn hosts(rows: Vec<HostRow>) -> Hosts {
        Hosts {
            host: "tower".to_owned(),
            log: "nats://one:4222".to_owned(),
            workspace: "team".to_owned(),
            trouble: None,
            homeless: Vec::new(),
            hosts: rows,
        }
    }

    #[test]
    fn hosts_that_were_not_heard_are_listed_without_columns_for_it() {
        let mut tower = row("tower", &["claude", "pi"]);
        (tower.is_this, tower.last_record) = (true, Some(7));
        tower.last_at = Some(now() - TimeDelta::minutes(2));
        let mut laptop = row("laptop", &[]);
        laptop.is_retired = true;
        let mut hosts = hosts(vec![laptop, tower]);
        hosts.homeless = vec!["gpt".parse().expect("a name")];
        hosts.trouble = Some("frozen\u{7}".to_owned());
        let text = table(&hosts, now());
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| {
                line.split("  ")
                    .map(str::trim)
                    .filter(|cell| !cell.is_empty())
                    .collect()
            })
            .collect();
        assert_eq!(lines[0], ["HOST", "AGENTS", "LAST RECORD", "VERSION"]);
        assert_eq!(lines[1], ["laptop", "-", "-", "key retired"]);
        let last = format!("7, {}", ago(TimeDelta::minutes(2)));
        assert_eq!(lines[2], ["tower (this one)", "claude, pi", &last, "0.1.0"]);
        assert_eq!(lines[3], ["ledger: team at nats://one:4222"]);
        assert_eq!(
            lines[4],
            ["agent gpt has a mailbox here and no home: `settled host claim gpt`"]
        );
        assert!(lines[5][0].starts_with("frozen\\u"), "{text}");
    }

    #[test]
    fn a_host_that_was_heard_shows_what_it_said_unless_it_is_silent_or_retired() {
        let with = |heard: LastHeard| {
            let heard = Some(heard);
            HostRow {
                heard,
                ..row("laptop", &["codex"])
            }
        };
        let [in_step, waiting] = ["in_step", "waiting"].map(|word| with(heard(5, word)));
        let none = || "-".to_owned();
        let five = ago(TimeDelta::seconds(5));
        let (behind, clock) = ("4".to_owned(), "-1.5 s".to_owned());
        assert_eq!(
            heard_cells(&in_step, now()),
            [five.clone(), behind.clone(), clock.clone()]
        );
        assert_eq!(
            heard_cells(&waiting, now()),
            [format!("{five}, waiting"), behind, clock]
        );
        let silent = with(heard(3_600, "in_step"));
        let [heard, behind, clock] = heard_cells(&silent, now());
        assert!(heard.starts_with("silent for "), "{heard}");
        assert_eq!([behind, clock], [none(), none()]);
        let mut retired = in_step;
        // The version is that of the running program.
        assert_eq!(cells(&retired, now())[6], "0.2.0");
        retired.is_retired = true;
        assert_eq!(heard_cells(&retired, now()), [none(), none(), none()]);
        assert_eq!(cells(&retired, now())[6], "key retired");
        let text = table(&hosts(vec![waiting]), now());
        for word in ["HEARD", "BEHIND", "CLOCK", "-1.5 s"] {
            assert!(text.contains(word), "{text}");
        }
    }
}
