//! Hands a file to the judge without a disk, along the daemon's path, and lists the resulting facts.

use judgement::rejection::Rejection;
use judgement::{Ids, Judge, Refused, Stop, Submission};
use message_schema::Message;
use message_schema::id::{AgentName, PacketPath};
use review::Judgement;
use spool::{Body, FileName, OutboxFile, PacketRead};
use validate_message::{PacketInput, Violations, check};

use super::facts::{self, Fact};

/// Makes a file of that user in an outbox, finished long ago so that the judge need not wait for its writer.
pub(super) fn file(outbox: &AgentName, owner: u32, body: Body) -> OutboxFile {
    let name = FileName::new("message.yaml").expect("a file name");
    OutboxFile {
        owner,
        ..OutboxFile::finished(outbox.as_str(), name, body)
    }
}

/// Judges the text of a message; `packet` reads the path it names.
pub(super) fn text(
    judge: Judge<'_>,
    outbox: &AgentName,
    text: &[u8],
    packet: impl FnOnce(&PacketPath) -> PacketRead,
    ids: Ids<'_>,
) -> Judgement {
    let found = file(outbox, 0, Body::message(text.to_vec()));
    let submission = Submission {
        found: &found,
        outbox,
        user: None,
    };
    submit(judge, submission, packet, ids).0
}

/// Judges a submission; `packet` reads the path its message names.
pub(super) fn submit(
    judge: Judge<'_>,
    submission: Submission<'_>,
    packet: impl FnOnce(&PacketPath) -> PacketRead,
    ids: Ids<'_>,
) -> (Judgement, Vec<Fact>) {
    let refuse = |message: Option<&Message>, stop: Stop, ids| {
        refused(judge.refuse(submission.outbox, message, *stop.rejection, ids))
    };
    let read = match judgement::read(submission) {
        Ok(read) => read,
        Err(stop) => return refuse(None, stop, ids),
    };
    let packet = read.packet.as_ref().map(packet);
    match judge.message(&read, packet.as_ref()) {
        Ok(decided) => {
            let judgement = decided.decision.into_judgement();
            let mut facts = facts::judgement(&judgement);
            let file = submission.found.file.to_string();
            let validators = decided.warnings.iter();
            facts
                .extend(validators.map(|warning| facts::violation(&warning.reported(&file), None)));
            (judgement, facts)
        }
        Err(stop) => refuse(Some(&read.message), stop, ids),
    }
}

/// Judges the text of a message as `validate-message` does outside a workspace: without any review.
pub(super) fn by_itself(text: &[u8]) -> Vec<Fact> {
    let checked = message_schema::parse(text)
        .map_err(Violations::from)
        .and_then(|message| check(&message, PacketInput::NotLooked));
    let (verdict, violations) = match checked {
        Ok(valid) => (
            Some(Fact::yes("accepted -> valid by itself")),
            valid.warnings().to_vec(),
        ),
        Err(violations) => (None, violations.into_vec()),
    };
    let told = violations
        .iter()
        .map(|violation| facts::violation(&violation.reported("message.yaml"), None));
    verdict.into_iter().chain(told).collect()
}

/// Refuses a message beyond the limit on messages of one outbox that wait for a packet.
pub(super) fn overflow(
    judge: Judge<'_>,
    outbox: &AgentName,
    ids: Ids<'_>,
) -> (Judgement, Vec<Fact>) {
    let found = file(outbox, 0, Body::message(Vec::new()));
    let rejection = Rejection::too_many_waiting(&found.file);
    refused(judge.refuse(outbox, None, rejection, ids))
}

fn refused(refused: Refused) -> (Judgement, Vec<Fact>) {
    let facts = refusal_facts(&refused);
    (Judgement::Refused(refused.record), facts)
}

fn refusal_facts(refused: &Refused) -> Vec<Fact> {
    let rejection = &refused.rejection;
    let violations = rejection.violations.iter().enumerate();
    let mut list: Vec<Fact> = violations
        .map(|(n, violation)| facts::violation(violation, rejection.faults.get(n)))
        .collect();
    list.extend(facts::cost(&refused.record));
    list
}
