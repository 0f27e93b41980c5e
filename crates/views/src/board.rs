//! The text of `settled status`, which is also the upper part of `settled watch`: a row for each review, with lines
//! below it for what runs out and what prevents an approval.

use chrono::{DateTime, Utc};
use inspect::status::hosts::HostRow;
use inspect::status::overview::{Count, Ledger, PairRow, Removable, Status, Wait};
use inspect::status::row::ReviewRow;
use message_schema::id::AgentName;
use message_schema::line::escaped;
use workspace::clock::span;
use workspace::operator_alerts::Alert;

use crate::table::{columns, size};
use screen::{Screen, Tone, ago, ahead, bar, shorten};

/// The attempts with which a round begins; as long as all are left, the board does not mention them.
const ATTEMPTS: u8 = review::ATTEMPTS;

/// A narrower screen drops the column of ages before it shortens names.
const SINCE_WIDTH_MIN: usize = 72;

/// The coloured part of the counts.
const NOT_SERVING: &str = "no daemon is serving";

/// The indentation of lines below a row.
const INDENT: usize = 4;

/// Formats the whole board.
pub fn text(status: &Status, now: DateTime<Utc>, screen: Screen) -> String {
    let mut text = reviews(&status.reviews, now, screen);
    let serving = match status.serving {
        Some(true) => "a daemon is serving",
        Some(false) => NOT_SERVING,
        None => "cannot see whether a daemon is serving",
    };
    let Status {
        accepted,
        refused,
        waiting,
        ..
    } = status;
    let counts =
        format!("{accepted} accepted, {refused} refused, {waiting} not judged yet; {serving}");
    text += &screen
        .wrap(INDENT, &counts)
        .replace(NOT_SERVING, &screen.paint(Tone::Care, NOT_SERVING));
    if let Some(more) = status.left_out {
        text += &screen.wrap(INDENT, &format!("{more} more reviews; see --limit"));
    }
    match status.unlisted() {
        0 => {}
        more => {
            let more = format!("{more} more reviews are finished; `status --all` lists them");
            text += &screen.wrap(INDENT, &more);
        }
    }
    for pair in &status.pairs {
        text += &screen.wrap(INDENT, &pair_line(pair, now));
    }
    if let Some(Wait {
        review,
        mover,
        since,
    }) = &status.oldest_wait
    {
        let wait = format!(
            "longest wait: {} for {mover} on {review}",
            span(now - *since)
        );
        text += &(screen.fit(&wait) + "\n");
    }
    if !status.dead_letters.is_empty() {
        let each = |Count { agent, count }: &Count| format!("{count} of {agent}");
        let each: Vec<String> = status.dead_letters.iter().map(each).collect();
        let dead = format!("dead letters not corrected: {}", each.join(", "));
        text += &screen.wrap(INDENT, &dead);
    }
    for Alert { path, what, .. } in &status.alerts {
        text += &(escaped(&path.display().to_string()) + "\n");
        text += &screen.wrap(INDENT, &format!("  {}", escaped(what)));
    }
    let Ledger {
        records,
        segments: _,
        bytes,
        snapshot,
        removable,
    } = &status.ledger;
    let snapshot = snapshot.map_or("no snapshot".to_owned(), |seq| format!("snapshot at {seq}"));
    let ledger = format!(
        "ledger: last record {records}, {}, {snapshot}",
        size(*bytes)
    );
    text += &screen.wrap(INDENT, &ledger);
    if !status.hosts.is_empty() {
        let hosts: Vec<String> = status.hosts.iter().map(|row| host(row, now)).collect();
        text += &screen.wrap(INDENT, &format!("hosts: {}", hosts.join("; ")));
    }
    if let Some(Removable { files, bytes }) = removable {
        text += &format!("settled gc would remove {files} files, {}\n", size(*bytes));
    }
    text
}

