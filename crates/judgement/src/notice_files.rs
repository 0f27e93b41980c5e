//! Puts the notices of a record into files, each in the mailbox or folder where its recipient looks. `notices` writes
//! their text.

use chrono::{DateTime, Utc};
use message_schema::envelope::Timestamp;
use message_schema::id::{AgentName, MessageId, PacketPath};
use review::{
    DaemonMessage, Event, Handoff, Happened, RefusalCost, Review, ReviewKey, ReviewStep, Says,
    State,
};
use spool::{Content, Delivery, FileName, Mailbox, dirs};

use crate::notices::{self, budget, handoff, news};
use crate::pull_event_file;
use crate::used_names::{NameScope, UsedNames};

/// A record whose notices become files, and the values they depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoticeFiles<'a> {
    /// The record's number.
    pub seq: u64,
    /// The time of the decision.
    pub now: DateTime<Utc>,
    /// The state on which it was decided: the record is not applied yet.
    pub state: &'a State,
    /// The agents that have a mailbox.
    pub agents: &'a [AgentName],
}

/// The cause of a record's notices.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Occasion<'a> {
    /// An event.
    Happened(&'a Happened),
    /// A refusal that cost the review something.
    Refused(&'a RefusalCost),
}

impl<'a> Occasion<'a> {
    fn messages(self) -> &'a [DaemonMessage] {
        match self {
            Self::Happened(happened) => &happened.messages,
            Self::Refused(cost) => &cost.messages,
        }
    }

    fn step_of(self, key: &ReviewKey) -> Option<&'a ReviewStep> {
        match self {
            Self::Happened(happened) => happened.steps.iter().find(|step| step.review == *key),
            Self::Refused(cost) => Some(&cost.step).filter(|step| step.review == *key),
        }
    }

    fn event(self) -> Option<&'a Event> {
        match self {
            Self::Happened(happened) => Some(&happened.event),
            Self::Refused(_) => None,
        }
    }

    fn handoff(self) -> Option<&'a Handoff> {
        match self {
            Self::Happened(happened) => happened.handoff.as_ref(),
            Self::Refused(_) => None,
        }
    }
}

