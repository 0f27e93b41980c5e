//! `settled status`: every review, and whose move it is.

use std::collections::BTreeMap;
use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};
use message_schema::line;
use review::{Invocation, Phase, Review, ReviewKey, Side};
use serde::Serialize;

use super::answer::Answer;
use super::context::{Context, Root};
use super::failure::Failure;
use super::gc::size;
use crate::config::Config;
use crate::exit::Exit;
use crate::fold::Books;
use crate::troubles::{self, Trouble};
use crate::{clock, gc, workspace};

/// Shows every review.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled status ./mailroom
  settled status ./mailroom --json")]
pub(super) struct Args {
    #[command(flatten)]
    root: Root,
}

/// The JSON form. Fields are added, never changed.
#[derive(Debug, Serialize)]
struct Status {
    /// Whether a daemon serves the workspace.
    serving: Option<bool>,
    accepted: u64,
    refused: u64,
    /// Messages that lie in an outbox and were not judged yet.
    waiting: usize,
    ledger: Ledger,
    reviews: Vec<Row>,
    /// What only an operator can mend.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    troubles: Vec<Trouble>,
}

#[derive(Debug, Serialize)]
struct Ledger {
    records: u64,
    segments: usize,
    bytes: u64,
    /// The last record of the newest snapshot that is of use.
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<u64>,
    /// Old files that `settled gc` would remove; absent where everything is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    removable: Option<Removable>,
}

#[derive(Debug, Serialize)]
struct Removable {
    files: u64,
    bytes: u64,
}

#[derive(Debug, Serialize)]
struct Row {
    review: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    repo: Option<String>,
    pr: String,
    author: String,
    reviewer: String,
    phase: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Whose move it is: an agent, `person`, or nobody (absent).
    #[serde(skip_serializing_if = "Option::is_none")]
    mover: Option<String>,
    generation: u8,
    round: u32,
    round_of_generation: u32,
    rounds: u8,
    since: DateTime<Utc>,
    open_threads: usize,
    open_blockers: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts_left: Option<u8>,
    /// Turns left of the open request's budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    turns_left: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    taken_at: Option<DateTime<Utc>>,
    /// Which deadline runs: `pick_up`, `runtime` or `author`.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_for: Option<&'static str>,
    /// When the daemon ends the wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    due_at: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approved_commit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    merge_ready: Option<bool>,
    /// Whether the pull request has got another head since the approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    stale: Option<bool>,
    threads: BTreeMap<String, String>,
    legal_next: Vec<String>,
}

pub(super) fn run(args: &Args, context: Context) -> Result<Exit, Failure> {
    let context = context.at(&args.root);
    let status = Answer::new(gather(context.workspace()?)?);
    context.say(&status, |status| table(status, clock::now()))?;
    Ok(Exit::Ok)
}

