//! Checks the end of a soak: every review ended within its bounds, every accepted message is there once, the state is
//! the fold of the ledger, and no process of an agent is left.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;
use settled_tests::mailroom::{Mailroom, said};
use settled_tests::wait;

use super::{cast, samples};
use crate::checker;
use crate::taker::Take;

/// The most accepted messages of a review in a generation: 5 for each of its 2 rounds, less 1.
const MESSAGES_PER_GENERATION: u64 = 9;

/// Rounds of a generation.
const ROUNDS: u64 = 2;

/// The time that a request may be open beyond its seconds, in milliseconds: an answer begun in time gets 5 s more,
/// earlier mail is judged first, and the machine has other work. 15.7 s were seen while a compiler had both cores. The
/// daemon itself waits for files for 10 s at most; on a machine that is loaded on purpose nobody could tell that from 15.
const SLACK_MS: i64 = 30_000;

/// The number of times the daemon's metrics are compared with the ledger, every 200 ms, before they count as wrong.
const COUNTS_LOOKS: u32 = 50;

/// Every phase.
const PHASES: [&str; 7] = [
    "awaiting",
    "reviewing",
    "fixing",
    "addressed",
    "approved",
    "escalated",
    "closed",
];

/// The ends of reviews, and counts of the messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// The number of reviews by end, with the reason.
    pub reviews: BTreeMap<String, usize>,
    /// The number of records by kind.
    pub records: BTreeMap<String, usize>,
    /// The number of refusals by code.
    pub refused: BTreeMap<String, usize>,
    /// The number of started commands by agent.
    pub starts: BTreeMap<String, usize>,
    /// The time that the slowest request was open beyond its seconds, in milliseconds.
    pub latest_ms: i64,
}

/// A review that has not ended.
#[derive(Clone, Debug)]
pub(super) struct Open {
    pub(super) pr: u64,
    pub(super) is_authors_move: bool,
    /// Its phase, for the report of a review that never ended.
    #[expect(dead_code, reason = "it is printed with the rest")]
    phase: String,
}

/// The reviews that have not ended.
pub(super) fn open(mailroom: &Mailroom) -> Vec<Open> {
    let reviews = reviews(mailroom)
        .into_iter()
        .filter(|review| !is_final(word(review, "phase")));
    let open = |review: Value| Open {
        pr: word(&review, "pr").parse().unwrap_or(0),
        is_authors_move: review["mover"] == review["author"],
        phase: format!(
            "{} {} {}",
            word(&review, "review"),
            word(&review, "phase"),
            review["round"]
        ),
    };
    reviews.map(open).collect()
}

/// Compares the running daemon's reviews with the fold of its ledger, with and without its snapshots.
pub(super) fn differs_from_its_fold(mailroom: &Mailroom) -> Vec<String> {
    let with = reviews(mailroom);
    let mut wrong = counts_differ(mailroom.root(), &with);
    // The daemon publishes its metrics every 2 s.
    for _ in 0..COUNTS_LOOKS {
        if wrong.is_empty() {
            break;
        }
        wait::a_moment(Duration::from_millis(200));
        wrong = counts_differ(mailroom.root(), &with);
    }
    let own = mailroom.root().join(".settled");
    let (kept, away) = (own.join("snapshots"), own.join("away"));
    if std::fs::rename(&kept, &away).is_ok() {
        if reviews(mailroom) != with {
            wrong.push("without its snapshots the ledger adds up to something else".to_owned());
        }
        // If the daemon made another one meanwhile, that one counts.
        let _ = std::fs::rename(away, kept);
    }
    wrong
}

fn counts_differ(root: &Path, reviews: &[Value]) -> Vec<String> {
    let page = samples::page(root).unwrap_or_default();
    let differs = |phase: &&str| {
        let folded = reviews
            .iter()
            .filter(|review| review["phase"] == **phase)
            .count() as u64;
        let counted = samples::sum(&page, &format!("settled_reviews{{phase=\"{phase}\"}}"));
        (folded != counted)
            .then(|| format!("{counted} reviews are {phase}, by the ledger {folded}"))
    };
    PHASES.iter().filter_map(differs).collect()
}

/// Returns the agents' processes that still run.
pub(super) fn processes(root: &Path, beside: &Path) -> Vec<String> {
    let named = samples::processes_of(root)
        .into_iter()
        .map(|pid| format!("{pid} runs in the name of an agent"));
    let children = cast::notes(beside, "outlive").with_extension("children");
    let children = std::fs::read_to_string(children).unwrap_or_default();
    let sleeps = |pid: &&str| {
        // The pid may belong to another process by now.
        std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line == b"sleep\x00600\x00")
    };
    named
        .chain(
            children
                .lines()
                .filter(sleeps)
                .map(|pid| format!("the child {pid} of an agent runs")),
        )
        .collect()
}

