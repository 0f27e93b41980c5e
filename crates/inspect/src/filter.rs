//! Which records of the ledger somebody wants to see: those of one pull request, of one agent, of one verdict.

use message_schema::Report;
use message_schema::id::{AgentName, PrNumber};
use review::{Event, Judgement, Record, Which};
use spool::{Content, Entry, Mailbox};

/// Every verdict a record may have, as the ledger files it.
pub const VERDICTS: [&str; 11] = [
    "accepted",
    "refused",
    "duplicate",
    "declined",
    "deadline",
    "taken",
    "turns",
    "started",
    "failed",
    "pull",
    "decided",
];

/// What is asked for; what is not said lets everything through.
#[derive(Clone, Debug, Default)]
pub struct RecordFilter {
    /// The pull request a record is about.
    pub pr: Option<PrNumber>,
    /// The agent that sent it, got a file by it, or takes part in its review.
    pub of: Option<AgentName>,
    /// One of [`VERDICTS`].
    pub verdict: Option<String>,
}

impl RecordFilter {
    /// Whether it lets everything through.
    pub fn is_open(&self) -> bool {
        self.pr.is_none() && self.of.is_none() && self.verdict.is_none()
    }

    /// Whether the record is asked for.
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
        // What a refusal costs nothing is of no review in the record; its report names the one it was for.
        Record::Judged(Judgement::Refused(refused)) if refused.cost.is_none() => {
            return is_reported_of(pr, entry);
        }
        Record::Judged(_) => None,
        Record::Event(record) => event_pr(record.event()),
    };
    named.is_some_and(|named| named.to_canonical() == *pr)
        || record.steps().iter().any(|step| step.review.pr == *pr)
}

fn event_pr(event: &Event) -> Option<PrNumber> {
    match event {
        Event::Deadline { review, .. } => Some(review.pr.clone()),
        Event::Taken(Which { pr, .. })
        | Event::Turns {
            which: Which { pr, .. },
            ..
        }
        | Event::Started(Which { pr, .. })
        | Event::Failed {
            which: Which { pr, .. },
            ..
        } => Some(pr.clone()),
        Event::Pull(event) => Some(event.pr.clone()),
        Event::Person(decision) => Some(decision.which.pr.clone()),
        Event::Pair(_) | Event::LedgerAccepted(_) => None,
    }
}

/// What a message outside of reviews says it is about.
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
    reports(entry).any(|report| of(&report) == Some(true))
}

/// The reports a record lays beside a refused original.
pub fn reports(entry: &Entry) -> impl Iterator<Item = Report> {
    entry
        .deliveries
        .iter()
        .filter_map(|delivery| match (&delivery.mailbox, &delivery.content) {
            (Mailbox::DeadLetter(_), Content::Text(text)) => {
                Report::from_yaml(text.as_bytes()).ok()
            }
            (Mailbox::DeadLetter(_), Content::Original | Content::Withdrawn(_))
            | (Mailbox::Inbox(_) | Mailbox::Packets(_) | Mailbox::PullRequest(_), _) => None,
        })
}
