//! Everything that happened to each review, round by round: messages, takes, starts, refusals, deadlines, decisions.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Utc};
use inspect::log;
use message_schema::Report;
use message_schema::envelope::{DAEMON, MessageType, ReviewKind};
use message_schema::id::AgentName;
use review::{DeclinedEvent, Event, EventRecord, Judgement, Phase, Record, ReviewKey, ReviewStep};
use serde::Serialize;
use spool::Entry;
use workspace::refusals;

/// One thing that happened to a review. Fields are added, never changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TimelineEvent {
    /// The number of its record, or of the last one if several records are merged.
    pub seq: u64,
    /// The time of the event.
    pub at: DateTime<Utc>,
    /// The kind: the type of an accepted message, `refused`, `duplicate`, `declined`, or the word of an event (`taken`,
    /// `started`, `failed`, `turns`, `observed`, `ran`, `deadline`, `pull`, `decided`).
    pub kind: &'static str,
    /// The actor: an agent, a person by name, or `settled`.
    pub actor: String,
    /// A description in the words of `settled log`.
    pub what: String,
    /// The phase it led to, if it moved the review.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<&'static str>,
    /// The message, by its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The number of threads it opened or changed.
    pub threads: usize,
    /// The number of records in this event: consecutive turns or reads count as one event.
    pub count: u32,
}

/// One round of a review. Fields are added, never changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RoundView {
    /// The generation, from 1.
    pub generation: u8,
    /// The round, counted over the life of the pull request.
    pub round: u32,
    /// The round within its generation.
    pub round_of_generation: u32,
    /// The stops on its way, in order; future ones have no time.
    pub stops: Vec<RoundStop>,
    /// Everything that happened, oldest first.
    pub events: Vec<TimelineEvent>,
}

/// A stop on the way through a round. Fields are added, never changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RoundStop {
    /// `request`, `taken`, `feedback`, `lgtm`, `addressed`, `escalated` or `decision`.
    pub stop: &'static str,
    /// The time at which it was reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<DateTime<Utc>>,
    /// The number of threads it opened or changed.
    pub threads: usize,
}

/// The timelines of all reviews.
#[derive(Debug, Default)]
pub(crate) struct Timelines {
    reviews: BTreeMap<ReviewKey, Timeline>,
    by_name: HashMap<String, ReviewKey>,
}

/// The events of one review, and its messages.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    /// The current reviewer, if it is not the one the review was opened with.
    reassigned_to: Option<AgentName>,
    rounds: Vec<Round>,
    pub(crate) said: Vec<StoredMessage>,
}

#[derive(Debug)]
struct Round {
    generation: u8,
    round: u32,
    events: Vec<TimelineEvent>,
}

/// An accepted message of a review with its packet, as the ledger has them. A review has few.
#[derive(Debug)]
pub(crate) struct StoredMessage {
    pub(crate) at: String,
    pub(crate) from: String,
    pub(crate) text: Box<str>,
    pub(crate) packet: Option<Box<str>>,
}

impl Timelines {
    pub(crate) fn of(&self, key: &ReviewKey) -> Option<&Timeline> {
        self.reviews.get(key)
    }

    pub(crate) fn key_of(&self, review: &str) -> Option<&ReviewKey> {
        self.by_name.get(review)
    }

    /// Takes in a record.
    pub(crate) fn note(&mut self, entry: &Entry, record: &Record, at: DateTime<Utc>) {
        let event = || TimelineEvent {
            seq: entry.seq,
            at,
            kind: kind(record),
            actor: actor(record),
            what: log::what(record),
            phase: None,
            message: entry.id.clone().filter(|_| entry.original.is_some()),
            threads: 0,
            count: 1,
        };
        for step in record.steps() {
            if !self.reviews.contains_key(&step.review) {
                self.by_name
                    .insert(step.review.to_string(), step.review.clone());
            }
            let timeline = self.reviews.entry(step.review.clone()).or_default();
            timeline.step(step, event());
            timeline.store(entry, record);
        }
        if record.steps().is_empty()
            && let Some(timeline) = self.concerned(entry, record)
        {
            timeline.add(event());
        }
    }

