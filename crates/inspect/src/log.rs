//! A record of the ledger as one line of `settled log`.

use message_schema::line::escaped;
use review::{
    DeclinedEvent, EventRecord, Happened, Judgement, Notice, Record, RefusedMessage, ToldAlert,
};
use serde::Serialize;
use spool::{Content, Delivery, Entry};

use crate::status::row::reason;

/// One record of the ledger. Fields are added, never changed.
#[derive(Clone, Debug, Serialize)]
pub struct LogLine {
    /// The record's number.
    pub seq: u64,
    /// The time, in RFC 3339.
    pub at: String,
    verdict: String,
    outbox: Option<String>,
    file: Option<String>,
    id: Option<String>,
    review: Option<String>,
    /// The stored name of the state that the review's run has after the record.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_state: Option<&'static str>,
    delivered: Vec<String>,
    /// Copies that the sender itself had put into a mailbox and the daemon removed.
    withdrawn: Vec<String>,
    what: String,
    warnings: Vec<String>,
    /// Changes, limits and observations of the daemon.
    alerts: Vec<ToldAlert>,
}

impl LogLine {
    /// Makes the line of a record.
    pub fn of(entry: &Entry, record: Record) -> Self {
        let original = entry.original.as_ref();
        let (withdrawn, delivered) = entry
            .deliveries
            .iter()
            .partition::<Vec<&Delivery>, _>(|delivery| is_withdrawn(delivery));
        let places = |deliveries: Vec<&Delivery>| deliveries.into_iter().map(place).collect();
        Self {
            seq: entry.seq,
            at: entry.at.clone(),
            verdict: entry.kind.clone(),
            outbox: original.map(|original| original.outbox.clone()),
            file: original.map(|original| original.file.to_string()),
            id: entry.id.clone(),
            review: entry.review.clone(),
            run_state: record.steps().first().map(|step| step.phase.run().stored()),
            delivered: places(delivered),
            withdrawn: places(withdrawn),
            what: what(&record),
            alerts: record.accepted().map_or_else(Vec::new, |accepted| {
                accepted.alerts.iter().map(ToldAlert::from).collect()
            }),
            warnings: match record {
                Record::Judged(Judgement::Accepted(accepted)) => accepted.warnings,
                Record::Judged(Judgement::Duplicate(_) | Judgement::Refused(_))
                | Record::Event(_) => Vec::new(),
            },
        }
    }

    /// Returns the line for people, with its warnings below.
    pub fn text(&self) -> String {
        let from = match (&self.outbox, &self.file) {
            (Some(outbox), Some(file)) => format!("{outbox}/{file}"),
            (Some(name), None) | (None, Some(name)) => name.clone(),
            (None, None) => "-".to_owned(),
        };
        let run = self
            .run_state
            .map_or_else(String::new, |run| format!(", run {run}"));
        let review = self
            .review
            .as_ref()
            .map_or_else(String::new, |review| format!("  [{review}{run}]"));
        let mut text = format!(
            "{:>6}  {}  {:<9}  {from}  {}{review}",
            self.seq, self.at, self.verdict, self.what
        );
        // File names and warnings hold what agents wrote.
        text = escaped(&text) + "\n";
        for warning in &self.warnings {
            text += &format!("        warning: {}\n", escaped(warning));
        }
        for alert in &self.alerts {
            text += &format!("        note: {}\n", escaped(&alert.message));
        }
        text
    }
}

fn is_withdrawn(delivery: &Delivery) -> bool {
    match delivery.content {
        Content::Withdrawn(_) => true,
        Content::Original | Content::Text(_) => false,
    }
}

fn place(delivery: &Delivery) -> String {
    format!("{}/{}", delivery.mailbox, delivery.file)
}

