//! Combines the ledger's records and the directories into the steps of a life.

use std::path::Path;

use chrono::{DateTime, SecondsFormat};
use message_schema::id::MessageId;
use review::{Judgement, Record};
use spool::{Away, Delivery, Digest, Entry, Mailbox, Original, dirs};

use workspace::operator_alerts;

use super::ledger_trace::{self, LedgerTrace};
use super::places::{self, FilePlace};
use super::{Certainty, Life, LifeStep, Stage};

/// The life of a message that the ledger knows.
pub(super) fn life(root: &Path, id: &MessageId, told: &LedgerTrace) -> Life {
    let is_daemons = told.from == message_schema::envelope::DAEMON;
    let mut steps = Vec::new();
    for (entry, record) in &told.records {
        if is_daemons {
            let step = LifeStep::new(Stage::Written, Certainty::Yes, "by the daemon itself");
            steps.push(step.by_record(entry.seq, &entry.at));
        } else {
            steps.extend(
                entry
                    .original
                    .as_ref()
                    .map(|original| written(entry, original)),
            );
            match record {
                Record::Judged(judgement) => steps.push(judged(entry, judgement)),
                // Only messages come from an outbox.
                Record::Event(_) => {}
            }
        }
        for (place, delivery) in entry.deliveries.iter().enumerate() {
            if let (Mailbox::Inbox(agent), Some(digest)) =
                (&delivery.mailbox, ledger_trace::brings(entry, delivery, id))
            {
                steps.extend(delivered(
                    root,
                    told,
                    &MadeFile {
                        entry,
                        delivery,
                        place,
                        agent,
                        digest,
                    },
                ));
            }
        }
    }
    steps.extend(answered(told));
    let accepted = told.accepted();
    let review = accepted
        .and_then(|accepted| accepted.step.as_ref())
        .map(|step| step.review.to_string());
    Life {
        from: Some(told.from.clone()),
        kind: accepted.map(|accepted| accepted.kind.to_string()),
        review: review.or_else(|| {
            told.records
                .iter()
                .find_map(|(entry, _)| entry.review.clone())
        }),
        steps,
    }
}

/// The step into the outbox: the path and the time of the last change, as the record has them.
fn written(entry: &Entry, original: &Original) -> LifeStep {
    let path = format!(
        "{}/{}",
        dirs::of_agent(&original.outbox, dirs::OUTBOX),
        original.file
    );
    let at = original.stamp.and_then(|stamp| {
        let at = DateTime::from_timestamp_nanos(stamp.mtime_ns);
        (stamp.mtime_ns > 0).then(|| at.to_rfc3339_opts(SecondsFormat::Millis, true))
    });
    let what = if at.is_some() {
        "into the outbox"
    } else {
        "into the outbox; the time is not known"
    };
    let step = LifeStep::new(Stage::Written, Certainty::Yes, what).by_file(path);
    LifeStep {
        at,
        record: Some(entry.seq),
        digest: original.digest.map(|digest| digest.to_string()),
        ..step
    }
}

/// The step of the decision, with the place to which the daemon moved the original.
fn judged(entry: &Entry, judgement: &Judgement) -> LifeStep {
    let (stage, what) = match judgement {
        Judgement::Accepted(accepted) => match &accepted.step {
            Some(step) => (
                Stage::Accepted,
                format!("{} in round {}", step.phase.word(), step.round),
            ),
            None => (Stage::Accepted, "it moves no review".to_owned()),
        },
        Judgement::Refused(refused) => (Stage::Refused, refused.code.to_string()),
        Judgement::Duplicate(_) => (
            Stage::Duplicate,
            "the same bytes were accepted before".to_owned(),
        ),
    };
    let step = LifeStep::new(stage, Certainty::Yes, what).by_record(entry.seq, &entry.at);
    let away = entry
        .original
        .as_ref()
        .map(|original| match &original.away {
            Away::Sent(file) => format!("{}/{file}", dirs::of_agent(&original.outbox, dirs::SENT)),
            Away::DeadLetter(file) => {
                format!(
                    "{}/{file}",
                    dirs::of_agent(&original.outbox, dirs::DEAD_LETTER)
                )
            }
        });
    LifeStep { path: away, ..step }
}

/// A file that a record makes in an inbox.
struct MadeFile<'a> {
    entry: &'a Entry,
    delivery: &'a Delivery,
    /// Its index among the record's deliveries.
    place: usize,
    agent: &'a str,
    digest: Digest,
}

