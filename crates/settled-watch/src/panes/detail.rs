//! The chosen review: at a glance, its threads, its timeline.

use cockpit::ReviewDetail;
use cockpit::gate::ClauseState;
use cockpit::timeline::{RoundView, TimelineEvent};
use cockpit::words::with_short_commits;
use inspect::status::threads::ThreadView;

use super::list::shape;
use super::time::{clock, left};
use crate::app::App;
use crate::ink::{Ink, Pieces, bar, shown, wrapped};

/// The column in which values begin.
const VALUES: usize = 10;

/// The number of newest events in the summary.
const EVENTS: usize = 8;

/// The most lines that an event of the timeline takes.
const EVENT_LINES: usize = 6;

fn plain(text: impl Into<String>) -> Vec<Pieces> {
    vec![vec![(Ink::Plain, text.into())]]
}

fn detail_of(app: &App) -> Result<&ReviewDetail, Vec<Pieces>> {
    app.detail
        .as_ref()
        .ok_or_else(|| plain(" no review is chosen; ↑↓ choose one"))
}

/// A label, and its value on at most `lines_max` lines.
fn named(name: &str, ink: Ink, text: &str, width: usize, lines_max: usize) -> Vec<Pieces> {
    let lines = wrapped(text, width.saturating_sub(VALUES + 1), lines_max);
    let first = format!(" {name:<9}");
    let line = |(n, line): (usize, String)| {
        let head = if n == 0 {
            first.clone()
        } else {
            " ".repeat(VALUES)
        };
        vec![(Ink::Head, head), (ink, line)]
    };
    lines.into_iter().enumerate().map(line).collect()
}

/// Everything that decides the next step.
pub(crate) fn summary(app: &App, width: usize) -> Vec<Pieces> {
    let detail = match detail_of(app) {
        Ok(detail) => detail,
        Err(lines) => return lines,
    };
    let mut lines = title(detail, width);
    let why = &detail.why;
    match (&why.missing, detail.mover()) {
        (Some(missing), mover) => {
            let actor = mover.map_or_else(|| "somebody".to_owned(), |mover| shown(&mover));
            let row = &detail.row;
            let (_, time) = left(row.due_at, row.wait_s, Some(row.since), app.now);
            let who = format!("{actor} must move ({time})");
            let missing = with_short_commits(missing);
            lines.extend(named("WHO", Ink::Head, &who, width, 1));
            lines.extend(named("MISSING", Ink::Care, &missing, width, 4));
        }
        (None, _) => lines.extend(named(
            "WHO",
            Ink::Well,
            "nobody has to move; nothing is missing",
            width,
            1,
        )),
    }
    let otherwise = match why.otherwise_at {
        Some(at) => format!("at {} settled {}", clock(at, app.now), why.otherwise),
        None => format!("settled {}", why.otherwise),
    };
    lines.extend(named("ELSE", Ink::Aside, &otherwise, width, 2));
    if let Some(round) = detail.rounds.last() {
        lines.extend(way(round, app, width));
    }
    lines.extend(gate(detail, width));
    lines.extend(budgets(detail, app, width));
    for thread in &detail.threads.threads {
        lines.push(thread_line(thread, width));
    }
    if detail.threads.threads.is_empty() {
        lines.extend(named("THREADS", Ink::Aside, "none", width, 1));
    }
    let mut newest = detail
        .rounds
        .iter()
        .rev()
        .flat_map(|round| round.events.iter().rev());
    for (n, event) in newest.by_ref().take(EVENTS).enumerate() {
        let name = if n == 0 { "LATELY" } else { "" };
        lines.extend(event_lines(name, event, app, width, 1));
    }
    lines
}