    /// The review of a record that moves none: of a refused message, or of a declined event.
    fn concerned(&mut self, entry: &Entry, record: &Record) -> Option<&mut Timeline> {
        let key = match record {
            Record::Judged(Judgement::Refused(_)) => {
                let report = report(entry)?;
                self.by_name.get(&report.review?)?.clone()
            }
            Record::Event(EventRecord::Declined(DeclinedEvent { event, .. })) => {
                let which = event.which()?;
                let mut meant = self.reviews.iter().filter(|(key, timeline)| {
                    let current = timeline.reassigned_to.as_ref();
                    which.may_mean(key, current.unwrap_or(&key.reviewer))
                });
                let (key, _) = meant.next()?;
                // A name that several reviews share means none of them.
                meant.next().is_none().then(|| key.clone())?
            }
            Record::Judged(Judgement::Accepted(_) | Judgement::Duplicate(_))
            | Record::Event(EventRecord::Happened(_)) => return None,
        };
        self.reviews.get_mut(&key)
    }
}

impl Timeline {
    fn step(&mut self, step: &ReviewStep, event: TimelineEvent) {
        if let Some(reviewer) = &step.reassigned_to {
            self.reassigned_to = Some(reviewer.clone());
        }
        let before = self.rounds.last().map_or(1, |round| round.generation);
        let generation = step.opens.map_or(before, |opened| opened.number);
        let is_new = self
            .rounds
            .last()
            .is_none_or(|last| (last.generation, last.round) != (generation, step.round));
        if is_new {
            self.rounds.push(Round {
                generation,
                round: step.round,
                events: Vec::new(),
            });
        }
        self.add(TimelineEvent {
            phase: Some(step.phase.word()),
            threads: step.threads.len(),
            ..event
        });
    }

    fn add(&mut self, event: TimelineEvent) {
        let Some(round) = self.rounds.last_mut() else {
            return;
        };
        match round.events.last_mut() {
            // While a command runs, these come every second.
            Some(last) if last.kind == event.kind && matches!(event.kind, "turns" | "observed") => {
                let count = last.count + 1;
                *last = TimelineEvent { count, ..event };
            }
            Some(_) | None => round.events.push(event),
        }
    }

    fn store(&mut self, entry: &Entry, record: &Record) {
        let text = entry
            .original
            .as_ref()
            .and_then(|original| original.text.as_deref());
        if let (Some(accepted), Some(text)) = (record.accepted(), text) {
            self.said.push(StoredMessage {
                at: entry.at.clone(),
                from: accepted.from.to_string(),
                text: text.into(),
                packet: accepted.packet.as_deref().map(Into::into),
            });
        }
    }

    /// Returns the rounds, oldest first. `phase` is the review's current phase.
    pub(crate) fn rounds(&self, phase: &Phase) -> Vec<RoundView> {
        let mut first_of = HashMap::new();
        let last = self.rounds.len().saturating_sub(1);
        let view = |(n, round): (usize, &Round)| {
            let first = *first_of.entry(round.generation).or_insert(round.round);
            RoundView {
                generation: round.generation,
                round: round.round,
                round_of_generation: round.round + 1 - first.min(round.round),
                stops: stops(&round.events, (n == last).then_some(phase)),
                events: round.events.clone(),
            }
        };
        self.rounds.iter().enumerate().map(view).collect()
    }
}

