//! The outcome of an order, for programs and for people.

use std::collections::BTreeMap;

use message_schema::id::MessageId;
use message_schema::line::escaped;
use review::{DeclinedEvent, EventRecord, Invocation, Left, ReviewStep, Task};
use serde::Serialize;
use spool::Entry;

use crate::status::row::reason;

/// The outcome of an order. Fields are added, never changed.
#[derive(Debug, Serialize)]
pub struct OrderOutcome {
    /// The order's id.
    id: String,
    seq: u64,
    at: String,
    verdict: String,
    what: String,
    /// The reviews it moved, in their current state.
    reviews: Vec<MovedReview>,
    /// The files it made, as `agent/mailbox/file`.
    delivered: Vec<String>,
    /// The tasks that were handed off.
    tasks: Vec<DispatchedTask>,
    /// Findings that were considered for a handoff and stay, each with the reason.
    kept: Vec<KeptFinding>,
    /// The number of queued findings dropped because their pull request did not land.
    dropped: usize,
    /// The reason why it changed nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

#[derive(Debug, Serialize)]
struct MovedReview {
    review: String,
    phase: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    round: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    turns_left: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stale: Option<bool>,
    /// The state of each thread it changed, by id.
    threads: BTreeMap<String, &'static str>,
}

#[derive(Debug, Serialize)]
struct DispatchedTask {
    task: String,
    target: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    findings: Vec<String>,
}

#[derive(Debug, Serialize)]
struct KeptFinding {
    review: String,
    finding: String,
    why: &'static str,
    #[serde(skip)]
    reason: &'static str,
}

impl OrderOutcome {
    /// Reads the outcome from the record under the order's id.
    pub fn of(id: &MessageId, entry: &Entry, record: &EventRecord) -> Self {
        let places = entry
            .deliveries
            .iter()
            .map(|delivery| format!("{}/{}", delivery.mailbox, delivery.file))
            .collect();
        let mut outcome = Self {
            id: id.to_string(),
            seq: entry.seq,
            at: entry.at.clone(),
            verdict: entry.kind.clone(),
            what: String::new(),
            reviews: Vec::new(),
            delivered: places,
            tasks: Vec::new(),
            kept: Vec::new(),
            dropped: 0,
            code: None,
            why: None,
        };
        match record {
            EventRecord::Happened(happened) => {
                outcome.what = happened.event.sentence();
                outcome.reviews = happened.steps.iter().map(moved).collect();
                if let Some(handoff) = &happened.handoff {
                    outcome.tasks = handoff.tasks.iter().map(dispatched).collect();
                    outcome.kept = handoff.left.iter().map(stays).collect();
                    outcome.dropped = handoff.dropped;
                }
            }
            EventRecord::Declined(DeclinedEvent {
                event, code, why, ..
            }) => {
                outcome.what = event.sentence();
                outcome.code = Some(code.as_str());
                outcome.why = Some(why.clone());
            }
        }
        outcome
    }

    /// Describes the outcome to a person.
    pub fn text(&self) -> String {
        let mut lines = vec![self.what.clone()];
        if self.reviews.is_empty() {
            lines.push("  noted; no review changes".to_owned());
        }
        for review in &self.reviews {
            let reason = review
                .reason
                .as_ref()
                .map_or_else(String::new, |reason| format!(" ({reason})"));
            let stale = if review.stale == Some(true) {
                ", stale"
            } else {
                ""
            };
            let turns = review
                .turns_left
                .map_or_else(String::new, |turns| format!(", {turns} turns left"));
            let MovedReview {
                review,
                phase,
                round,
                threads,
                ..
            } = review;
            lines.push(format!(
                "  {review}: {phase}{reason}, round {round}{turns}{stale}"
            ));
            lines.extend(
                threads
                    .iter()
                    .map(|(id, state)| format!("    {id}: {state}")),
            );
        }
        for DispatchedTask {
            task,
            target,
            findings,
            ..
        } in &self.tasks
        {
            lines.push(format!(
                "  handed off as {task} to {target}: {}",
                findings.join(", ")
            ));
        }
        for KeptFinding {
            review,
            finding,
            reason,
            ..
        } in &self.kept
        {
            lines.push(format!("  not handed off: {finding} of {review}: {reason}"));
        }
        if self.dropped > 0 {
            lines.push(format!("  {} queued findings were dropped", self.dropped));
        }
        lines.extend(self.delivered.iter().map(|file| format!("  wrote {file}")));
        // Reasons and ids were written by others.
        lines
            .iter()
            .fold(String::new(), |text, line| text + &escaped(line) + "\n")
    }
}

fn moved(step: &ReviewStep) -> MovedReview {
    let stale = step.phase.approval().map(|approval| approval.stale);
    MovedReview {
        review: step.review.to_string(),
        phase: step.phase.word(),
        reason: reason(&step.phase),
        round: step.round,
        turns_left: step.phase.invocation().map(Invocation::turns_left),
        stale,
        threads: step
            .threads
            .iter()
            .map(|(id, thread)| (id.to_string(), thread.state.word()))
            .collect(),
    }
}

fn dispatched(task: &Task) -> DispatchedTask {
    DispatchedTask {
        task: task.id.to_string(),
        target: task.target.to_string(),
        file: task.file.as_ref().map(ToString::to_string),
        findings: task
            .findings
            .iter()
            .map(|finding| finding.id.to_string())
            .collect(),
    }
}

fn stays(left: &Left) -> KeptFinding {
    KeptFinding {
        review: left.review.to_string(),
        finding: left.id.to_string(),
        why: left.why.word(),
        reason: left.why.reason(),
    }
}
