//! What became of reviews over time, as bars with their numbers.

use chrono::TimeDelta;
use workspace::clock::span;

use crate::app::App;
use crate::ink::{Ink, Pieces, padded, shown};

/// The newest days that are shown.
const DAYS: usize = 14;

pub(crate) fn lines(app: &App, width: usize) -> Vec<Pieces> {
    let history = &app.overview.history;
    let mut lines = vec![head("REVIEWS OPENED A DAY (UTC)")];
    let days = &history.days[history.days.len().saturating_sub(DAYS)..];
    let most = days.iter().map(|day| day.opened).max().unwrap_or(0);
    for day in days {
        let more = format!(
            "{} opened, {} approved, {} to a person, {} closed",
            day.opened, day.approved, day.escalated, day.closed
        );
        lines.push(row(&day.day.to_string(), day.opened, most, &more, width));
    }
    lines.push(head("ROUNDS TO APPROVAL"));
    let most = history
        .rounds_to_approval
        .values()
        .copied()
        .max()
        .unwrap_or(0);
    for (round, count) in &history.rounds_to_approval {
        let name = format!("round {round}");
        lines.push(row(
            &name,
            *count,
            most,
            &format!("{count} approvals"),
            width,
        ));
    }
    lines.push(head("TIME WAITED FOR (waits that are over)"));
    let most = history.waited_s.values().copied().max().unwrap_or(0);
    for (side, seconds) in &history.waited_s {
        lines.push(row(side, *seconds, most, &seconds_of(*seconds), width));
    }
    lines.push(head("REFUSALS BY CODE"));
    let mut refusals: Vec<_> = history.refusals.iter().collect();
    refusals.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let most = refusals.first().map_or(0, |(_, count)| **count);
    for (code, count) in refusals {
        lines.push(row(code, *count, most, &count.to_string(), width));
    }
    lines.push(head("REVIEWERS"));
    for score in &history.reviewers {
        let mean = score
            .answered_s
            .checked_div(score.answers)
            .map_or_else(|| "-".to_owned(), seconds_of);
        let text = format!(
            "first answer approved {} of {}; {} findings, {} blocking, {} proven, {} reopened; answers after {mean}",
            score.first_approvals,
            score.first_verdicts,
            score.findings,
            score.blocking,
            score.proven,
            score.reopened
        );
        let name = padded(&shown(&score.reviewer), 16);
        lines.push(vec![
            (Ink::Head, format!("   {name} ")),
            (Ink::Plain, screen::cut(&text, width.saturating_sub(21))),
        ]);
    }
    lines
}

fn head(text: &str) -> Pieces {
    vec![(Ink::Head, format!(" {text}"))]
}

fn row(name: &str, count: u64, most: u64, text: &str, width: usize) -> Pieces {
    let bar_width = (width / 4).clamp(6, 40);
    let full = if most == 0 {
        0
    } else {
        usize::try_from((count * bar_width as u64).div_ceil(most)).unwrap_or(bar_width)
    };
    let bar = "█".repeat(full) + &" ".repeat(bar_width - full);
    let room = width.saturating_sub(bar_width + 27);
    vec![
        (Ink::Plain, format!("   {} ", padded(&shown(name), 22))),
        (Ink::Well, bar),
        (Ink::Plain, format!(" {}", screen::cut(text, room))),
    ]
}

fn seconds_of(seconds: u64) -> String {
    span(TimeDelta::seconds(
        i64::try_from(seconds).unwrap_or(i64::MAX / 1_000),
    ))
}
