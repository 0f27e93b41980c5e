//! Forecasts the daemon's decision about a message by the same judgement, on the ledger as its sender can read it.
//! Nothing is recorded, so a refusal costs no attempt. It ignores messages in other outboxes that the daemon would
//! judge first.

use std::path::Path;

use chrono::{DateTime, Utc};
use judgement::rejection::RefusedFile;
use judgement::{Judge, Submission};
use message_schema::envelope::{MessageType, ReviewKind, Timestamp};
use message_schema::id::{AgentName, CommitSha, MessageId};
use message_schema::line::escaped;
use message_schema::{Code, Report};
use review::{Clause, Decision, Judgement, Phase, Record, Review, ToldAlert};
use serde::Serialize;
use spool::{Body, FileName, OutboxFile, PacketRead};
use workspace::config::Config;
use workspace::directory;
use workspace::index::LedgerIndex;

use super::message::CheckedMessage;
use super::packet::MessagePacket;
use super::review_status::ReviewStatus;
use crate::mailboxes::file_name;

/// The daemon's decision about a message, if it judged it now.
#[derive(Debug, Serialize)]
pub struct Forecast {
    /// The verdict.
    pub verdict: ForecastVerdict,
    /// The reason the verdict is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The review after the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<ReviewStatus>,
    /// The commit that the review would be about or the approval be bound to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<CommitSha>,
    /// The clauses that an lgtm breaks; absent unless it reached the gate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<Vec<&'static str>>,
    /// The alerts that its acceptance would have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alerts: Vec<ToldAlert>,
    /// The report that its refusal would have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<Report>,
}

/// The verdict, as far as it can be foreseen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ForecastVerdict {
    /// It would be accepted.
    Accepted,
    /// It would be archived as a duplicate.
    Duplicate,
    /// It would be refused.
    Refused,
    /// Its sender may not read what the daemon decides by.
    Unknown,
}

impl Forecast {
    /// Judges a message of this agent as the daemon would at `now`.
    pub fn of(
        root: &Path,
        agent: &AgentName,
        checked: &CheckedMessage,
        now: DateTime<Utc>,
    ) -> Self {
        match judged(root, agent, checked, now) {
            Ok(forecast) => forecast,
            Err(why) => Self {
                why: Some(why),
                ..Self::empty(ForecastVerdict::Unknown)
            },
        }
    }

    fn empty(verdict: ForecastVerdict) -> Self {
        Self {
            verdict,
            why: None,
            review: None,
            head: None,
            gate: None,
            alerts: Vec::new(),
            report: None,
        }
    }

    /// The forecast as lines of text.
    pub fn lines(&self) -> Vec<String> {
        let first = match (self.verdict, &self.review, &self.report) {
            (ForecastVerdict::Accepted, Some(review), _) => {
                format!(
                    "the daemon would accept it now: {}",
                    escaped(&review.phrase())
                )
            }
            (ForecastVerdict::Accepted, None, _) => "the daemon would accept it now".to_owned(),
            (ForecastVerdict::Duplicate, ..) => {
                "the daemon would archive it as a duplicate".to_owned()
            }
            (ForecastVerdict::Refused, _, Some(report)) => format!(
                "the daemon would refuse it now, {}: {}",
                report.refused,
                escaped(&report.summary)
            ),
            (ForecastVerdict::Refused | ForecastVerdict::Unknown, ..) => format!(
                "cannot tell what the daemon would decide: {}",
                escaped(self.why.as_deref().unwrap_or_default())
            ),
        };
        let head = self.head.iter().map(|head| format!("head: {head}"));
        let gate = self.gate.iter().map(|broken| match broken.as_slice() {
            [] => "gate: passes".to_owned(),
            broken => format!("gate: breaks {}", broken.join(", ")),
        });
        let alerts = self.alerts.iter().map(|alert| escaped(&alert.message));
        std::iter::once(first)
            .chain(head)
            .chain(gate)
            .chain(alerts)
            .collect()
    }
}

