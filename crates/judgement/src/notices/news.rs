//! Notifies an agent that its review was escalated, was closed with its pull request, or was decided by a person. Each
//! notice says who did it, why, and what the reader can do next.

use std::collections::BTreeMap;

use message_schema::envelope::Timestamp;
use message_schema::id::{AgentName, FindingId};
use message_schema::line::escaped;
use review::{
    Act, CloseReason, EscalationReason, Event, Handoff, PairReport, PairStep, PersonsDecision,
    Phase, PullEvent, Review, ReviewKey, State,
};

use super::{NoticeContent, NoticeHead, fitted, notification, one_line, write};

/// The most characters of a person's name or reason that a notice repeats.
const WORDS_CHARS_MAX: usize = 1_000;

/// A review after a record, and the record's cause.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReviewChange<'a> {
    /// The state before the record.
    pub state: &'a State,
    /// Its key.
    pub key: &'a ReviewKey,
    /// Its state after the record.
    pub review: &'a Review,
    /// The event, if no message caused the record.
    pub event: Option<&'a Event>,
    /// The findings the record handed off.
    pub handoff: Option<&'a Handoff>,
}

/// Announces an escalation.
pub(crate) fn escalated(
    notice: &NoticeHead<'_>,
    about: &ReviewChange<'_>,
    reason: &EscalationReason,
) -> String {
    let subject = format!("Review {} is with a person: {reason}", about.key);
    let decided = about.decision().map_or_else(String::new, |decision| {
        decision_sentence(decision, about) + "\n"
    });
    let why = why_escalated(about, reason);
    let told = format!(
        "{decided}The daemon escalated the review {} to a person: {why}.\n",
        about.key
    );
    about.write(notice, subject, &told)
}

/// Announces that another reviewer gets the request, to the author and to the former reviewer.
pub(crate) fn reassigned(
    notice: &NoticeHead<'_>,
    about: &ReviewChange<'_>,
    to: &AgentName,
) -> String {
    let subject = format!("Review {} is reassigned to {to}", about.key);
    let before = about.state.review(about.key);
    let old = before.map_or(&about.key.reviewer, |review| review.reviewer(about.key));
    let told = format!(
        "What happened: {}.\nThe open request goes to {to}, with the threads as they are and the time that is left; an answer of {old} is \
         refused from now on.\n",
        about.failure(old, about.review.round)
    );
    about.write(notice, subject, &told)
}

/// Announces the end of the pull request.
pub(crate) fn closed(
    notice: &NoticeHead<'_>,
    about: &ReviewChange<'_>,
    reason: CloseReason,
) -> String {
    let subject = format!("Review {} is closed: {}", about.key, reason.word());
    let head = match about.event {
        Some(Event::Pull(PullEvent {
            head: Some(head), ..
        })) => format!(" at {}", head.as_str()),
        Some(
            Event::Pull(PullEvent { head: None, .. })
            | Event::Deadline { .. }
            | Event::Taken(_)
            | Event::Turns { .. }
            | Event::Started(_)
            | Event::Failed { .. }
            | Event::Spent(_)
            | Event::Observed { .. }
            | Event::Ran { .. }
            | Event::Person(_)
            | Event::Pair(_)
            | Event::LedgerAccepted(_)
            | Event::SentDiffers(_)
            | Event::Host(_),
        )
        | None => String::new(),
    };
    let what = match reason {
        CloseReason::Merged => "was merged",
        CloseReason::NotMerged => "was closed without being merged",
        CloseReason::Commented => "was commented on in its last round",
    };
    let ended = format!(
        "Pull request {}{head} {what}. That ended the review {} in round {}; nobody waits for you.\n",
        about.key.pr, about.key, about.review.round
    );
    let handed_off = about
        .handoff
        .map_or_else(String::new, |handoff| handed_off(handoff, about.key));
    about.write(notice, subject, &(ended + &handed_off))
}

/// Announces a person's decision; the reader moves next.
pub(crate) fn decided(notice: &NoticeHead<'_>, about: &ReviewChange<'_>) -> String {
    let word = about
        .decision()
        .map_or("decided", |decision| decision.act.word());
    let subject = format!("Review {}: {word} by a person", about.key);
    let told = about.decision().map_or_else(
        || "A person decided.".to_owned(),
        |decision| decision_sentence(decision, about),
    );
    let now = format!(
        "The review {} is now {}.\n",
        about.key,
        about.review.phase.word()
    );
    about.write(notice, subject, &format!("{told}\n{now}"))
}

