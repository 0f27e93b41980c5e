//! A file handed to the judge without a disk: the daemon's own path, and what its sender is told in the
//! words of a scenario.

use judgement::{Ids, Judge, Refused, Stop, Submission};
use message_schema::Message;
use message_schema::id::AgentName;
use review::Judgement;
use spool::{Body, Digest, FileName, OutboxFile, PacketRead, Stamp};

use super::outcome::{self, Outcome};

/// The bytes of a file.
pub(super) fn bytes(bytes: &[u8]) -> Body {
    Body::Message {
        digest: Digest::of(bytes),
        bytes: bytes.to_vec(),
    }
}

/// A file of that user in an outbox. It was finished long ago, and nobody waits for its writer.
pub(super) fn file(outbox: &AgentName, owner: u32, body: Body) -> OutboxFile {
    OutboxFile {
        agent: outbox.to_string(),
        file: FileName::new("message.yaml").expect("a file name"),
        stamp: Stamp {
            ino: 0,
            size: 0,
            mtime_ns: 0,
            fresh: false,
        },
        owner,
        body,
    }
}

/// Judges the text of a message; `packet` gives what lies at the path it names.
pub(super) fn text(
    judge: Judge<'_>,
    outbox: &AgentName,
    text: &[u8],
    packet: impl FnOnce(&Message) -> Option<PacketRead>,
    ids: Ids<'_>,
) -> Judgement {
    let found = file(outbox, 0, bytes(text));
    let submission = Submission {
        found: &found,
        outbox,
        user: None,
    };
    submit(judge, submission, packet, ids).0
}

/// Judges a submission; `packet` gives what lies at the path the message names.
pub(super) fn submit(
    judge: Judge<'_>,
    submission: Submission<'_>,
    packet: impl FnOnce(&Message) -> Option<PacketRead>,
    ids: Ids<'_>,
) -> (Judgement, Vec<Outcome>) {
    let refuse = |message: Option<&Message>, stop: Stop, ids| {
        let refused = judge.refuse(submission.outbox, message, stop.rejection, ids);
        let outcomes = told(&refused);
        (Judgement::Refused(refused.record), outcomes)
    };
    let read = match judgement::read(submission) {
        Ok(read) => read,
        Err(stop) => return refuse(None, stop, ids),
    };
    match judge.message(&read, packet(&read.message).as_ref()) {
        Ok(decided) => {
            let judgement = decided.decision.into_judgement();
            let mut outcomes = outcome::judgement(&judgement);
            let validators = decided.warnings.iter();
            outcomes.extend(validators.map(|warning| outcome::violation(warning, None)));
            outcomes.extend(rules_warnings(&judgement, decided.warnings.len()));
            (judgement, outcomes)
        }
        Err(stop) => refuse(Some(&read.message), stop, ids),
    }
}

fn told(refused: &Refused) -> Vec<Outcome> {
    let rejection = &refused.rejection;
    let violations = rejection.violations.iter().enumerate();
    let mut outcomes: Vec<Outcome> = violations
        .map(|(n, violation)| outcome::violation(violation, rejection.faults.get(n)))
        .collect();
    outcomes.extend(outcome::cost(&refused.record));
    outcomes
}

/// The warnings of the review's rules; those of the validator stand behind them.
fn rules_warnings(judgement: &Judgement, validators: usize) -> Vec<Outcome> {
    let Judgement::Accepted(accepted) = judgement else {
        return Vec::new();
    };
    let count = accepted.warnings.len().saturating_sub(validators);
    accepted.warnings[..count]
        .iter()
        .map(|warning| Outcome::note(format!("warning: {warning}")))
        .collect()
}