/// A line for a host, with its agents and its last record.
fn host(row: &HostRow, now: DateTime<Utc>) -> String {
    let agents: Vec<&str> = row.agents.iter().map(AgentName::as_str).collect();
    let agents = if agents.is_empty() {
        "no agent".to_owned()
    } else {
        agents.join(", ")
    };
    let mark = match (row.is_this, row.is_retired) {
        (_, true) => " (key retired)",
        (true, false) => " (this one)",
        (false, false) => "",
    };
    let last = row.last_record.zip(row.last_at).map(|(seq, at)| {
        let ago = ago(now - at);
        format!(", record {seq} {ago}")
    });
    let heard = row.heard.as_ref().map(|heard| heard.describe(now));
    let heard = heard.map_or_else(String::new, |heard| format!(", {heard}"));
    format!(
        "{}{mark}: {agents}{}{heard}",
        row.name,
        last.unwrap_or_default()
    )
}

/// A line for a pair. A failed pair is still listed because it can be resumed.
fn pair_line(row: &PairRow, now: DateTime<Utc>) -> String {
    let PairRow {
        pair,
        author,
        iteration,
        iterations,
        state,
        ..
    } = row;
    let with = row
        .reviewer
        .as_ref()
        .map_or_else(String::new, |reviewer| format!(" and {reviewer}"));
    let state = match row.since {
        _ if *state == "failed" => "interrupted, can be resumed".to_owned(),
        Some(since) => format!("{state} for {}", span(now - since)),
        None => (*state).to_owned(),
    };
    format!("{pair}: {author}{with}, iteration {iteration} of {iterations}, {state}")
}

fn reviews(rows: &[ReviewRow], now: DateTime<Utc>, screen: Screen) -> String {
    if rows.is_empty() {
        return "no review yet\n".to_owned();
    }
    let mut lines = vec![["REVIEW", "PHASE", "RUN", "ROUND", "MOVE", "SINCE"].map(str::to_owned)];
    lines.extend(rows.iter().map(|row| cells(row, now)));
    fit(&mut lines, screen.width);
    let table = columns(&lines);
    let mut table = table.lines();
    let head = table.next().unwrap_or_default();
    let mut text = screen.paint(Tone::Aside, head) + "\n";
    for (row, line) in rows.iter().zip(table) {
        let line = match tone(row, now) {
            Some(tone) => screen.paint(tone, line),
            None => line.to_owned(),
        };
        text += &(line + "\n");
        text += &screen.flow(INDENT, &details(row, now));
    }
    text
}

/// One row of the table at full width.
fn cells(row: &ReviewRow, now: DateTime<Utc>) -> [String; 6] {
    let phase = if row.stale == Some(true) {
        format!("{} (stale)", row.phase)
    } else {
        row.phase.to_owned()
    };
    [
        row.review.clone(),
        phase,
        row.run_state.to_owned(),
        format!("{} of {}", row.round_of_generation, row.rounds),
        row.mover.clone().unwrap_or_else(|| "-".to_owned()),
        ago(now - row.since),
    ]
}

/// Makes the table fit the width: drops the runs, then on a narrow screen the ages, then shortens reviews and movers.
fn fit(lines: &mut [[String; 6]], width: usize) {
    let is_too_wide = |lines: &[[String; 6]]| {
        let table = columns(lines);
        table.lines().any(|line| screen::cells(line) > width)
    };
    if is_too_wide(lines) {
        lines.iter_mut().for_each(|line| line[2].clear());
    }
    if is_too_wide(lines) && width < SINCE_WIDTH_MIN {
        lines.iter_mut().for_each(|line| line[5].clear());
    }
    if !is_too_wide(lines) {
        return;
    }
    let widest = |column: usize| lines.iter().map(|line| screen::cells(&line[column])).max();
    let others = [1, 2, 3, 5].into_iter().filter_map(widest);
    let others: usize = others
        .filter(|width| *width > 0)
        .map(|width| width + 2)
        .sum();
    let names = width.saturating_sub(others + 2);
    let mover = widest(4).unwrap_or(0).min((names / 3).max(8));
    for line in lines {
        line[0] = shorten(&line[0], names.saturating_sub(mover).max(16));
        line[4] = shorten(&line[4], mover);
    }
}

