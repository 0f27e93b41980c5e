//! The agents: what waits with each, and its command with its last words.

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
        let mut said = vec![format!("owes {} moves", agent.owed)];
        if agent.waiting > 0 {
            said.push(format!("{} in its outbox", agent.waiting));
        }
        if agent.dead_letters > 0 {
            said.push(format!("✗ {} dead letters", agent.dead_letters));
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
    lines
}
