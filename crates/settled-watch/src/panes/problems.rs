//! Everything that needs an operator or a correction, each with its command; then what was handed off, and what waits
//! for a person.

use screen::ago;

use crate::app::App;
use crate::ink::{Ink, Pieces, shown, wrapped};

pub(crate) fn lines(app: &App, width: usize) -> Vec<Pieces> {
    let overview = &app.overview;
    let mut lines = Vec::new();
    if overview.problems.is_empty() {
        lines.push(vec![(Ink::Well, " ✓ nothing needs anybody".to_owned())]);
    }
    for problem in &overview.problems {
        let since = problem
            .since
            .map_or_else(String::new, |since| format!("  {}", ago(app.now - since)));
        lines.push(vec![
            (Ink::Alarm, format!(" ✗ {}", problem.kind.word())),
            (Ink::Aside, since),
        ]);
        let text = |text: &str, ink, lines_max| -> Vec<Pieces> {
            let lines = wrapped(text, width.saturating_sub(6), lines_max);
            let line = |line| vec![(ink, format!("     {line}"))];
            lines.into_iter().map(line).collect()
        };
        lines.extend(text(&problem.what, Ink::Plain, 3));
        let fix = &problem.fix;
        lines.extend(text(&format!("{}: {}", fix.actor, fix.run), Ink::Head, 3));
    }
    for task in &overview.tasks {
        let claimed = task.claimed_by.as_deref().map_or_else(
            || "nobody claims it".to_owned(),
            |by| format!("claimed by {}", shown(by)),
        );
        let text = format!(
            " {} of pull request {} went to {}: {}; {claimed}",
            shown(&task.task),
            task.pr,
            shown(&task.target),
            shown(&task.findings.join(", "))
        );
        lines.push(vec![(Ink::Head, " handed off".to_owned())]);
        lines.push(vec![(Ink::Plain, screen::cut(&text, width))]);
    }
    for finding in &overview.queue {
        let title = finding.title.as_deref().map_or_else(String::new, shown);
        let text = format!(
            "   {} {} of {}: {}  {title}",
            shown(&finding.id),
            finding.severity,
            shown(&finding.review),
            finding.state
        );
        lines.push(vec![(Ink::Head, " with a person".to_owned())]);
        lines.push(vec![(Ink::Plain, screen::cut(&text, width))]);
    }
    lines
}
