//! `settled status`: every review, whose move it is, and what needs somebody.

use std::path::Path;

use chrono::{DateTime, Utc};
use daemon::gc;
use inspect::standing::row::Row;
use inspect::standing::{Standing, problems};
use message_schema::id::AgentName;
use message_schema::line::escaped;
use review::{OpenPair, PairId};
use serde::Serialize;
use workspace::clock;
use workspace::config::Config;
use workspace::troubles::Trouble;

use super::answer::Answer;
use super::board;
use super::context::{Context, Root};
use super::failure::Failure;
use super::screen::Screen;
use crate::exit::Exit;

/// So many commands are named; `settled problems` tells all.
const NAMED_MAX: usize = 3;

/// Shows every review.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled status ./mailroom
  settled status ./mailroom --json
  settled status ./mailroom --json | jq '.data.reviews[] | select(.mover == \"person\")'")]
pub(super) struct Args {
    #[command(flatten)]
    root: Root,
}

/// The JSON form. Fields are added, never changed.
#[derive(Debug, Serialize)]
pub(super) struct Status {
    /// Whether a daemon serves the workspace.
    pub(super) serving: Option<bool>,
    pub(super) accepted: u64,
    pub(super) refused: u64,
    /// Messages that lie in an outbox and were not judged yet, and in whose.
    pub(super) waiting: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) waiting_of: Vec<Count>,
    /// Refused messages that nobody corrected since.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) dead_letters: Vec<Count>,
    /// The move that is owed for the longest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) oldest_wait: Option<Wait>,
    pub(super) ledger: Ledger,
    pub(super) reviews: Vec<Row>,
    /// Pairs of commands that go on or can be resumed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) pairs: Vec<PairRow>,
    /// What only an operator can mend.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) troubles: Vec<Trouble>,
}

/// A pair of commands.
#[derive(Debug, Serialize)]
pub(super) struct PairRow {
    pub(super) pair: String,
    pub(super) author: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reviewer: Option<String>,
    pub(super) state: &'static str,
    pub(super) iteration: u8,
    pub(super) iterations: u8,
    /// Since when the command runs whose turn it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) since: Option<DateTime<Utc>>,
    pub(super) seconds_left: u64,
}

impl PairRow {
    fn of(id: &PairId, pair: &OpenPair) -> Self {
        let OpenPair {
            setup, standing, ..
        } = pair;
        Self {
            pair: id.to_string(),
            author: setup.author.agent.to_string(),
            reviewer: setup
                .reviewer
                .as_ref()
                .map(|reviewer| reviewer.agent.to_string()),
            state: standing.pair.run().word(),
            iteration: standing.pair.iteration(),
            iterations: setup.iterations,
            since: standing.began_at,
            seconds_left: standing.ms_left / 1_000,
        }
    }
}

/// How many of something an agent has.
#[derive(Debug, Serialize)]
pub(super) struct Count {
    pub(super) agent: String,
    pub(super) count: usize,
}

/// A move that is owed.
#[derive(Debug, Serialize)]
pub(super) struct Wait {
    pub(super) review: String,
    pub(super) mover: String,
    pub(super) since: DateTime<Utc>,
}

#[derive(Debug, Serialize)]
pub(super) struct Ledger {
    pub(super) records: u64,
    pub(super) segments: usize,
    pub(super) bytes: u64,
    /// The last record of the newest snapshot that is of use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) snapshot: Option<u64>,
    /// Old files that `settled gc` would remove; absent where everything is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) removable: Option<Removable>,
}

#[derive(Debug, Serialize)]
pub(super) struct Removable {
    pub(super) files: u64,
    pub(super) bytes: u64,
}

pub(super) fn run(args: &Args, context: Context) -> Result<Exit, Failure> {
    let context = context.at(&args.root);
    let root = context.workspace()?;
    let now = clock::now();
    let answer = look(root, now, &context)?;
    context.say(&answer, |status| {
        board::text(status, now, Screen::of_output())
    })?;
    Ok(Exit::Ok)
}

