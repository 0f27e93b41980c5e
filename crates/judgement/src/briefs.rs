//! The brief that lies beside a delivered request, and the one that takes its place when a person decides
//! meanwhile: its file's name and its text.

use chrono::{DateTime, Utc};
use message_schema::envelope::{MessageType, ReviewKind};
use message_schema::{escaped_json, flow, render_lines};
use review::{Brief, Event, EventRecord, Judgement, Policy, Record, ReviewStep, State};
use spool::{Content, Delivery, FileName, Mailbox};

use crate::used_names::{Folder, UsedNames};

/// The file a record makes beside a request it accepts, or for an open one when a person decides about
/// its review, for the schema of the old one would ask for a thread that is settled, or forbid one that
/// is open again. `state` is the state after the record.
pub fn of(
    record: &Record,
    state: &State,
    policy: &Policy,
    (seq, now): (u64, DateTime<Utc>),
    names: &mut UsedNames,
) -> Option<Delivery> {
    let step = match record {
        Record::Judged(judgement) => requested(judgement),
        Record::Event(record) => decided(record),
    };
    let brief = review::brief(state, policy, &step?.review, now)?;
    let mailbox = Mailbox::Packets(spool::dirs::BRIEFS.to_owned());
    let file = names.choose(Folder::Mailbox(&mailbox), &name(&brief), seq);
    Some(Delivery {
        mailbox,
        file,
        content: Content::Text(text(&brief)),
    })
}

fn requested(judgement: &Judgement) -> Option<&ReviewStep> {
    match judgement {
        Judgement::Accepted(accepted)
            if accepted.kind == MessageType::Review(ReviewKind::Request) =>
        {
            accepted.step.as_ref()
        }
        Judgement::Accepted(_) | Judgement::Duplicate(_) | Judgement::Refused(_) => None,
    }
}

fn decided(record: &EventRecord) -> Option<&ReviewStep> {
    let EventRecord::Happened(happened) = record else {
        return None;
    };
    match &happened.event {
        Event::Person(_) => happened.steps.first(),
        Event::Deadline { .. }
        | Event::Taken(_)
        | Event::Turns { .. }
        | Event::Started(_)
        | Event::Failed { .. }
        | Event::Pull(_)
        | Event::Pair(_) => None,
    }
}

fn name(brief: &Brief) -> FileName {
    let Brief {
        pr,
        author,
        reviewer,
        round,
        ..
    } = brief;
    FileName::new(format!("{pr}_{author}_{reviewer}_r{round}.yaml"))
        .expect("a number and two agent names are at most 180 bytes without a slash")
}

/// One line for each field and each thread; the schema on the last one, where a program takes it.
pub fn text(brief: &Brief) -> String {
    let json = format!(
        "{}response_schema: {}\n",
        render_lines(brief),
        escaped_json(&brief.response_schema)
    );
    flow(&json)
}
