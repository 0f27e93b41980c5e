//! The way of a message without a disk: read, checked, decided by the same calls that the desk makes
//! for a file, and what the ledger would keep of it.

use chrono::{DateTime, Utc};
use judgement::draft::named_recipients;
use judgement::rejection::Rejection;
use message_schema::Message;
use message_schema::envelope::{DAEMON, MessageType};
use message_schema::id::{AgentName, MessageId};
use review::{ContentDigest, Fault, Policy, Posted, Record, Refused, State};
use spool::{Digest, FileName};
use validate_message::PacketInput;

use super::outcome::{self, Outcome};

/// What a message is judged against.
pub(super) struct Bench<'a> {
    pub(super) state: &'a State,
    pub(super) policy: &'a Policy,
    pub(super) now: DateTime<Utc>,
    /// Fresh ids for what the daemon writes.
    pub(super) ids: &'a mut dyn FnMut() -> MessageId,
}

/// What the ledger would keep of a message, and the facts that its sender is told.
pub(super) struct Judgement {
    pub(super) record: Record,
    pub(super) outcomes: Vec<Outcome>,
}

impl Bench<'_> {
    /// Judges the bytes of a file; `packet` gives what lies at the path the message names.
    pub(super) fn judge<'p>(
        &mut self,
        outbox: &AgentName,
        bytes: &[u8],
        packet: impl FnOnce(&Message) -> PacketInput<'p>,
    ) -> Judgement {
        let file = file();
        let message = match message_schema::parse(bytes) {
            Ok(message) => message,
            Err(malformed) => {
                return self.refuse(outbox, None, &Rejection::malformed(malformed, &file), &[]);
            }
        };
        let digest = ContentDigest(Digest::of(bytes).bytes());
        let before = message
            .id()
            .and_then(|id| review::repeated(self.state, outbox, &id, digest));
        if let Some(record) = before {
            return Judgement {
                outcomes: outcome::record(&record),
                record,
            };
        }
        let valid = match validate_message::check(&message, packet(&message)) {
            Ok(valid) => valid,
            Err(violations) => {
                let rejection = Rejection::violations(&violations, &message, outbox, &file);
                return self.refuse(outbox, Some(&message), &rejection, &[]);
            }
        };
        let posted = Posted {
            outbox,
            digest,
            valid: &valid,
        };
        match review::decide(self.state, self.policy, posted, self.now) {
            Ok(decision) => {
                let record = decision.into_record();
                let mut outcomes = outcome::record(&record);
                let told = valid
                    .warnings()
                    .iter()
                    .map(|warning| warning.reported(&file.to_string()));
                let told: Vec<_> = told.collect();
                outcomes.extend(told.iter().map(|warning| outcome::violation(warning, None)));
                outcomes.extend(rules_warnings(&record, told.len()));
                Judgement { record, outcomes }
            }
            Err(refusal) => {
                let faults = refusal.faults.clone();
                let rejection = Rejection::refusal(refusal, &message, valid.packet(), &file);
                self.refuse(outbox, Some(&message), &rejection, &faults)
            }
        }
    }

    /// Refuses an entry, message or not; `faults` are those of the rules, in the order of the rejection.
    pub(super) fn refuse(
        &mut self,
        outbox: &AgentName,
        message: Option<&Message>,
        rejection: &Rejection,
        faults: &[Fault],
    ) -> Judgement {
        let ids = [(self.ids)(), (self.ids)()];
        let refused = Refused {
            outbox,
            code: rejection.code,
            costs: rejection.review.as_ref().map(|key| (key, rejection.costs)),
            to_daemon: message
                .is_some_and(|message| named_recipients(message).any(|to| to == DAEMON)),
            is_review: message
                .and_then(Message::kind)
                .is_some_and(MessageType::is_review),
            parent: message.and_then(|message| message.root().optional_text("parent_message_id")),
            notice: &ids[0],
            announcement: &ids[1],
        };
        let record = review::refuse(self.state, &refused, self.now);
        let told = rejection.violations.iter().enumerate();
        let mut outcomes: Vec<Outcome> = told
            .map(|(n, violation)| outcome::violation(violation, faults.get(n)))
            .collect();
        outcomes.extend(outcome::cost(&record));
        Judgement { record, outcomes }
    }
}

/// The warnings of the review's rules; those of the validator stand behind them.
fn rules_warnings(record: &Record, validators: usize) -> Vec<Outcome> {
    let Record::Accepted(accepted) = record else {
        return Vec::new();
    };
    let count = accepted.warnings.len().saturating_sub(validators);
    accepted.warnings[..count]
        .iter()
        .map(|warning| Outcome::note(format!("warning: {warning}")))
        .collect()
}

/// The name every message has in a simulation.
pub(super) fn file() -> FileName {
    FileName::new("message.yaml").expect("a file name")
}
