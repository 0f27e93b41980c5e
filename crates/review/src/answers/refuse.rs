//! What a refusal costs the review it concerns, and whether its sender is told.

use chrono::{DateTime, Utc};
use message_schema::Code;
use message_schema::id::{AgentName, MessageId};

use crate::parts::state::State;
use crate::words::key::ReviewKey;
use crate::words::phase::{EscalationReason, Invocation, Phase};
use crate::words::record::{DaemonMessage, Notice, RefusalCost, RefusedMessage, ReviewStep, Says};
use crate::words::refusal::Costs;

/// A message that is to be refused, whatever stage found the reason.
#[derive(Clone, Copy, Debug)]
pub struct Refused<'a> {
    /// The owner of the outbox it lies in.
    pub outbox: &'a AgentName,
    /// The code it is filed under.
    pub code: Code,
    /// The review that loses something by it, and what.
    pub costs: Option<(&'a ReviewKey, Costs)>,
    /// Whether it was addressed to the daemon, as far as it could be read.
    pub to_daemon: bool,
    /// Whether it is one of the four review types, as far as it could be read.
    pub is_review: bool,
    /// The id of the message it answers, as far as it could be read.
    pub parent: Option<&'a str>,
    /// The id the notice would get.
    pub notice: &'a MessageId,
    /// The id of the notification to the author, should this refusal end the review.
    pub announcement: &'a MessageId,
}

/// What the refusal costs and whether its sender is told.
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
            letters: Vec::new(),
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
        letters: vec![message],
    }))
}