/// Describes a record's decision in a few words. The text may quote what agents wrote.
pub fn what(record: &Record) -> String {
    match record {
        Record::Judged(Judgement::Accepted(accepted)) => match &accepted.step {
            Some(step) => format!(
                "{} -> {} round {}",
                accepted.kind,
                step.phase.word(),
                step.round
            ),
            None => accepted.kind.to_string(),
        },
        Record::Judged(Judgement::Duplicate(_)) => "the same bytes were accepted before".to_owned(),
        Record::Judged(Judgement::Refused(RefusedMessage {
            code, cost, notice, ..
        })) => {
            let cost = cost
                .as_ref()
                .map_or_else(String::new, |cost| match cost.attempts_left {
                    0 => ", no attempt left: escalated".to_owned(),
                    left => format!(", {left} attempts left"),
                });
            let told = match notice {
                Notice::Sent { .. } => "",
                Notice::Withheld => ", notice withheld",
                Notice::Never => ", no notice",
            };
            format!("{code}{cost}{told}")
        }
        Record::Event(EventRecord::Happened(happened)) => happening(happened),
        Record::Event(EventRecord::Declined(DeclinedEvent {
            event, code, why, ..
        })) => format!("{}: {code}: {why}", event.sentence()),
    }
}

fn happening(happened: &Happened) -> String {
    let mut what = happened.event.sentence();
    for step in &happened.steps {
        // A single review is named at the end of the line.
        if happened.steps.len() > 1 {
            what += &format!("; {}", step.review);
        }
        what += &format!(" -> {}", step.phase.word());
        if let Some(reason) = reason(&step.phase) {
            what += &format!(" ({reason})");
        }
        what += &format!(" round {}", step.round);
        if let Some(open) = step.phase.invocation() {
            what += &format!(", {} turns left", open.turns_left());
        }
        for (id, thread) in &step.threads {
            what += &format!(", {id} {}", thread.state.word());
        }
    }
    if let Some(handoff) = &happened.handoff {
        for task in &handoff.tasks {
            what += &format!("; {} -> {}", task.id, task.target);
        }
        if handoff.dropped > 0 {
            what += &format!("; {} queued findings dropped", handoff.dropped);
        }
    }
    what
}

#[cfg(test)]
mod tests {
    use review::Duplicate;

    use super::*;

    #[test]
    fn a_copy_that_is_taken_out_again_was_not_delivered() {
        let record = Record::Judged(Judgement::Duplicate(Duplicate {
            from: "claude".parse().expect("a name"),
            id: "msg-1".parse().expect("an id"),
        }));
        let decision = serde_json::value::to_raw_value(&record).expect("JSON");
        let delivery = |file: &str, content| Delivery {
            mailbox: "codex/inbox".parse().expect("a mailbox"),
            file: file.parse().expect("a name"),
            content,
        };
        let entry = Entry {
            seq: 1,
            prev: spool::Digest::ZERO,
            batch: 1,
            host: None,
            at: "2026-02-13T10:00:00.000Z".to_owned(),
            kind: "duplicate".to_owned(),
            rules: None,
            review: None,
            id: None,
            original: None,
            deliveries: vec![
                delivery("a.yaml", Content::Text("x".to_owned())),
                delivery("b.yaml", Content::Withdrawn(spool::Digest::ZERO)),
            ],
            decision,
        };
        let line = LogLine::of(&entry, record);
        assert_eq!(
            (line.delivered, line.withdrawn),
            (
                vec!["codex/inbox/a.yaml".to_owned()],
                vec!["codex/inbox/b.yaml".to_owned()]
            )
        );
    }

    #[test]
    fn no_file_name_or_warning_breaks_out_of_its_line() {
        let line = LogLine {
            seq: 1,
            at: "2026-02-13T10:00:00.000Z".to_owned(),
            verdict: "refused".to_owned(),
            outbox: Some("claude".to_owned()),
            file: Some("a\u{202e}\n.yaml".to_owned()),
            id: None,
            review: None,
            run_state: None,
            delivered: Vec::new(),
            withdrawn: Vec::new(),
            what: "expired".to_owned(),
            warnings: vec!["\u{1b}[31m\r".to_owned()],
            alerts: Vec::new(),
        };
        let said = "     1  2026-02-13T10:00:00.000Z  refused    claude/a\\u{202e}\\n.yaml  expired\n        \
                    warning: \\u{1b}[31m\\r\n";
        assert_eq!(line.text(), said);
    }
}