/// The colour of a row; none if nothing about it is special.
fn tone(row: &ReviewRow, now: DateTime<Utc>) -> Option<Tone> {
    let is_overdue = row.due_at.is_some_and(|due| due < now);
    match (row.phase, row.stale) {
        _ if is_overdue => Some(Tone::Alarm),
        ("escalated", _) => Some(Tone::Alarm),
        ("approved", Some(true)) => Some(Tone::Care),
        ("approved", _) => Some(Tone::Well),
        ("closed", _) => Some(Tone::Aside),
        _ => None,
    }
}

/// The budgets that run out, and the threads that block an approval.
fn details(row: &ReviewRow, now: DateTime<Utc>) -> Vec<String> {
    let mut parts = Vec::new();
    if let (Some(which), Some(due), Some(whole)) = (row.waits_for, row.due_at, row.wait_s) {
        let left = due - now;
        let seconds = u64::try_from(left.num_seconds()).unwrap_or(0);
        parts.push(format!("{which} {} {}", bar(seconds, whole), ahead(left)));
    }
    if let (Some(left), Some(whole)) = (row.turns_left, row.turns) {
        parts.push(format!(
            "turns {} {left} of {whole}",
            bar(left.into(), whole.into())
        ));
    }
    match row.attempts_left {
        Some(1) => parts.push("1 attempt left".to_owned()),
        Some(left) if left < ATTEMPTS => parts.push(format!("{left} attempts left")),
        Some(_) | None => {}
    }
    // A reviewer can give the reason in its own words.
    parts.extend(
        row.reason
            .as_ref()
            .map(|reason| format!("reason: {}", escaped(reason))),
    );
    if row.open_threads > 0 {
        let threads = if row.open_threads == 1 {
            "thread"
        } else {
            "threads"
        };
        parts.push(format!("{} open {threads}", row.open_threads));
    }
    if !row.blockers.is_empty() && row.phase != "closed" {
        parts.push(format!("blocking: {}", row.blockers.join(" ")));
    }
    if row.merge_ready == Some(false) {
        parts.push("not ready to merge".to_owned());
    }
    parts
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use chrono::TimeDelta;

    use inspect::status::hosts::LastHeard;

    use super::*;

    #[test]
    fn a_host_is_shown_with_its_agents_and_what_was_heard_of_it() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::seconds(1_000);
        let agents = ["codex", "pi"].map(|name| AgentName::new(name).expect("a name"));
        let mut row = HostRow {
            name: "laptop".to_owned(),
            is_this: false,
            agents: agents.to_vec(),
            version: "0.1.0".to_owned(),
            key: "ed25519:00".to_owned(),
            is_retired: false,
            last_record: Some(4),
            last_at: Some(now - TimeDelta::seconds(40)),
            heard: Some(LastHeard {
                at: now - TimeDelta::seconds(4),
                version: "0.1.0".to_owned(),
                state: "waiting".to_owned(),
                behind: 7,
                clock_ahead_ms: -9_000,
            }),
        };
        assert_eq!(
            host(&row, now),
            "laptop: codex, pi, record 4 40 s ago, heard 4 s ago, waiting, 7 records behind, clock -9.0 s"
        );
        assert_eq!(
            host(&row, now + TimeDelta::seconds(7_200)),
            "laptop: codex, pi, record 4 2 h ago, silent for 2 h"
        );
        row.heard = None;
        row.is_this = true;
        assert_eq!(
            host(&row, now),
            "laptop (this one): codex, pi, record 4 40 s ago"
        );
        row.is_retired = true;
        row.agents.clear();
        assert_eq!(
            host(&row, now),
            "laptop (key retired): no agent, record 4 40 s ago"
        );
    }

    fn row() -> ReviewRow {
        ReviewRow {
            review: "#86 claude -> codex".to_owned(),
            repo: None,
            pr: "86".to_owned(),
            author: "claude".to_owned(),
            reviewer: "codex".to_owned(),
            phase: "escalated",
            run_state: "reviewing",
            reason: None,
            mover: None,
            generation: 1,
            round: 1,
            round_of_generation: 1,
            rounds: 2,
            since: DateTime::UNIX_EPOCH,
            open_threads: 0,
            open_blockers: 0,
            attempts_left: None,
            turns_left: None,
            turns: None,
            taken_at: None,
            waits_for: None,
            due_at: None,
            wait_s: None,
            approved_commit: None,
            merge_ready: None,
            stale: None,
            failed: None,
            tokens: None,
            cost_usd: None,
            reassigned_from: None,
            next_reviewers: None,
            threads: BTreeMap::new(),
            blockers: Vec::new(),
            legal_next: Vec::new(),
        }
    }

    #[test]
    fn the_widest_row_fits_into_every_width_and_keeps_what_tells_it_apart() {
        let widest = ReviewRow {
            review: "owner/repository#1234567 a-long-author -> a-long-reviewer".to_owned(),
            phase: "approved",
            run_state: "completed",
            stale: Some(true),
            mover: Some("a-long-reviewer".to_owned()),
            since: DateTime::UNIX_EPOCH + TimeDelta::seconds(1),
            ..row()
        };
        let at = |width| {
            let rows = [widest.clone(), row()];
            let text = reviews(&rows, DateTime::UNIX_EPOCH, Screen::plain(width));
            assert!(
                text.lines().all(|line| screen::cells(line) <= width),
                "{text}"
            );
            text
        };
        for width in 60..=200 {
            let text = at(width);
            assert!(text.contains("567 a") && text.contains("claude"), "{text}");
        }
        let text = at(130);
        assert!(text.contains("approved (stale)  completed"), "{text}");
        assert!(text.contains("escalated         reviewing"), "{text}");
        assert!(
            !at(80).contains("completed"),
            "names have the room of the runs"
        );
    }

    #[test]
    fn a_row_is_coloured_by_who_has_to_act() {
        let now = DateTime::UNIX_EPOCH;
        let due = |seconds| Some(now + TimeDelta::seconds(seconds));
        for (phase, stale, due_at, expected) in [
            ("reviewing", None, None, None),
            ("reviewing", None, due(1), None),
            ("reviewing", None, due(0), None),
            ("reviewing", None, due(-1), Some(Tone::Alarm)),
            ("escalated", None, None, Some(Tone::Alarm)),
            ("approved", Some(true), None, Some(Tone::Care)),
            ("approved", Some(false), None, Some(Tone::Well)),
            ("approved", None, None, Some(Tone::Well)),
            ("closed", None, None, Some(Tone::Aside)),
        ] {
            let row = ReviewRow {
                phase,
                stale,
                due_at,
                ..row()
            };
            assert_eq!(tone(&row, now), expected, "{phase} {stale:?} {due_at:?}");
        }
    }

    #[test]
    fn no_reason_breaks_out_of_its_line() {
        let reason = Some("\u{1b}[2J\u{1b}[31mpwned\n#99 x -> y approved \u{202e}".to_owned());
        let text = reviews(
            &[ReviewRow { reason, ..row() }],
            DateTime::UNIX_EPOCH,
            Screen::plain(100),
        );
        assert!(
            text.contains("reason: \\u{1b}[2J\\u{1b}[31mpwned\\n#99 x -> y approved \\u{202e}\n"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 3, "{text}");
    }

    #[test]
    fn what_runs_out_is_a_bar_of_what_is_left() {
        let at = |seconds| DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds);
        let reviewing = ReviewRow {
            phase: "reviewing",
            turns_left: Some(2),
            turns: Some(8),
            attempts_left: Some(1),
            waits_for: Some("runtime"),
            due_at: Some(at(600)),
            wait_s: Some(600),
            ..row()
        };
        let parts = |now| details(&reviewing, at(now));
        assert_eq!(
            parts(300),
            [
                "runtime [#####-----] in 5 min",
                "turns [###-------] 2 of 8",
                "1 attempt left"
            ]
        );
        assert_eq!(parts(601)[0], "runtime [----------] overdue");
    }
}