/// The stops that a round has reached and, if it goes on (`now`), those ahead.
fn stops(events: &[TimelineEvent], now: Option<&Phase>) -> Vec<RoundStop> {
    let stop = |event: &TimelineEvent| {
        let stop = match event.kind {
            "review_request" => "request",
            "taken" | "started" => "taken",
            "review_feedback" => "feedback",
            "review_lgtm" => "lgtm",
            "review_addressed" => "addressed",
            "decided" => "decision",
            _ if event.phase == Some("escalated") => "escalated",
            _ => return None,
        };
        Some(RoundStop {
            stop,
            at: Some(event.at),
            threads: event.threads,
        })
    };
    let mut stops: Vec<RoundStop> = Vec::new();
    for stop in events.iter().filter_map(stop) {
        // After a replaced request the newest one counts; of a take and the starts after it, the first.
        match stops.last_mut() {
            Some(last) if last.stop == stop.stop => {
                if stop.stop != "taken" {
                    *last = stop;
                }
            }
            Some(_) | None => stops.push(stop),
        }
    }
    let pending: &[&'static str] = match now {
        Some(Phase::Awaiting { .. }) => &["request", "taken", "lgtm"],
        Some(Phase::Reviewing(open)) if open.taken_at.is_none() => &["taken", "lgtm"],
        Some(Phase::Reviewing(_)) => &["lgtm"],
        Some(Phase::Fixing { .. }) => &["addressed", "request", "lgtm"],
        Some(Phase::Addressed { .. }) => &["request", "lgtm"],
        Some(Phase::Escalated(_)) => &["decision"],
        Some(Phase::Approved(_) | Phase::Closed(_)) | None => &[],
    };
    stops.extend(pending.iter().map(|stop| RoundStop {
        stop,
        at: None,
        threads: 0,
    }));
    stops
}

fn kind(record: &Record) -> &'static str {
    match record {
        Record::Judged(Judgement::Accepted(accepted)) => accepted.kind.as_str(),
        Record::Judged(Judgement::Duplicate(_) | Judgement::Refused(_)) | Record::Event(_) => {
            record.word()
        }
    }
}

/// The reviewer and the type of its answer, if the record accepts one.
pub(crate) fn verdict(record: &Record) -> Option<(&AgentName, ReviewKind)> {
    let accepted = record.accepted()?;
    match accepted.kind {
        MessageType::Review(kind @ (ReviewKind::Feedback | ReviewKind::Lgtm)) => {
            Some((&accepted.from, kind))
        }
        MessageType::Review(ReviewKind::Request | ReviewKind::Addressed) | MessageType::Text(_) => {
            None
        }
    }
}

fn actor(record: &Record) -> String {
    let record = match record {
        Record::Judged(judgement) => return judgement.sender().to_string(),
        Record::Event(record) => record,
    };
    match record.event() {
        Event::Person(decision) => decision.by.clone(),
        Event::LedgerAccepted(accepted) => accepted.by.clone(),
        Event::SentDiffers(differs) => differs.agent.to_string(),
        Event::Host(change) => change.actor().to_owned(),
        Event::Spent(report) => report.agent.to_string(),
        Event::Taken(which)
        | Event::Turns { which, .. }
        | Event::Started(which)
        | Event::Failed { which, .. }
        | Event::Observed { which, .. }
        | Event::Ran { which, .. } => which
            .reviewer
            .as_ref()
            .map_or_else(|| DAEMON.to_owned(), ToString::to_string),
        Event::Deadline { .. } | Event::Pull(_) | Event::Pair(_) => DAEMON.to_owned(),
    }
}