/// Checks a workspace that no daemon serves any more.
pub(super) fn look(mailroom: &Mailroom, takes: &[Take]) -> (Ended, Vec<String>) {
    let mut wrong = Vec::new();
    let verified = mailroom.run(&["ledger", "verify"]);
    if !verified.status.success() {
        wrong.push(said(&verified));
    }
    let records = checker::records(mailroom.root()).unwrap_or_else(|what| {
        wrong.push(what);
        Vec::new()
    });
    let arrivals = checker::arrivals(mailroom.root(), &records, takes, false);
    // A spoofing reviewer put these into an inbox by hand.
    wrong.extend(
        arrivals
            .into_iter()
            .filter(|what| !what.contains("\"spoof.yaml\"")),
    );
    let mut ended = Ended::default();
    wrong.extend(accepted_twice(&records));
    for record in &records {
        let kind = word(record, "kind");
        *ended.records.entry(kind.to_owned()).or_default() += 1;
        if let Some(code) = record["decision"]["refused"]["code"].as_str() {
            *ended.refused.entry(code.to_owned()).or_default() += 1;
        }
        if let Some(agent) = record["decision"]["happened"]["event"]["started"]["reviewer"].as_str()
        {
            *ended.starts.entry(agent.to_owned()).or_default() += 1;
        }
    }
    let (phases, latest_ms, late) = walk(&records);
    ended.latest_ms = latest_ms;
    wrong.extend(late);
    let messages = messages(&records);
    for review in reviews(mailroom) {
        let (name, phase) = (
            word(&review, "review").to_owned(),
            word(&review, "phase").to_owned(),
        );
        let reason = review["reason"]
            .as_str()
            .map(|reason| format!(" ({reason})"))
            .unwrap_or_default();
        *ended.reviews.entry(format!("{phase}{reason}")).or_default() += 1;
        let generations = review["generation"].as_u64().unwrap_or(0);
        let sent = messages.get(&name).copied().unwrap_or(0);
        let is_bounded = sent <= MESSAGES_PER_GENERATION * generations
            && review["round"]
                .as_u64()
                .is_some_and(|round| round <= ROUNDS * generations);
        if !is_final(&phase) || !is_bounded || phases.get(&name) != Some(&phase) {
            let last = phases.get(&name);
            wrong.push(format!(
                "{name} after {sent} messages: {review}; its last record says {last:?}"
            ));
        }
    }
    (ended, wrong)
}

fn reviews(mailroom: &Mailroom) -> Vec<Value> {
    // Without `--all` the command lists only the last 64 reviews that need nobody.
    let mut status = mailroom.json(&["status", "--all"]);
    let Value::Array(reviews) = status["data"]["reviews"].take() else {
        return Vec::new();
    };
    reviews
}

fn is_final(phase: &str) -> bool {
    ["approved", "escalated", "closed"].contains(&phase)
}

fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn accepted_twice(records: &[Value]) -> Vec<String> {
    let mut times: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for record in records.iter().filter(|record| record["kind"] == "accepted") {
        *times
            .entry((word(&record["original"], "outbox"), word(record, "id")))
            .or_default() += 1;
    }
    let twice = times.into_iter().filter(|(_, count)| *count > 1);
    twice
        .map(|(id, count)| format!("{id:?} was accepted {count} times"))
        .collect()
}

/// The number of accepted messages of reviews, by review.
fn messages(records: &[Value]) -> BTreeMap<String, u64> {
    let mut sent = BTreeMap::new();
    let of_reviews = records.iter().filter(|record| {
        record["kind"] == "accepted"
            && word(&record["decision"]["accepted"], "type").starts_with("review_")
    });
    for record in of_reviews {
        *sent.entry(word(record, "review").to_owned()).or_default() += 1;
    }
    sent
}

/// Walks through every step of every review: the end of each, the longest time a request was open beyond its seconds,
/// and the requests open for too long.
fn walk(records: &[Value]) -> (BTreeMap<String, String>, i64, Vec<String>) {
    let mut phases = BTreeMap::new();
    // The end of the open request's seconds, and that request.
    let mut until: BTreeMap<String, (DateTime<Utc>, Value)> = BTreeMap::new();
    let (mut latest_ms, mut wrong) = (i64::MIN, Vec::new());
    for record in records {
        let at = time(&record["at"]);
        for step in steps(&record["decision"]) {
            let Some((phase, of)) = phase(&step["phase"]) else {
                continue;
            };
            let key = &step["review"];
            let name = format!(
                "#{} {} -> {}",
                word(key, "pr"),
                word(key, "author"),
                word(key, "reviewer")
            );
            phases.insert(name.clone(), phase.to_owned());
            if let Some((end, request)) = until.remove(&name)
                && of["request"] != request
                && let Some(at) = at
            {
                let late_ms = (at - end).num_milliseconds();
                latest_ms = latest_ms.max(late_ms);
                if late_ms > SLACK_MS {
                    wrong.push(format!(
                        "{name}: {request} was open {late_ms} ms longer than its seconds, until {} of {}",
                        word(record, "kind"),
                        record["at"]
                    ));
                }
            }
            if let (Some(taken), Some(seconds)) = (time(&of["taken_at"]), of["runtime_s"].as_i64())
            {
                until.insert(
                    name,
                    (
                        taken + chrono::Duration::seconds(seconds),
                        of["request"].clone(),
                    ),
                );
            }
        }
    }
    (phases, latest_ms, wrong)
}

/// The steps of any decision.
fn steps(decision: &Value) -> Vec<&Value> {
    let alone = [
        &decision["accepted"]["step"],
        &decision["refused"]["cost"]["step"],
    ];
    let several = decision["happened"]["steps"].as_array();
    alone
        .into_iter()
        .filter(|step| step.is_object())
        .chain(several.into_iter().flatten())
        .collect()
}

/// The word of a phase, and its data.
fn phase(value: &Value) -> Option<(&str, &Value)> {
    let (word, of) = value.as_object()?.iter().next()?;
    Some((word, of))
}

fn time(value: &Value) -> Option<DateTime<Utc>> {
    value.as_str()?.parse().ok()
}