impl NoticeFiles<'_> {
    /// Returns the files of a record's notices. A notice to an agent without a mailbox stays in the record only,
    /// because the daemon would retry the impossible delivery forever.
    pub(crate) fn notices(&self, occasion: Occasion<'_>, names: &mut UsedNames) -> Vec<Delivery> {
        let mut deliveries = Vec::new();
        for (number, message) in occasion.messages().iter().enumerate() {
            if self.agents.contains(&message.to) {
                deliveries.extend(self.notice(message, number, occasion, names));
            }
        }
        deliveries
    }

    fn notice(
        &self,
        message: &DaemonMessage,
        number: usize,
        occasion: Occasion<'_>,
        names: &mut UsedNames,
    ) -> Vec<Delivery> {
        let head = self.head(&message.id, &message.to);
        let mut deliveries = Vec::new();
        let (what, text) = match &message.says {
            Says::Escalated { review, reason } => {
                let after = self.after(review, occasion);
                (
                    "escalated",
                    news::escalated(&head, &self.about(review, &after, occasion), reason),
                )
            }
            Says::Closed { review, reason } => {
                let after = self.after(review, occasion);
                (
                    "closed",
                    news::closed(&head, &self.about(review, &after, occasion), *reason),
                )
            }
            Says::Reassigned { review, to } => {
                let after = self.after(review, occasion);
                let about = self.about(review, &after, occasion);
                ("reassigned", news::reassigned(&head, &about, to))
            }
            Says::Decided { review } => {
                let after = self.after(review, occasion);
                (
                    "decided",
                    news::decided(&head, &self.about(review, &after, occasion)),
                )
            }
            Says::BudgetSpent { review, round } => {
                let before = self.before(review);
                let spent = budget::Spent {
                    key: review,
                    review: before,
                    round: *round,
                    event: occasion.event(),
                };
                // The id is random, so no other packet can have the name already.
                let name = format!("pr{}_r{round}_{}", review.pr, message.id.as_str());
                let packet = budget::packet(&spent, &name, head.at);
                let (path, delivery) =
                    packet_of(dirs::FINDINGS, &name, packet.text.clone(), names, self.seq);
                deliveries.push(delivery);
                let path =
                    PacketPath::new(path).expect("a folder and a plain name are a packet path");
                ("feedback", budget::feedback(&head, &spent, &packet, path))
            }
            Says::Handoff { task } => {
                let tasks = occasion.handoff().map_or(&[][..], |handoff| &handoff.tasks);
                let task = tasks
                    .iter()
                    .find(|dispatched| dispatched.id == *task)
                    .expect("a handoff message is about a task of its record");
                let text = handoff::packet(task, head.at);
                let (path, delivery) =
                    packet_of(dirs::HANDOFF, task.id.as_str(), text, names, self.seq);
                deliveries.push(delivery);
                ("handoff", handoff::message(&head, task, path))
            }
            Says::SentDiffers { file } => ("sent_differs", notices::sent_differs(&head, file)),
        };
        deliveries.push(self.posted(&message.to, what, number, text, names));
        deliveries
    }

    fn before(&self, key: &ReviewKey) -> &Review {
        self.state
            .review(key)
            .expect("a message is about a review that the state has")
    }

    fn after(&self, key: &ReviewKey, occasion: Occasion<'_>) -> Review {
        let before = self.before(key);
        occasion
            .step_of(key)
            .map_or_else(|| before.clone(), |step| before.after(step, self.now))
    }

    fn about<'a>(
        &'a self,
        key: &'a ReviewKey,
        review: &'a Review,
        occasion: Occasion<'a>,
    ) -> news::ReviewChange<'a> {
        news::ReviewChange {
            state: self.state,
            key,
            review,
            event: occasion.event(),
            handoff: occasion.handoff(),
        }
    }

    /// Returns the envelope fields of a notice of this record.
    pub(crate) fn head<'l>(&self, id: &'l MessageId, to: &'l AgentName) -> notices::NoticeHead<'l> {
        notices::NoticeHead {
            id,
            to,
            at: Timestamp::from_utc(self.now),
        }
    }

    /// Delivers a notice to an agent's inbox; `number` distinguishes the notices of one record.
    pub(crate) fn posted(
        &self,
        to: &AgentName,
        what: &str,
        number: usize,
        text: String,
        names: &mut UsedNames,
    ) -> Delivery {
        let further = if number == 0 {
            String::new()
        } else {
            format!("-{number}")
        };
        let name = format!("{}_settled_{what}_{}{further}.yaml", self.stamp(), self.seq);
        delivery(Mailbox::Inbox(to.to_string()), name, text, names, self.seq)
    }

    /// Returns the file about a pull request event.
    pub(crate) fn pull_event(&self, event: &Event, names: &mut UsedNames) -> Option<Delivery> {
        let Event::Pull(event) = event else {
            return None;
        };
        let name = format!("{}_{}_{}.yaml", self.stamp(), event.action.word(), self.seq);
        let text = pull_event_file::text(event, Timestamp::from_utc(self.now));
        let mailbox = Mailbox::PullRequest(String::from(event.pr.to_canonical()));
        Some(delivery(mailbox, name, text, names, self.seq))
    }

    fn stamp(&self) -> impl std::fmt::Display {
        self.now.format("%Y%m%d%H%M%S")
    }
}

/// Delivers a packet to its folder, and returns the path by which a message names it.
fn packet_of(
    folder: &str,
    name: &str,
    text: String,
    names: &mut UsedNames,
    seq: u64,
) -> (String, Delivery) {
    let delivery = delivery(
        Mailbox::Packets(folder.to_owned()),
        format!("{name}.yaml"),
        text,
        names,
        seq,
    );
    (
        format!("{}/{}", dirs::of_packets(folder), delivery.file),
        delivery,
    )
}

fn delivery(
    mailbox: Mailbox,
    name: String,
    text: String,
    names: &mut UsedNames,
    seq: u64,
) -> Delivery {
    let wanted =
        FileName::new(name).expect("digits, words and the daemon's own ids are a file name");
    let file = names.choose(NameScope::Mailbox(&mailbox), &wanted, seq);
    Delivery {
        mailbox,
        file,
        content: Content::Text(text),
    }
}