impl ReviewChange<'_> {
    fn decision(&self) -> Option<&PersonsDecision> {
        self.event?.decision()
    }

    /// Explains how the reviewer's command failed.
    fn failure(&self, reviewer: &AgentName, round: u32) -> String {
        let why = match self.event {
            Some(Event::Failed { failure, .. }) => format!(": {}", escaped(&failure.sentence())),
            Some(Event::Pair(PairReport {
                what: PairStep::Crashed { why, .. },
                ..
            })) => format!(" ({})", escaped(why)),
            Some(
                Event::Deadline { .. }
                | Event::Taken(_)
                | Event::Turns { .. }
                | Event::Started(_)
                | Event::Spent(_)
                | Event::Observed { .. }
                | Event::Ran { .. }
                | Event::Pull(_)
                | Event::Person(_)
                | Event::Pair(_)
                | Event::LedgerAccepted(_)
                | Event::SentDiffers(_)
                | Event::Host(_),
            )
            | None => String::new(),
        };
        format!("the command of {reviewer} ended round {round} without a response{why}")
    }

    fn write(&self, notice: &NoticeHead<'_>, subject: String, told: &str) -> String {
        let body = format!("{told}{}", self.next(notice.to));
        let content = NoticeContent {
            related_pr: Some(self.key.pr.clone()),
            ..notification(subject, fitted(body, "`settled status` shows the review"))
        };
        write(notice, content)
    }

    /// Lists the possible next steps and the deadline.
    fn next(&self, reader: &AgentName) -> String {
        let mut text = "\nWhat comes next:\n".to_owned();
        for next in self.state.legal_next(self.key, self.review) {
            text += &format!("- {next}\n");
        }
        if let Phase::Escalated(_) = self.review.phase {
            let can = match self.state.no_generation(self.key) {
                None => {
                    "reopen the review, grant a round after the last one, or settle its threads"
                        .to_owned()
                }
                Some(fault) => format!(
                    "settle its threads or close the pull request: {}",
                    fault.message
                ),
            };
            text += &format!("{reader} has nothing to do until then. A person can {can}.\n");
        }
        if let Some((at, _)) = self.review.deadline() {
            let at = Timestamp::from_utc(at);
            text += &format!(
                "The review waits until {at}; then the daemon escalates it to a person.\n"
            );
        }
        text
    }
}

fn why_escalated(about: &ReviewChange<'_>, reason: &EscalationReason) -> String {
    let (author, reviewer) = (&about.key.author, about.review.reviewer(about.key));
    let round = about.review.round;
    match reason {
        EscalationReason::MaxRoundsExceeded => {
            format!("round {round} was the last one, and the quality gate does not pass")
        }
        EscalationReason::ReviewerBudgetExceeded => {
            format!("the turns or seconds {reviewer} had for round {round} are spent")
        }
        EscalationReason::ReviewerTimeout => {
            format!("{reviewer} did not take the request of round {round} in time")
        }
        EscalationReason::AuthorTimeout => {
            format!("{author} did not move in time; round {round} was the last one opened")
        }
        EscalationReason::ProtocolViolation => {
            format!("the last response {reviewer} could try in round {round} was refused too")
        }
        EscalationReason::BlockerHeld => {
            "no blocking thread is open any more, but a person holds one".to_owned()
        }
        EscalationReason::InvocationFailed => about.failure(reviewer, round),
        EscalationReason::NoReviewer => format!(
            "{}, and the list of reviewers names nobody else who can be asked",
            about.failure(reviewer, round)
        ),
        EscalationReason::SpendExceeded => format!(
            "the budget of the review is used up: the commands of its reviewers used {}",
            about.review.spent
        ),
        EscalationReason::Cancelled => {
            format!("a person cancelled the request to {reviewer} in round {round}")
        }
        EscalationReason::Reviewer(text) => {
            format!("{reviewer} says: {}", one_line(text, WORDS_CHARS_MAX))
        }
    }
}

/// Names the person, the decision and the reason.
fn decision_sentence(decision: &PersonsDecision, about: &ReviewChange<'_>) -> String {
    let PersonsDecision {
        by, reason, act, ..
    } = decision;
    let thread = |id: &FindingId| one_line(id.as_str(), WORDS_CHARS_MAX);
    let what = match act {
        Act::Reopen => {
            format!(
                "reopened the review; it is now in generation {}",
                about.review.generation
            )
        }
        Act::Cancel => format!(
            "cancelled the request to {}: the daemon expects no response",
            about.review.reviewer(about.key)
        ),
        Act::Approve { .. } => format!(
            "approved {}",
            about
                .review
                .phase
                .approved_commit()
                .map_or_else(|| "it".to_owned(), |commit| commit.as_str().to_owned())
        ),
        Act::Grant { rounds } => {
            format!(
                "granted {rounds} more round; round {} is the last one now",
                about.review.last_round()
            )
        }
        Act::Resolve(id) => format!("resolved {}", thread(id)),
        Act::WontFix(id) => format!("marked {} as wont-fix", thread(id)),
        Act::Queue(id) => {
            format!(
                "queued {}: it is handed off once the pull request is merged",
                thread(id)
            )
        }
        Act::Hold(id) => format!("holds {} for people: it needs no action", thread(id)),
        Act::Release(id) => format!("released {}: it is open again", thread(id)),
        Act::Drop(id) => format!("took {} out of the queue", thread(id)),
    };
    let (by, reason) = (
        one_line(by, WORDS_CHARS_MAX),
        one_line(reason, WORDS_CHARS_MAX),
    );
    format!("{by} {what}.\nThe reason: {reason}")
}

/// Lists which findings of a review were handed off when its pull request ended, and why others were not.
fn handed_off(handoff: &Handoff, key: &ReviewKey) -> String {
    let mut text = String::new();
    for task in &handoff.tasks {
        let of_review = task
            .findings
            .iter()
            .filter(|finding| finding.review == *key);
        let ids: Vec<String> = of_review
            .map(|finding| one_line(finding.id.as_str(), 200))
            .collect();
        if !ids.is_empty() {
            text += &format!(
                "Handed off to {} as {}: {}.\n",
                task.target,
                task.id,
                ids.join(", ")
            );
        }
    }
    let mut left: BTreeMap<&str, usize> = BTreeMap::new();
    for stays in handoff.left.iter().filter(|left| left.review == *key) {
        *left.entry(stays.why.word()).or_default() += 1;
    }
    for (why, count) in left {
        text += &format!("Not handed off ({why}): {count}.\n");
    }
    if handoff.dropped > 0 {
        text += &format!(
            "Findings that a person queued and that nobody gets now: {}.\n",
            handoff.dropped
        );
    }
    text
}