/// Judges the message; the error says what prevents it.
fn judged(
    root: &Path,
    agent: &AgentName,
    checked: &CheckedMessage,
    now: DateTime<Utc>,
) -> Result<Forecast, String> {
    let (mut index, _) = LedgerIndex::read(root).map_err(|error| error.to_string())?;
    let config = Config::load(root).map_err(|error| error.to_string())?;
    let agents = directory::agents(root).map_err(|error| error.to_string())?;
    let policy = config.policy(agents);
    let mut ids = || MessageId::new("forecast").expect("letters are an id");
    // The daemon acts on deadlines before it judges.
    while let Some(record) = (Judge {
        state: &index.state,
        policy: &policy,
        now,
    })
    .due(&mut ids)
    {
        review::apply(&mut index.state, &record.into(), now);
    }
    let judge = Judge {
        state: &index.state,
        policy: &policy,
        now,
    };
    let found = file(agent, checked);
    let submission = Submission {
        found: &found,
        outbox: agent,
        user: None,
    };
    let read = judgement::read(submission).map_err(|stop| stop.rejection.summary())?;
    match judge.message(&read, packet(checked).as_ref()) {
        Ok(decided) => match decided.decision {
            Decision::Duplicate(_) => Ok(Forecast::empty(ForecastVerdict::Duplicate)),
            decision @ Decision::Accept(_) => {
                let judgement = decision.into_judgement();
                Ok(accepted(&mut index, judgement, read.message.kind(), now))
            }
        },
        Err(stop) => {
            let refused = judge.refuse(agent, Some(&read.message), *stop.rejection, &mut ids);
            let clauses: Vec<Clause> = refused
                .rejection
                .faults
                .iter()
                .filter_map(|fault| fault.clause)
                .collect();
            let report = refused.rejection.report(&RefusedFile {
                file: &found.file,
                digest: None,
                message: Some(&read.message),
                outbox: agent,
                received_at: Timestamp::from_utc(now),
                attempts_left: refused
                    .record
                    .cost
                    .as_ref()
                    .map(|cost| cost.attempts_left.into()),
            });
            Ok(Forecast {
                gate: (report.refused == Code::QualityGateViolation).then(|| words(clauses)),
                report: Some(report),
                ..Forecast::empty(ForecastVerdict::Refused)
            })
        }
    }
}

fn accepted(
    index: &mut LedgerIndex,
    judgement: Judgement,
    kind: Option<MessageType>,
    now: DateTime<Utc>,
) -> Forecast {
    let mut forecast = Forecast::empty(ForecastVerdict::Accepted);
    let Judgement::Accepted(accepted) = &judgement else {
        return forecast;
    };
    forecast.alerts = accepted.alerts.iter().map(ToldAlert::from).collect();
    let key = accepted.step.as_ref().map(|step| step.review.clone());
    review::apply(&mut index.state, &Record::Judged(judgement), now);
    let moved = key.as_ref().and_then(|key| index.state.review(key));
    if let (Some(key), Some(review)) = (&key, moved) {
        forecast.review = Some(ReviewStatus::of(key, review));
        forecast.head = head(review);
        let is_lgtm = kind == Some(MessageType::Review(ReviewKind::Lgtm));
        if let (true, Phase::Approved(approval)) = (is_lgtm, &review.phase) {
            forecast.gate = Some(words(approval.broken.iter().copied()));
        }
    }
    forecast
}

/// The commit that a review is about or that its approval is bound to.
fn head(review: &Review) -> Option<CommitSha> {
    match &review.phase {
        Phase::Approved(approval) => approval.commit.clone(),
        Phase::Reviewing(open) => open.head.clone(),
        Phase::Awaiting { .. }
        | Phase::Fixing { .. }
        | Phase::Addressed { .. }
        | Phase::Escalated(_)
        | Phase::Closed(_) => review.commit.clone(),
    }
}

fn words(clauses: impl IntoIterator<Item = Clause>) -> Vec<&'static str> {
    let mut words: Vec<&str> = clauses.into_iter().map(Clause::as_str).collect();
    words.dedup();
    words
}

/// The file as the daemon would find it.
fn file(agent: &AgentName, checked: &CheckedMessage) -> OutboxFile {
    let name = FileName::new(file_name(&checked.id)).expect("a message's name is a file's");
    let body = Body::message(checked.text.as_bytes().to_vec());
    OutboxFile::finished(agent.as_str(), name, body)
}

fn packet(checked: &CheckedMessage) -> Option<PacketRead> {
    match &checked.packet {
        MessagePacket::None => None,
        MessagePacket::Missing => Some(PacketRead::Missing),
        MessagePacket::InPlace(bytes) => Some(PacketRead::Bytes(bytes.clone())),
        MessagePacket::New(new) => Some(PacketRead::Bytes(new.text.clone().into_bytes())),
    }
}