/// The steps into the inbox and out of it.
fn delivered(root: &Path, told: &LedgerTrace, made: &MadeFile<'_>) -> [LifeStep; 2] {
    let MadeFile {
        entry,
        delivery,
        agent,
        ..
    } = made;
    let step = |stage, state, what: &str| LifeStep::new(stage, state, what).of(agent);
    let taken = told.taken.as_ref();
    let taken = taken.map(|(seq, at)| {
        step(Stage::Taken, Certainty::Yes, "as the record says").by_record(*seq, at)
    });
    let record = |step: LifeStep| LifeStep {
        record: Some(entry.seq),
        ..step
    };
    let place = places::of_delivered(root, agent, &delivery.file, entry.seq, &made.digest);
    let (came, left) = match place {
        FilePlace::Inbox(path) => (
            step(Stage::Delivered, Certainty::Yes, "in the inbox").by_file(path),
            step(
                Stage::Taken,
                Certainty::No,
                "not yet: it is still in the inbox",
            ),
        ),
        FilePlace::Left(path) => (
            step(
                Stage::Delivered,
                Certainty::Yes,
                "it has left the inbox since",
            ),
            step(
                Stage::Taken,
                Certainty::Yes,
                "out of the inbox; the time is not known",
            )
            .by_file(path),
        ),
        FilePlace::Gone => gone(root, made, &step, taken.is_some()),
        FilePlace::Unreadable(why) => (
            step(
                Stage::Delivered,
                Certainty::Unknown,
                &format!("not known: {why}"),
            ),
            step(
                Stage::Taken,
                Certainty::Unknown,
                &format!("not known: {why}"),
            ),
        ),
    };
    // A recorded take has a time; the file's current place says less.
    let left = match taken {
        Some(taken) => LifeStep {
            path: left.path,
            ..taken
        },
        None => left,
    };
    [record(came), left]
}

/// The same steps for a file that is in no known place any more.
fn gone(
    root: &Path,
    made: &MadeFile<'_>,
    step: &dyn Fn(Stage, Certainty, &str) -> LifeStep,
    is_taken: bool,
) -> (LifeStep, LifeStep) {
    let MadeFile {
        entry,
        delivery,
        place,
        agent,
        ..
    } = made;
    let before = entry.deliveries[..*place]
        .iter()
        .filter(|earlier| earlier.mailbox == delivery.mailbox)
        .count();
    let n = u32::try_from(before).unwrap_or(u32::MAX);
    match spool::has_delivered(root, &delivery.mailbox, entry.seq, n) {
        Some(true) => (
            step(
                Stage::Delivered,
                Certainty::Yes,
                "as the mailbox's cursor says",
            ),
            step(
                Stage::Taken,
                Certainty::Yes,
                "it has left the inbox; who moved it and when is not known",
            ),
        ),
        Some(false) => {
            let alerts = operator_alerts::read(root);
            let why = operator_alerts::of_inbox(&alerts, agent).map_or_else(
                || "the daemon has still to deliver it".to_owned(),
                |alert| alert.what.clone(),
            );
            (
                step(Stage::Delivered, Certainty::No, &format!("not yet: {why}")),
                step(Stage::Taken, Certainty::No, "not yet"),
            )
        }
        None if is_taken => (
            step(Stage::Delivered, Certainty::Yes, "as its take says"),
            step(Stage::Taken, Certainty::Yes, "as the record says"),
        ),
        None => (
            step(
                Stage::Delivered,
                Certainty::Unknown,
                "unknown: the file is nowhere and no cursor mentions it",
            ),
            step(
                Stage::Taken,
                Certainty::Unknown,
                "unknown: the file is nowhere",
            ),
        ),
    }
}

/// The steps of the answers; none for a message that was never accepted.
fn answered(told: &LedgerTrace) -> Vec<LifeStep> {
    if told.answers.is_empty() {
        let none = || LifeStep::new(Stage::Answered, Certainty::No, "no record answers it");
        return told.accepted().map(|_| none()).into_iter().collect();
    }
    let step = |(by, answer): (_, &ledger_trace::TracedAnswer)| {
        let what = format!("{} {}", answer.id, answer.how.words());
        let step =
            LifeStep::new(Stage::Answered, Certainty::Yes, what).by_record(answer.seq, &answer.at);
        let by: &message_schema::id::AgentName = by;
        step.of(by.as_str())
    };
    told.answers.iter().map(step).collect()
}