fn gather(root: &Path) -> Result<Status, Failure> {
    let failed = |error: &(dyn std::error::Error + 'static)| Failure::new(Exit::Failed, error);
    let (books, folded) = Books::read(root).map_err(|error| failed(&error))?;
    let state = books.state();
    let agents = workspace::agents(root).map_err(|error| failed(&error))?;
    Ok(Status {
        serving: spool::is_served(root),
        accepted: state.accepted(),
        refused: books.refused(),
        waiting: agents.iter().map(|agent| spool::count_waiting(root, agent.as_str())).sum(),
        ledger: Ledger {
            records: folded.verified.records,
            segments: folded.verified.segments,
            bytes: folded.verified.bytes,
            snapshot: folded.snapshot,
            removable: removable(root),
        },
        reviews: state.reviews().map(|(key, review)| row(key, review)).collect(),
        troubles: troubles::noted(root),
    })
}

/// What `settled gc` would remove, where anything is to be removed at all. A config that cannot be read is
/// for others to complain about.
fn removable(root: &Path) -> Option<Removable> {
    let keep = Config::load(root).ok()?.retention;
    keep.sent_days.or(keep.archive_days).or(keep.dead_letter_days)?;
    let sweep = gc::sweep(root, &keep, clock::now(), gc::Mode::DryRun).ok()?;
    let sum = sweep.sum(|shelved| shelved.gone);
    Some(Removable { files: sum.files, bytes: sum.bytes })
}

fn row(key: &ReviewKey, review: &Review) -> Row {
    let approval = match &review.phase {
        Phase::Approved(approval) => Some(approval),
        Phase::Awaiting { .. }
        | Phase::Reviewing(_)
        | Phase::Fixing { .. }
        | Phase::Addressed { .. }
        | Phase::Escalated(_)
        | Phase::Closed(_) => None,
    };
    let (open, deadline) = (review.phase.invocation(), review.deadline());
    let mover = match review.mover() {
        Side::Person => Some("person".to_owned()),
        Side::Author | Side::Reviewer | Side::Nobody => review.phase.mover_of(key).map(ToString::to_string),
    };
    Row {
        review: key.to_string(),
        repo: key.repo.as_ref().map(ToString::to_string),
        pr: key.pr.to_string(),
        author: key.author.to_string(),
        reviewer: key.reviewer.to_string(),
        phase: review.phase.word(),
        reason: reason(&review.phase),
        mover,
        generation: review.generation,
        round: review.round,
        round_of_generation: review.round_of_generation(),
        rounds: review.rounds.get() + review.granted,
        since: review.since,
        open_threads: review.open_threads().count(),
        open_blockers: review.open_blockers(),
        attempts_left: review.attempts_left(),
        turns_left: open.map(Invocation::turns_left),
        taken_at: open.and_then(|open| open.taken_at),
        waits_for: deadline.map(|(_, which)| which.word()),
        due_at: deadline.map(|(at, _)| at),
        approved_commit: approval.and_then(|approval| approval.commit.as_ref()).map(ToString::to_string),
        merge_ready: approval.map(|approval| approval.merge_ready),
        stale: approval.map(|approval| approval.stale),
        threads: review
            .threads
            .iter()
            .map(|(id, thread)| (id.to_string(), thread.state.word().to_owned()))
            .collect(),
        legal_next: review.legal_next(key),
    }
}

/// Why a review ended as it did, where the phase alone does not say it.
pub(super) fn reason(phase: &Phase) -> Option<String> {
    match phase {
        Phase::Escalated(reason) => Some(reason.to_string()),
        Phase::Closed(reason) => Some(reason.word().to_owned()),
        Phase::Approved(_)
        | Phase::Awaiting { .. }
        | Phase::Reviewing(_)
        | Phase::Fixing { .. }
        | Phase::Addressed { .. } => None,
    }
}

fn table(status: &Status, now: DateTime<Utc>) -> String {
    let mut lines = vec![["REVIEW", "PHASE", "ROUND", "MOVE", "SINCE", "DUE", "OPEN"].map(str::to_owned)];
    for row in &status.reviews {
        // A reviewer may give the reason in its own words.
        let phase = match &row.reason {
            Some(reason) => format!("{} ({})", row.phase, line::escaped(reason)),
            None if row.stale == Some(true) => format!("{} (stale)", row.phase),
            None => row.phase.to_owned(),
        };
        let open = match (row.open_threads, row.open_blockers) {
            (0, _) => "-".to_owned(),
            (threads, blockers) => format!("{threads} ({blockers} blocking)"),
        };
        lines.push([
            row.review.clone(),
            phase,
            format!("{} of {}", row.round_of_generation, row.rounds),
            row.mover.clone().unwrap_or_else(|| "-".to_owned()),
            ago(now - row.since),
            due(row, now),
            open,
        ]);
    }
    let mut text = if status.reviews.is_empty() { "no review yet\n".to_owned() } else { columns(&lines) };
    let serving = match status.serving {
        Some(true) => "a daemon is serving",
        Some(false) => "no daemon is serving",
        None => "whether a daemon is serving cannot be seen",
    };
    text += &format!(
        "{} accepted, {} refused, {} waiting; {serving}\n",
        status.accepted, status.refused, status.waiting
    );
    for Trouble { path, what, .. } in &status.troubles {
        text += &format!("{}\n  {}\n", line::escaped(&path.display().to_string()), line::escaped(what));
    }
    let Ledger { records, segments: _, bytes, snapshot, removable } = &status.ledger;
    let snapshot = snapshot.map_or("no snapshot".to_owned(), |seq| format!("snapshot at {seq}"));
    text += &format!("ledger: last record {records}, {}, {snapshot}\n", size(*bytes));
    if let Some(Removable { files, bytes }) = removable {
        text += &format!("settled gc would remove {files} files, {}\n", size(*bytes));
    }
    text
}

/// What the review waits for, how long still, and the turns left of an open request.
fn due(row: &Row, now: DateTime<Utc>) -> String {
    let (Some(which), Some(at)) = (row.waits_for, row.due_at) else { return "-".to_owned() };
    let turns = row.turns_left.map_or_else(String::new, |turns| format!(", {turns} turns left"));
    format!("{which} {}{turns}", ahead(at - now))
}

pub(super) fn columns<const N: usize>(lines: &[[String; N]]) -> String {
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    lines.iter().fold(String::new(), |text, line| {
        let cells: Vec<String> =
            line.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        text + cells.join("  ").trim_end() + "\n"
    })
}

pub(super) fn ago(passed: TimeDelta) -> String {
    if passed < TimeDelta::zero() { "in the future".to_owned() } else { format!("{} ago", span(passed)) }
}

pub(super) fn ahead(left: TimeDelta) -> String {
    if left < TimeDelta::zero() { "overdue".to_owned() } else { format!("in {}", span(left)) }
}

fn span(length: TimeDelta) -> String {
    match length.num_seconds() {
        seconds @ ..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds @ 7200..172_800 => format!("{} h", seconds / 3600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_reason_breaks_out_of_its_row() {
        let row = Row {
            review: "#86 claude -> codex".to_owned(),
            repo: None,
            pr: "86".to_owned(),
            author: "claude".to_owned(),
            reviewer: "codex".to_owned(),
            phase: "escalated",
            reason: Some("\u{1b}[2J\u{1b}[31mpwned\n#99 x -> y approved \u{202e}".to_owned()),
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
            taken_at: None,
            waits_for: None,
            due_at: None,
            approved_commit: None,
            merge_ready: None,
            stale: None,
            threads: BTreeMap::new(),
            legal_next: Vec::new(),
        };
        let status = Status {
            serving: Some(false),
            accepted: 2,
            refused: 0,
            waiting: 0,
            ledger: Ledger { records: 2, segments: 1, bytes: 10_000, snapshot: None, removable: None },
            reviews: vec![row],
            troubles: Vec::new(),
        };
        let text = table(&status, DateTime::UNIX_EPOCH);
        assert!(
            text.contains("escalated (\\u{1b}[2J\\u{1b}[31mpwned\\n#99 x -> y approved \\u{202e})"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 4, "{text}");
    }

    #[test]
    fn ages_are_short_and_never_negative() {
        let ages = [-5, 0, 119, 120, 7199, 7200, 172_799, 172_800];
        let said: Vec<String> = ages.iter().map(|seconds| ago(TimeDelta::seconds(*seconds))).collect();
        assert_eq!(
            said,
            [
                "in the future",
                "0 s ago",
                "119 s ago",
                "2 min ago",
                "119 min ago",
                "2 h ago",
                "47 h ago",
                "2 d ago"
            ]
        );
    }
}
