//! Selects records of the ledger to show: those of one pull request, of one agent, of one verdict.

use message_schema::Report;
use message_schema::id::{AgentName, PrNumber};
use review::{Event, Judgement, Record};
use spool::{Entry, Mailbox};
use workspace::refusals;

/// Every verdict a record may have, as the ledger files it.
pub fn verdicts() -> impl Iterator<Item = &'static str> {
    let others = ["accepted", "refused", "duplicate", "declined", "reassigned"];
    others.into_iter().chain(Event::WORDS)
}

/// A filter for records; a field that is not set lets everything through.
#[derive(Clone, Debug, Default)]
pub struct RecordFilter {
    /// The pull request a record is about.
    pub pr: Option<PrNumber>,
    /// The agent that sent it, received a file from it, or takes part in its review.
    pub of: Option<AgentName>,
    /// One of [`verdicts`].
    pub verdict: Option<String>,
}

impl RecordFilter {
    /// True if no field is set.
    pub fn is_open(&self) -> bool {
        self.pr.is_none() && self.of.is_none() && self.verdict.is_none()
    }

    /// True if the record passes the filter.
    pub fn lets(&self, entry: &Entry, record: &Record) -> bool {
        self.verdict
            .as_ref()
            .is_none_or(|verdict| *verdict == entry.kind)
            && self
                .of
                .as_ref()
                .is_none_or(|agent| is_of(agent, entry, record))
            && self
                .pr
                .as_ref()
                .is_none_or(|pr| is_about(&pr.to_canonical(), entry, record))
    }
}

fn is_of(agent: &AgentName, entry: &Entry, record: &Record) -> bool {
    let got = entry
        .deliveries
        .iter()
        .any(|delivery| match &delivery.mailbox {
            Mailbox::Inbox(of) | Mailbox::DeadLetter(of) => of == agent.as_str(),
            Mailbox::Packets(_) | Mailbox::PullRequest(_) => false,
        });
    got || entry
        .original
        .as_ref()
        .is_some_and(|original| original.outbox == agent.as_str())
        || record
            .steps()
            .iter()
            .any(|step| step.review.author == *agent || step.review.reviewer == *agent)
}

fn is_about(pr: &PrNumber, entry: &Entry, record: &Record) -> bool {
    let named = match record {
        Record::Judged(Judgement::Accepted(accepted)) if accepted.step.is_none() => {
            related_pr(entry)
        }
        // A refusal that cost no attempt has no review in its record; only its report names one.
        Record::Judged(Judgement::Refused(refused)) if refused.cost.is_none() => {
            return is_reported_of(pr, entry);
        }
        Record::Judged(_) => None,
        Record::Event(record) => record.event().pr().cloned(),
    };
    named.is_some_and(|named| named.to_canonical() == *pr)
        || record.steps().iter().any(|step| step.review.pr == *pr)
}

/// The pull request that a message about no review names.
fn related_pr(entry: &Entry) -> Option<PrNumber> {
    let text = entry.original.as_ref()?.text.as_ref()?;
    let message = message_schema::parse(text.as_bytes()).ok()?;
    message.root().field_text("related_pr")?.parse().ok()
}

fn is_reported_of(pr: &PrNumber, entry: &Entry) -> bool {
    let of = |report: &Report| {
        let review = report.review.as_deref()?;
        let number = review.split('#').nth(1)?.split(' ').next()?;
        Some(number == pr.as_str())
    };
    let report =
        refusals::report(entry).and_then(|(_, text)| Report::from_yaml(text.as_bytes()).ok());
    report.is_some_and(|report| of(&report) == Some(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

    /// A record of pull request 86 that codex took, or one that belongs to no review.
    fn entry(kind: &str, delivered_to: &str, decision: &str) -> (Entry, Record) {
        let line = format!(
            r#"{{"v":1,"seq":1,"at":"2026-02-13T10:00:00.000Z","prev":"{DIGEST}","batch":1,"kind":"{kind}","review":null,"id":null,"original":null,"deliveries":[{{"mailbox":"{delivered_to}/inbox","file":"a.yaml","content":{{"text":"x"}}}}],"decision":{decision}}}"#
        );
        let entry = Entry::from_line(line.as_bytes()).expect("a line of the ledger");
        let record = serde_json::from_str(entry.decision.get()).expect("a record");
        (entry, record)
    }

    fn taken() -> (Entry, Record) {
        entry(
            "taken",
            "claude",
            r#"{"happened":{"event":{"taken":{"pr":"086"}}}}"#,
        )
    }

    #[test]
    fn a_record_is_let_through_by_everything_that_is_asked_and_by_nothing_else() {
        let (entry, record) = taken();
        let filter = |pr: Option<&str>, of: Option<&str>, verdict: Option<&str>| RecordFilter {
            pr: pr.map(|pr| pr.parse().expect("a number")),
            of: of.map(|of| of.parse().expect("a name")),
            verdict: verdict.map(str::to_owned),
        };
        for (pr, of, verdict) in [
            (None, None, None),
            (Some("86"), None, None),
            (Some("0086"), Some("claude"), Some("taken")),
        ] {
            let filter = filter(pr, of, verdict);
            assert!(filter.lets(&entry, &record), "{filter:?}");
            assert_eq!(filter.is_open(), pr.is_none());
        }
        for (pr, of, verdict) in [
            (Some("87"), Some("claude"), Some("taken")),
            (Some("86"), Some("codex"), Some("taken")),
            (Some("86"), Some("claude"), Some("pull")),
        ] {
            let filter = filter(pr, of, verdict);
            assert!(!filter.lets(&entry, &record), "{filter:?}");
        }
    }

    #[test]
    fn what_is_of_no_pull_request_is_shown_by_its_verdict_alone() {
        let accepted = r#"{"happened":{"event":{"ledger_accepted":{"by":"ann","reason":"restored","head":"x"}}}}"#;
        let (entry, record) = entry("ledger_accepted", "claude", accepted);
        let of_pr = RecordFilter {
            pr: Some("86".parse().expect("a number")),
            ..RecordFilter::default()
        };
        assert!(!of_pr.lets(&entry, &record));
        assert!(verdicts().any(|verdict| verdict == record.word()));
    }
}
