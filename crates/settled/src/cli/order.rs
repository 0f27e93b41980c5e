//! How a command tells the daemon something: writes the order, sees to it that it is heard, and
//! shows what came of it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use message_schema::Code;
use message_schema::id::{AgentName, MessageId, PrNumber, Repo};
use message_schema::line::escaped;
use review::{Event, Phase, Record, Step, Which};
use serde::Serialize;
use spool::{Entry, SpoolError};

use super::{Failure, existing_workspace, print, serve, status};
use crate::daemon::{self, DaemonError};
use crate::exit::Exit;
use crate::mailroom::MailroomError;
use crate::orders::{self, Order};
use crate::{clock, fold};

/// How long a daemon may take to hear an order.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often the order is looked for.
const POLL: Duration = Duration::from_millis(20);

/// How often a waiting command looks whether the daemon is still there. The look takes the lock for
/// an instant, which must not be in the way of a daemon that starts.
const LOOKS_PER_POLL: u32 = 50;

/// The review a command is about.
#[derive(Debug, clap::Args)]
pub(super) struct Target {
    /// The workspace
    #[arg(value_name = "ROOT")]
    pub(super) root: PathBuf,
    /// The number of the pull request
    #[arg(value_name = "PR")]
    pr: PrNumber,
    /// The reviewer, where the pull request has several
    #[arg(long, value_name = "AGENT")]
    reviewer: Option<AgentName>,
    /// The repository, where the number alone does not tell
    #[arg(long, value_name = "OWNER/NAME")]
    repo: Option<Repo>,
}

impl Target {
    pub(super) fn which(&self) -> Which {
        Which { pr: self.pr.clone(), repo: self.repo.clone(), reviewer: self.reviewer.clone() }
    }
}

/// How the outcome is shown.
#[derive(Debug, clap::Args)]
pub(super) struct Form {
    /// One JSON document instead of text
    #[arg(long)]
    json: bool,
}

