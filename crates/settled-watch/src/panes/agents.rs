//! The agents: the work that waits for each, and its command with its last words. Then the hosts, if several share the
//! ledger.

use inspect::status::hosts::HostRow;
use message_schema::line::counted;

use super::time::clock;
use crate::app::App;
use crate::ink::{Ink, Pieces, padded, shown};

pub(crate) fn lines(app: &App, width: usize) -> Vec<Pieces> {
    let mut lines = Vec::new();
    for agent in &app.overview.agents {
        let program = agent
            .program
            .as_deref()
            .map_or_else(|| "started by hand".to_owned(), shown);
        let vendor = agent
            .vendor
            .as_deref()
            .map_or_else(String::new, |vendor| format!(" ({})", shown(vendor)));
        let mut said = vec![format!("owes {}", counted(agent.owed, "move", "moves"))];
        if agent.waiting > 0 {
            said.push(format!("{} in its outbox", agent.waiting));
        }
        if agent.dead_letters > 0 {
            said.push(format!(
                "✗ {}",
                counted(agent.dead_letters, "dead letter", "dead letters")
            ));
        }
        let ink = if agent.dead_letters > 0 {
            Ink::Care
        } else {
            Ink::Plain
        };
        let name = padded(&shown(&agent.agent), 16);
        let rest = format!(" {program}{vendor}  {}", said.join(", "));
        lines.push(vec![
            (Ink::Head, format!(" {name}")),
            (ink, screen::cut(&rest, width.saturating_sub(18))),
        ]);
        let Some(run) = &agent.run else { continue };
        let (ink, state) = match &run.ended {
            None if run.is_running => (Ink::Well, "● runs".to_owned()),
            None => (Ink::Alarm, "✗ was cut off".to_owned()),
            Some(how) if how == "exit code 0" => (Ink::Aside, format!("– {how}")),
            Some(how) => (Ink::Care, format!("✗ {}", shown(how))),
        };
        let text = format!(
            "{state}, since {}, {}",
            clock(run.since, app.now),
            shown(&run.review)
        );
        lines.push(vec![
            (Ink::Plain, " ".repeat(18)),
            (ink, screen::cut(&text, width.saturating_sub(19))),
        ]);
        if !run.last_words.is_empty() {
            let words = format!("“{}”", shown(&run.last_words));
            lines.push(vec![
                (Ink::Plain, " ".repeat(18)),
                (Ink::Aside, screen::cut(&words, width.saturating_sub(19))),
            ]);
        }
    }
    if lines.is_empty() {
        lines.push(vec![(Ink::Plain, " no agent has a mailbox".to_owned())]);
    }
    let hosts = app.overview.status.hosts.iter();
    lines.extend(hosts.map(|row| host(row, app, width)));
    lines
}

/// A host that shares the ledger. A silent one may be asleep, which is no alarm.
fn host(row: &HostRow, app: &App, width: usize) -> Pieces {
    let agents: Vec<String> = row
        .agents
        .iter()
        .map(|agent| shown(agent.as_str()))
        .collect();
    let (ink, state) = match &row.heard {
        _ if row.is_retired => (Ink::Aside, "key retired".to_owned()),
        _ if row.is_this => (Ink::Plain, "this host".to_owned()),
        Some(heard) if heard.is_silent(app.now) => (Ink::Aside, heard.describe(app.now)),
        Some(heard) if heard.state == "in_step" => (Ink::Plain, heard.describe(app.now)),
        Some(heard) => (Ink::Care, heard.describe(app.now)),
        None => {
            let last = row
                .last_at
                .map(|at| format!("last record {}", screen::ago(app.now - at)));
            (
                Ink::Plain,
                last.unwrap_or_else(|| "no record yet".to_owned()),
            )
        }
    };
    let home = if agents.is_empty() {
        "no agent".to_owned()
    } else {
        agents.join(", ")
    };
    let name = padded(&shown(&row.name), 16);
    let rest = format!(" host, home of {home}  {state}");
    vec![
        (Ink::Head, format!(" {name}")),
        (ink, screen::cut(&rest, width.saturating_sub(18))),
    ]
}