fn report(entry: &Entry) -> Option<Report> {
    let (_, text) = refusals::report(entry)?;
    Report::from_yaml(text.as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use spool::Digest;

    use super::*;

    fn note(timelines: &mut Timelines, decision: Value) {
        let entry = Entry {
            seq: 1,
            prev: Digest::ZERO,
            batch: 1,
            host: None,
            at: "2026-02-13T10:00:00.000Z".to_owned(),
            kind: "taken".to_owned(),
            rules: None,
            review: None,
            id: None,
            original: None,
            deliveries: Vec::new(),
            decision: serde_json::from_value(json!(null)).expect("JSON"),
        };
        let record = serde_json::from_value(decision).expect("a record");
        timelines.note(&entry, &record, DateTime::UNIX_EPOCH);
    }

    fn event(kind: &'static str, phase: Option<&'static str>, seq: u64) -> TimelineEvent {
        TimelineEvent {
            seq,
            at: DateTime::UNIX_EPOCH,
            kind,
            actor: String::new(),
            what: String::new(),
            phase,
            message: None,
            threads: usize::try_from(seq).expect("a small number"),
            count: 1,
        }
    }

    #[test]
    fn a_round_stops_once_at_each_place() {
        let events = [
            ("review_request", None),
            // It is replaced.
            ("review_request", None),
            ("taken", None),
            ("started", None),
            ("turns", None),
            ("review_feedback", None),
            ("review_addressed", None),
            ("deadline", Some("escalated")),
            ("decided", None),
            ("decided", None),
        ];
        let events = (1..).zip(events);
        let events: Vec<_> = events
            .map(|(seq, (kind, phase))| event(kind, phase, seq))
            .collect();
        let stops = stops(&events, None);
        let told: Vec<_> = stops.iter().map(|stop| (stop.stop, stop.threads)).collect();
        let expected = [
            ("request", 2),
            ("taken", 3),
            ("feedback", 6),
            ("addressed", 7),
            ("escalated", 8),
            ("decision", 10),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn turns_and_reads_in_a_row_are_one_event_and_nothing_else_is() {
        let mut timeline = Timeline::default();
        timeline.rounds.push(Round {
            generation: 1,
            round: 1,
            events: Vec::new(),
        });
        let kinds = [
            "turns", "turns", "turns", "observed", "observed", "turns", "refused", "refused",
        ];
        for (seq, kind) in (1..).zip(kinds) {
            timeline.add(event(kind, None, seq));
        }
        let events = timeline.rounds[0].events.iter();
        let told: Vec<_> = events
            .map(|event| (event.kind, event.seq, event.count))
            .collect();
        let expected = [
            ("turns", 3, 3),
            ("observed", 5, 2),
            ("turns", 6, 1),
            ("refused", 7, 1),
            ("refused", 8, 1),
        ];
        assert_eq!(told, expected);
    }

    fn opened(repo: &str, reassigned_to: &str) -> Value {
        let review = json!({"repo": repo, "pr": "86", "author": "claude", "reviewer": "codex"});
        json!({"happened": {"event": {"taken": {"pr": "86", "repo": repo}}, "steps": [{
            "review": review, "phase": {"escalated": "reviewer_timeout"}, "round": 1,
            "reassigned_to": reassigned_to,
        }]}})
    }

    #[test]
    fn a_declined_event_is_told_with_the_one_review_that_its_name_means() {
        for (which, told) in [
            (json!({"pr": "86", "repo": "acme/b"}), [0, 1]),
            (json!({"pr": "86", "repo": "acme/A"}), [1, 0]),
            (json!({"pr": "86", "reviewer": "gemini"}), [0, 1]),
            (
                json!({"pr": "086", "repo": "acme/b", "reviewer": "gemini"}),
                [0, 1],
            ),
            // Both reviews have it.
            (json!({"pr": "86", "reviewer": "codex"}), [0, 0]),
            (json!({"pr": "87"}), [0, 0]),
        ] {
            let mut timelines = Timelines::default();
            note(&mut timelines, opened("acme/a", "codex"));
            note(&mut timelines, opened("acme/b", "gemini"));
            let event = json!({"taken": which});
            let declined = json!({"event": event, "code": "review_ambiguous", "why": ""});
            note(&mut timelines, json!({ "declined": declined }));
            let count = |name: &str| {
                let key = timelines.key_of(name).expect("a review");
                let rounds = &timelines.of(key).expect("a review").rounds;
                let events = rounds.iter().flat_map(|round| &round.events);
                events.filter(|event| event.kind == "declined").count()
            };
            let of = ["acme/a", "acme/b"].map(|repo| count(&format!("{repo}#86 claude -> codex")));
            assert_eq!(of, told, "{which}");
        }
    }
}