/// The review's name, its phase and its commits.
fn title(detail: &ReviewDetail, width: usize) -> Vec<Pieces> {
    let row = &detail.row;
    let (ink, shape) = shape(row);
    let reason = row
        .reason
        .as_ref()
        .map_or_else(String::new, |reason| format!(" ({})", shown(reason)));
    let stale = if row.stale == Some(true) {
        ", stale"
    } else {
        ""
    };
    let phase = format!(
        "{shape} {}{stale}{reason}, round {} of {}, generation {}",
        row.phase, row.round_of_generation, row.rounds, row.generation
    );
    let name = format!(" {}  ", shown(&row.review));
    let room = width.saturating_sub(screen::cells(&name));
    let mut lines = vec![vec![(Ink::Head, name), (ink, screen::cut(&phase, room))]];
    let change = &detail.change;
    let short = |commit: &String| commit.chars().take(12).collect::<String>();
    let parts = [
        change
            .head
            .as_ref()
            .map(|head| format!("head {}", short(head))),
        change
            .base
            .as_ref()
            .map(|base| format!("base {}", short(base))),
        change
            .branch
            .as_ref()
            .map(|branch| format!("branch {}", shown(branch))),
        (!change.files.is_empty()).then(|| format!("{} files", change.files.len())),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if !parts.is_empty() {
        lines.extend(named("CHANGE", Ink::Aside, &parts.join(" · "), width, 1));
    }
    lines
}

/// The way through a round: the stops reached, and those ahead.
fn way(round: &RoundView, app: &App, width: usize) -> Vec<Pieces> {
    let stop = |stop: &cockpit::timeline::RoundStop| {
        let threads = match (stop.stop, stop.threads) {
            ("feedback", threads) if threads > 0 => format!(" ({threads})"),
            (_, _) => String::new(),
        };
        match stop.at {
            Some(at) => format!("● {} {}{threads}", stop.stop, clock(at, app.now)),
            None => format!("○ {}", stop.stop),
        }
    };
    let stops: Vec<String> = round.stops.iter().map(stop).collect();
    let text = format!("{}: {}", round.round_of_generation, stops.join(" ─ "));
    named("ROUND", Ink::Plain, &text, width, 3)
}

fn gate(detail: &ReviewDetail, width: usize) -> Vec<Pieces> {
    let look = |state| match state {
        ClauseState::Met => (Ink::Well, "✓"),
        ClauseState::Broken => (Ink::Alarm, "✗"),
        ClauseState::Pending => (Ink::Care, "…"),
    };
    let (state, verdict) = detail.gate.verdict();
    let (ink, mark) = look(state);
    let mut lines = named("GATE", ink, &format!("{mark} {verdict}"), width, 2);
    for clause in &detail.gate.clauses {
        let (ink, mark) = look(clause.is);
        let what = with_short_commits(&clause.what);
        let text = format!("{mark} {}: {what}", clause.clause);
        lines.extend(named("", ink, &text, width, 2));
    }
    lines
}

fn budgets(detail: &ReviewDetail, app: &App, width: usize) -> Vec<Pieces> {
    let budget = |budget: &cockpit::supply::Supply| {
        let left = budget.left_at(app.now);
        let told = match budget.ends_at {
            Some(end) if end < app.now => "overdue".to_owned(),
            Some(end) => format!("{} left", workspace::clock::span(end - app.now)),
            None => format!("{left} of {} left", budget.whole),
        };
        let name = budget.of.replace('_', "-");
        format!("{name} {} {told}", bar(left, budget.whole, 6))
    };
    let mut parts: Vec<String> = detail.budgets.iter().map(budget).collect();
    parts.extend(detail.usage.iter().map(|usage| {
        format!(
            "tokens of {}: {} in, {} out, {:.2} USD (as reported)",
            usage.agent, usage.input_tokens, usage.output_tokens, usage.cost_usd
        )
    }));
    let room = width.saturating_sub(VALUES + 1);
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        let part = screen::cut(&shown(&part), room);
        match lines.last_mut() {
            Some(line) if screen::cells(line) + 3 + screen::cells(&part) <= room => {
                *line += &format!("   {part}");
            }
            Some(_) | None => lines.push(part),
        }
    }
    let line = |(n, line): (usize, String)| {
        let name = if n == 0 { "BUDGET" } else { "" };
        vec![(Ink::Head, format!(" {name:<9}")), (Ink::Plain, line)]
    };
    lines.into_iter().enumerate().map(line).collect()
}

/// The mark of a thread, and its meaning.
fn mark(thread: &ThreadView) -> (Ink, &'static str, String) {
    let held = thread.state.starts_with("held");
    let words = thread.state_in_words();
    let state = match (thread.state, thread.blocking) {
        ("open", true) => "open, BLOCKS".to_owned(),
        ("open", false) => "open".to_owned(),
        (_, true) if held => format!("{words}, BLOCKS"),
        (_, _) => thread
            .resolved_by
            .map_or_else(|| words.to_owned(), |by| format!("{words} by {by}")),
    };
    match (thread.state, thread.blocking) {
        ("open", true) => (Ink::Alarm, "✗", state),
        ("open", false) => (Ink::Care, "…", state),
        ("resolved", _) => (Ink::Well, "✓", state),
        (_, _) if held => (Ink::Alarm, "▲", state),
        (_, _) => (Ink::Aside, "–", state),
    }
}

fn place(thread: &ThreadView) -> String {
    match (&thread.file, &thread.lines) {
        (Some(file), Some(lines)) => format!("  {}:{}", shown(file), shown(lines)),
        (Some(file), None) => format!("  {}", shown(file)),
        (None, _) => String::new(),
    }
}