/// How things stand, with what should be known and what comes next.
pub(super) fn look(
    root: &Path,
    now: DateTime<Utc>,
    context: &Context,
) -> Result<Answer<Status>, Failure> {
    let standing = context.standing()?;
    let mut answer = Answer::new(status(&standing, removable(root, now)));
    let problems = standing.problems(now, &|agent, words| context.command_of(agent, words));
    let kinds = problems::by_kind(&problems);
    for (kind, (count, first)) in &kinds {
        let more = if *count > 1 {
            format!(" (and {} more)", count - 1)
        } else {
            String::new()
        };
        answer.alert(kind.word(), format!("{}{more}", escaped(&first.what)));
    }
    let mut named: Vec<&str> = Vec::new();
    for (_, problem) in kinds.values() {
        let mend = &problem.mend;
        if mend.fill.is_empty() && !named.contains(&mend.run.as_str()) && named.len() < NAMED_MAX {
            answer.next(mend.run.clone(), format!("{}: {}", mend.by, mend.what));
            named.push(&mend.run);
        }
    }
    if problems.len() > named.len() {
        answer.next(
            context.command("problems"),
            format!("all {} that need somebody", problems.len()),
        );
    }
    Ok(answer)
}

fn status(standing: &Standing, removable: Option<Removable>) -> Status {
    let (state, folded) = (standing.books.state(), &standing.folded);
    let count = |(agent, count): &(AgentName, usize)| Count {
        agent: agent.to_string(),
        count: *count,
    };
    let dead = |agent: &AgentName| {
        standing
            .dead
            .iter()
            .filter(|letter| letter.agent == *agent)
            .count()
    };
    let dead = standing.agents.iter().map(|agent| Count {
        agent: agent.to_string(),
        count: dead(agent),
    });
    let reviews: Vec<Row> = state
        .reviews()
        .map(|(key, review)| Row::of(key, review))
        .collect();
    Status {
        serving: standing.serving,
        accepted: state.accepted(),
        refused: standing.books.refused(),
        waiting: standing.unjudged.count(),
        waiting_of: standing.unjudged.counts.iter().map(count).collect(),
        dead_letters: dead.filter(|dead| dead.count > 0).collect(),
        oldest_wait: reviews
            .iter()
            .filter_map(|row| {
                let (review, mover) = (row.review.clone(), row.mover.clone()?);
                Some(Wait {
                    review,
                    mover,
                    since: row.since,
                })
            })
            .min_by_key(|wait| wait.since),
        ledger: Ledger {
            records: folded.verified.records,
            segments: folded.verified.segments,
            bytes: folded.verified.bytes,
            snapshot: folded.snapshot,
            removable,
        },
        reviews,
        pairs: state
            .pairs()
            .map(|(id, pair)| PairRow::of(id, pair))
            .collect(),
        troubles: standing.troubles.clone(),
    }
}

/// What `settled gc` would remove, where anything is to be removed at all. A config that cannot be read is
/// for others to complain about.
fn removable(root: &Path, now: DateTime<Utc>) -> Option<Removable> {
    let keep = Config::load(root).ok()?.retention;
    keep.sent_days
        .or(keep.archive_days)
        .or(keep.dead_letter_days)?;
    let sweep = gc::sweep(root, &keep, now, gc::Mode::DryRun).ok()?;
    let sum = sweep.sum(|shelved| shelved.gone);
    Some(Removable {
        files: sum.files,
        bytes: sum.bytes,
    })
}

/// A table whose columns are as wide as they need to be.
pub(super) fn columns<const N: usize>(lines: &[[String; N]]) -> String {
    let width = |column: usize| {
        lines
            .iter()
            .map(|line| line[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: [usize; N] = std::array::from_fn(width);
    lines.iter().fold(String::new(), |text, line| {
        let cells: Vec<String> = line
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        text + cells.join("  ").trim_end() + "\n"
    })
}
