//! Writes the brief beside a delivered request, and the one that replaces it when a person decides meanwhile: the
//! file's name and text.

use chrono::{DateTime, Utc};
use message_schema::envelope::{MessageType, ReviewKind};
use message_schema::{flow, json_for_yaml, render_lines};
use review::{EventRecord, Judgement, Policy, Record, ReviewStep, State};
use spool::{Content, Delivery, FileName, Mailbox};

use super::{Brief, brief};
use crate::used_names::{NameScope, UsedNames};

/// Returns the brief of a record that accepts a request, gives it to another reviewer, or contains a person's decision
/// about a review with an open request: the schema of the old brief would ask for a settled thread, or forbid a
/// reopened one. `state` is the state after the record.
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
    let brief = brief(state, policy, &step?.review, now)?;
    let mailbox = Mailbox::Packets(spool::dirs::BRIEFS.to_owned());
    let file = names.choose(NameScope::Mailbox(&mailbox), &name(&brief), seq);
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
    if happened.event.decision().is_none() && happened.reassigned_to().is_none() {
        return None;
    }
    happened.steps.first()
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

/// Renders one line for each field and thread, and last the schema, which a program reads.
pub fn text(brief: &Brief) -> String {
    let json = format!(
        "{}response_schema: {}\n",
        render_lines(brief),
        json_for_yaml(&brief.response_schema)
    );
    flow(&json)
}