fn thread_line(thread: &ThreadView, width: usize) -> Pieces {
    let (ink, mark, state) = mark(thread);
    let title = thread.title.as_deref().map_or_else(String::new, shown);
    let head = format!(
        " THREAD   {mark} {} {} {state}",
        shown(&thread.id),
        thread.severity
    );
    let place = place(thread);
    let room = width.saturating_sub(screen::cells(&head));
    let rest = if screen::cells(&place) + screen::cells(&title) + 2 <= room {
        format!("  {title}{place}")
    } else {
        screen::cut(&format!("  {title}"), room)
    };
    vec![(ink, head), (Ink::Plain, rest)]
}

/// Each thread with its whole discussion.
pub(crate) fn threads(app: &App, width: usize) -> Vec<Pieces> {
    let detail = match detail_of(app) {
        Ok(detail) => detail,
        Err(lines) => return lines,
    };
    if detail.threads.threads.is_empty() {
        return plain(" no finding was raised");
    }
    let mut lines = Vec::new();
    for thread in &detail.threads.threads {
        let (ink, mark, state) = mark(thread);
        let head = format!(" {mark} {} {} {state}", shown(&thread.id), thread.severity);
        let room = width.saturating_sub(screen::cells(&head));
        lines.push(vec![
            (ink, head),
            (Ink::Aside, screen::cut(&place(thread), room)),
        ]);
        let replies = match thread.state {
            "open" => format!(
                "; {} of {} replies left",
                thread.replies_left,
                thread.replies_left + thread.replies
            ),
            _ => String::new(),
        };
        let stance = format!(
            "{}{replies}; opened in round {}{}",
            thread.stance_in_words(),
            thread.opened_in,
            if thread.reopened {
                "; was open again"
            } else {
                ""
            }
        );
        let reviewer = &detail.row.reviewer;
        for (name, ink, text) in [
            ("", Ink::Head, thread.title.as_deref()),
            ("stance", Ink::Aside, Some(&*stance)),
            ("evidence", Ink::Plain, thread.evidence.as_deref()),
            (&**reviewer, Ink::Plain, thread.recommendation.as_deref()),
            (&*detail.row.author, Ink::Plain, thread.reported.as_deref()),
        ] {
            if let Some(text) = text {
                let name = screen::cut(&shown(name), 9);
                let lines_of = named(&name, ink, text, width, 6);
                lines.extend(lines_of);
            }
        }
        for act in thread.history.iter().rev().take(6) {
            let time = act.at.get(11..16).unwrap_or(&act.at);
            let text = format!("{time} {} in round {} by {}", act.act, act.round, act.actor);
            lines.extend(named("", Ink::Aside, &text, width, 1));
        }
    }
    lines
}

fn event_lines(
    name: &str,
    event: &TimelineEvent,
    app: &App,
    width: usize,
    lines_max: usize,
) -> Vec<Pieces> {
    let ink = match (event.kind, event.phase) {
        ("refused", _) | (_, Some("escalated")) => Ink::Alarm,
        (_, Some("approved")) => Ink::Well,
        _ => Ink::Plain,
    };
    let mark = match ink {
        Ink::Alarm => "✗ ",
        Ink::Well => "✓ ",
        Ink::Plain | Ink::Care | Ink::Aside | Ink::Head => "",
    };
    let times = if event.count > 1 {
        format!(" ×{}", event.count)
    } else {
        String::new()
    };
    let (actor, what) = (&event.actor, with_short_commits(&event.what));
    let what = if event.kind == "refused" {
        format!("{mark}{actor}: refused, {what}")
    } else {
        format!("{mark}{actor}: {what}{times}")
    };
    let head = format!(" {name:<9}{}  ", clock(event.at, app.now));
    let indent = screen::cells(&head);
    let line = |(n, line): (usize, String)| {
        let head = if n == 0 {
            head.clone()
        } else {
            " ".repeat(indent)
        };
        vec![(Ink::Head, head), (ink, line)]
    };
    let room = width.saturating_sub(indent);
    let lines = match lines_max {
        1 => vec![screen::cut(&shown(&what), room)],
        _ => wrapped(&what, room, lines_max),
    };
    lines.into_iter().enumerate().map(line).collect()
}

/// Everything that happened, round by round, the newest first.
pub(crate) fn timeline(app: &App, width: usize) -> Vec<Pieces> {
    let detail = match detail_of(app) {
        Ok(detail) => detail,
        Err(lines) => return lines,
    };
    let mut lines = Vec::new();
    for round in detail.rounds.iter().rev() {
        let head = format!(
            " GENERATION {} ROUND {}",
            round.generation, round.round_of_generation
        );
        lines.push(vec![(Ink::Head, head)]);
        lines.extend(way(round, app, width));
        for event in round.events.iter().rev() {
            lines.extend(event_lines("", event, app, width, EVENT_LINES));
        }
    }
    lines
}
