//! The cost of a refusal to its review, and the choice whether its sender gets a notice.

use chrono::{DateTime, Utc};
use message_schema::Code;
use message_schema::id::{AgentName, MessageId};
use review_words::key::ReviewKey;
use review_words::phase::{EscalationReason, Invocation, Phase};
use review_words::record::{DaemonMessage, Notice, RefusalCost, RefusedMessage, ReviewStep, Says};
use review_words::refusal::Costs;

use crate::parts::state::State;

/// A message that the daemon refuses, and the reason, whichever stage found it.
#[derive(Clone, Copy, Debug)]
pub struct Refused<'a> {
    /// The owner of its outbox.
    pub outbox: &'a AgentName,
    /// The code of the refusal.
    pub code: Code,
    /// The review that pays for it, and the cost.
    pub costs: Option<(&'a ReviewKey, Costs)>,
    /// True if it was addressed to the daemon, as far as the daemon could read it.
    pub to_daemon: bool,
    /// True if it is one of the four review types, as far as the daemon could read it.
    pub is_review: bool,
    /// The id of the message it answers, as far as the daemon could read it.
    pub parent: Option<&'a str>,
    /// The id of the notice, if the sender gets one.
    pub notice: &'a MessageId,
    /// The id of the notification to the author, should this refusal end the review.
    pub announcement: &'a MessageId,
}

/// True if a refusal with this code always costs the reviewer something: nothing but a response to an open request is
/// refused with it. Other codes can come from a message that costs nothing.
pub fn always_costs(code: Code) -> bool {
    matches!(
        code,
        Code::ActionIllegal
            | Code::ActionMissing
            | Code::ApprovalWithoutEvidence
            | Code::DuplicateFinding
            | Code::FeedbackEmpty
            | Code::FindingIdReused
            | Code::HeadMismatch
            | Code::ThreadNotOpen
            | Code::TooManyFindings
            | Code::TurnBudgetExceeded
    )
}

/// Determines the cost of the refusal, and whether its sender gets a notice.
pub fn refuse(state: &State, refused: &Refused<'_>, now: DateTime<Utc>) -> RefusedMessage {
    let admission = &state.admission;
    // A notice about mail to the daemon, or about an answer to a notice, would start a loop.
    // A review message that cites a notice as its parent is a correction, and its sender must hear.
    let answers_notice = refused
        .parent
        .is_some_and(|parent| admission.is_daemons(parent));
    let quiet = refused.to_daemon || (answers_notice && !refused.is_review);
    let notice = if quiet {
        Notice::Never
    } else if admission.may_notify(refused.outbox, now) {
        Notice::Sent {
            id: refused.notice.clone(),
            summed_up: admission.withheld(refused.outbox),
        }
    } else {
        Notice::Withheld
    };
    RefusedMessage {
        from: refused.outbox.clone(),
        code: refused.code,
        cost: refused
            .costs
            .and_then(|(key, costs)| cost(state, key, costs, refused.announcement)),
        notice,
    }
}

fn cost(
    state: &State,
    key: &ReviewKey,
    costs: Costs,
    announcement: &MessageId,
) -> Option<Box<RefusalCost>> {
    let review = state.reviews.get(key)?;
    let open = review.phase.invocation()?;
    let (attempts_left, reason) = match costs {
        Costs::Nothing => return None,
        Costs::Attempt => (
            open.attempts_left.saturating_sub(1),
            EscalationReason::ProtocolViolation,
        ),
        Costs::Invocation => (0, EscalationReason::ReviewerBudgetExceeded),
    };
    if attempts_left > 0 {
        let phase = Phase::Reviewing(Invocation {
            attempts_left,
            ..open.clone()
        });
        let step = ReviewStep::to(key, review.round, phase);
        return Some(Box::new(RefusalCost {
            attempts_left,
            step,
            messages: Vec::new(),
        }));
    }
    let says = match costs {
        Costs::Invocation => Says::BudgetSpent {
            review: key.clone(),
            round: review.round,
        },
        Costs::Attempt | Costs::Nothing => Says::Escalated {
            review: key.clone(),
            reason: reason.clone(),
        },
    };
    let message = DaemonMessage {
        id: announcement.clone(),
        to: key.author.clone(),
        says,
    };
    let step = ReviewStep::to(key, review.round, Phase::Escalated(reason));
    Some(Box::new(RefusalCost {
        attempts_left,
        step,
        messages: vec![message],
    }))
}
