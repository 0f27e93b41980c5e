//! The course of reviews over time, as bars with numbers.

use chrono::TimeDelta;
use workspace::clock::span;

use crate::app::App;
use crate::ink::{Ink, Pieces, padded, shown, wrapped};

/// The number of newest days shown.
const DAYS: usize = 14;

/// The most lines that a row takes.
const LINES_MAX: usize = 9;

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
        lines.extend(row(&day.day.to_string(), day.opened, most, &more, width));
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
        lines.extend(row(
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
        lines.extend(row(side, *seconds, most, &seconds_of(*seconds), width));
    }
    lines.push(head("REFUSALS BY CODE"));
    let mut refusals: Vec<_> = history.refusals.iter().collect();
    refusals.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let most = refusals.first().map_or(0, |(_, count)| **count);
    for (code, count) in refusals {
        lines.extend(row(code, *count, most, &count.to_string(), width));
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
        let begin = vec![(
            Ink::Head,
            format!("   {} ", padded(&shown(&score.reviewer), 16)),
        )];
        lines.extend(beside(begin, 20, &text, width));
    }
    lines
}

fn head(text: &str) -> Pieces {
    vec![(Ink::Head, format!(" {text}"))]
}

fn row(name: &str, count: u64, most: u64, text: &str, width: usize) -> Vec<Pieces> {
    let bar_width = (width / 4).clamp(6, 40);
    let full = if most == 0 {
        0
    } else {
        usize::try_from((count * bar_width as u64).div_ceil(most)).unwrap_or(bar_width)
    };
    let bar = "█".repeat(full) + &" ".repeat(bar_width - full);
    let begin = vec![
        (Ink::Plain, format!("   {} ", padded(&shown(name), 22))),
        (Ink::Well, bar),
        (Ink::Plain, " ".to_owned()),
    ];
    beside(begin, bar_width + 27, text, width)
}

/// A text after a line's beginning of this many cells; the rest goes below.
fn beside(begin: Pieces, cells: usize, text: &str, width: usize) -> Vec<Pieces> {
    let mut begin = Some(begin);
    let line = |text| {
        let indent = || vec![(Ink::Plain, " ".repeat(cells))];
        let mut pieces = begin.take().unwrap_or_else(indent);
        pieces.push((Ink::Plain, text));
        pieces
    };
    let lines = wrapped(text, width.saturating_sub(cells), LINES_MAX);
    lines.into_iter().map(line).collect()
}

fn seconds_of(seconds: u64) -> String {
    let seconds = i64::try_from(seconds).ok();
    span(
        seconds
            .and_then(TimeDelta::try_seconds)
            .unwrap_or(TimeDelta::MAX),
    )
}