/// What came of an order. Fields are added, never changed.
#[derive(Debug, Serialize)]
struct Outcome {
    schema_version: u32,
    /// The order's id.
    id: String,
    seq: u64,
    at: String,
    verdict: String,
    what: String,
    /// The reviews it moved, and where they stand now.
    reviews: Vec<Moved>,
    /// The files it made, as `agent/mailbox/file`.
    delivered: Vec<String>,
    /// What was handed off.
    tasks: Vec<Dispatched>,
    /// Findings that were judged for handoff and stay, with the reason.
    left: Vec<Stays>,
    /// Findings that were queued and whose pull request did not land.
    dropped: usize,
    /// Why it changes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

#[derive(Debug, Serialize)]
struct Moved {
    review: String,
    phase: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    round: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    turns_left: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stale: Option<bool>,
    /// The threads it changed, id to state.
    threads: std::collections::BTreeMap<String, &'static str>,
}

#[derive(Debug, Serialize)]
struct Dispatched {
    task: String,
    target: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    findings: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Stays {
    review: String,
    finding: String,
    why: &'static str,
}

/// Gives the order and shows what came of it.
pub(super) fn give(root: &Path, event: Event, form: &Form) -> Result<Exit, Failure> {
    existing_workspace(root)?;
    let order = Order::new(clock::new_order_id(), clock::now(), event);
    let file = orders::write(root, &order).map_err(|error| cannot_write(root, &error))?;
    see_to_it(root, &file)?;
    let Some((entry, record)) = find(root, &order.id)? else {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let why = if orders::is_put_aside(root, &name) { "cannot read it" } else { "does not know it" };
        let message = format!("the order {} is gone and the daemon {why}; its log says more", order.id);
        return Err(Failure::plain(Exit::Failed, message));
    };
    let outcome = outcome(&order.id, &entry, &record);
    if form.json {
        let json = serde_json::to_string_pretty(&outcome).expect("text keys and plain values are JSON");
        print(&(json + "\n"))?;
    } else if outcome.code.is_none() {
        print(&text(&outcome))?;
    }
    match record {
        Record::Declined { code, why, .. } => {
            Err(Failure::plain(exit(code), format!("{code}: {}", escaped(&why)))
                .next(format!("settled status {}", root.display())))
        }
        Record::Happened(_) | Record::Accepted(_) | Record::Duplicate { .. } | Record::Refused { .. } => {
            Ok(Exit::Ok)
        }
    }
}

/// A review or a thread that was named and does not exist is told apart from a decision that does
/// not fit.
fn exit(code: Code) -> Exit {
    let is_missing = code == Code::NoOpenRequest || code == Code::ThreadUnknown;
    if is_missing { Exit::NotFound } else { Exit::Failed }
}

fn cannot_write(root: &Path, error: &io::Error) -> Failure {
    let place = orders::directory(root);
    if error.kind() == io::ErrorKind::PermissionDenied {
        let message = format!("only the owner of {} can tell the daemon anything: {error}", place.display());
        return Failure::plain(Exit::NotAllowed, message);
    }
    Failure::plain(Exit::Failed, format!("the order cannot be written to {}: {error}", place.display()))
}

/// Waits until the daemon has heard the order, or hears it in its place where none serves.
fn see_to_it(root: &Path, file: &Path) -> Result<(), Failure> {
    let start = Instant::now();
    for look in 0_u32.. {
        if look.is_multiple_of(LOOKS_PER_POLL) && !spool::is_served(root) {
            match daemon::serve_once(root) {
                // A daemon has started in between.
                Err(DaemonError::Mailroom(MailroomError::Spool(SpoolError::Locked { .. }))) => {}
                Err(error) => return Err(waits(file, serve::failure(&error, root))),
                Ok(_) => return Ok(()),
            }
        }
        if file.symlink_metadata().is_err() {
            return Ok(());
        }
        if start.elapsed() >= PATIENCE {
            break;
        }
        std::thread::sleep(POLL);
    }
    let message = format!("the daemon has not heard the order within {} s", PATIENCE.as_secs());
    let next = format!("settled log {}", root.display());
    Err(waits(file, Failure::plain(Exit::Temporary, message).next(next)))
}

/// An order that was not heard is not lost, and whoever gave it should know.
fn waits(file: &Path, failure: Failure) -> Failure {
    let message = format!("{}; the order is accepted and waits as {}", failure.message, file.display());
    Failure { message, ..failure }
}

/// The record an order led to. The last one: an id of ours is given once.
fn find(root: &Path, id: &MessageId) -> Result<Option<(Entry, Record)>, Failure> {
    let mut found = None;
    let read = spool::read_ledger(root, &mut |entry| {
        if entry.id.as_deref() == Some(id.as_str()) {
            let (record, _) = fold::decision(entry)?;
            found = Some((entry.clone(), record));
        }
        Ok(())
    });
    read.map_err(|error| Failure::new(Exit::Failed, &error))?;
    Ok(found)
}

fn outcome(id: &MessageId, entry: &Entry, record: &Record) -> Outcome {
    let places =
        entry.deliveries.iter().map(|delivery| format!("{}/{}", delivery.mailbox, delivery.file)).collect();
    let mut outcome = Outcome {
        schema_version: 1,
        id: id.to_string(),
        seq: entry.seq,
        at: entry.at.clone(),
        verdict: entry.kind.clone(),
        what: String::new(),
        reviews: Vec::new(),
        delivered: places,
        tasks: Vec::new(),
        left: Vec::new(),
        dropped: 0,
        code: None,
        why: None,
    };
    match record {
        Record::Happened(happened) => {
            outcome.what = happened.event.sentence();
            outcome.reviews = happened.steps.iter().map(moved).collect();
            if let Some(handoff) = &happened.handoff {
                outcome.tasks = handoff.tasks.iter().map(dispatched).collect();
                outcome.left = handoff.left.iter().map(stays).collect();
                outcome.dropped = handoff.dropped;
            }
        }
        Record::Declined { event, code, why, .. } => {
            outcome.what = event.sentence();
            outcome.code = Some(code.as_str());
            outcome.why = Some(why.clone());
        }
        Record::Accepted(_) | Record::Duplicate { .. } | Record::Refused { .. } => {
            unreachable!("only events are recorded under the id of an order")
        }
    }
    outcome
}

fn moved(step: &Step) -> Moved {
    let stale = match &step.phase {
        Phase::Approved(approval) => Some(approval.stale),
        Phase::Awaiting { .. }
        | Phase::Reviewing(_)
        | Phase::Fixing { .. }
        | Phase::Addressed { .. }
        | Phase::Escalated(_)
        | Phase::Closed(_) => None,
    };
    Moved {
        review: step.review.to_string(),
        phase: step.phase.word(),
        reason: status::reason(&step.phase),
        round: step.round,
        turns_left: step.phase.invocation().map(review::Invocation::turns_left),
        stale,
        threads: step.threads.iter().map(|(id, thread)| (id.to_string(), thread.state.word())).collect(),
    }
}

fn dispatched(task: &review::Task) -> Dispatched {
    Dispatched {
        task: task.id.to_string(),
        target: task.target.to_string(),
        file: task.file.as_ref().map(ToString::to_string),
        findings: task.findings.iter().map(|finding| finding.id.to_string()).collect(),
    }
}

fn stays(left: &review::Left) -> Stays {
    Stays { review: left.review.to_string(), finding: left.id.to_string(), why: left.why.word() }
}

/// The outcome of an order that was followed, for a person.
fn text(outcome: &Outcome) -> String {
    let mut lines = vec![outcome.what.clone()];
    for review in &outcome.reviews {
        let reason = review.reason.as_ref().map_or_else(String::new, |reason| format!(" ({reason})"));
        let stale = if review.stale == Some(true) { ", stale" } else { "" };
        let turns = review.turns_left.map_or_else(String::new, |turns| format!(", {turns} turns left"));
        let Moved { review, phase, round, threads, .. } = review;
        lines.push(format!("  {review}: {phase}{reason}, round {round}{turns}{stale}"));
        lines.extend(threads.iter().map(|(id, state)| format!("    {id}: {state}")));
    }
    for Dispatched { task, target, findings, .. } in &outcome.tasks {
        lines.push(format!("  handed off as {task} to {target}: {}", findings.join(", ")));
    }
    for Stays { review, finding, why } in &outcome.left {
        lines.push(format!("  not handed off: {finding} of {review} ({why})"));
    }
    if outcome.dropped > 0 {
        lines.push(format!("  {} queued findings were dropped", outcome.dropped));
    }
    lines.extend(outcome.delivered.iter().map(|file| format!("  wrote {file}")));
    if lines.len() == 1 {
        lines.push("  noted; no review changes".to_owned());
    }
    // Reasons and ids are what others wrote.
    lines.iter().fold(String::new(), |text, line| text + &escaped(line) + "\n")
}
