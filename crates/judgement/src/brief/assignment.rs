//! A review as its reviewer has to answer it: its state, and what the rules allow in a response.

use std::borrow::Cow;

use message_schema::id::FindingId;
use message_schema::packet::{Action, Stance};
use serde::{Deserialize, Serialize};

use review::Review;
use review::{RoundKind, Thread, ThreadState};

/// The legal actions on one thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Legal {
    /// With the stance that the author should change something.
    pub seeks_change: Cow<'static, [Action]>,
    /// With the stance that nothing need change.
    pub accepts: Cow<'static, [Action]>,
}

impl Legal {
    pub(super) fn of(thread: &Thread, round_kind: RoundKind) -> Self {
        Self {
            seeks_change: thread.legal_actions(Stance::SeeksChange, round_kind).into(),
            accepts: thread.legal_actions(Stance::Accepts, round_kind).into(),
        }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Assignment<'a> {
    pub(super) review: &'a Review,
    pub(super) round_kind: RoundKind,
    /// True if some lgtm could pass the gate.
    pub(super) may_approve: bool,
    /// True if the quality gate only advises.
    pub(super) advised: bool,
}

/// Returns the resolved threads that a response can still reopen.
pub(super) fn reopenable(review: &Review) -> impl Iterator<Item = &FindingId> {
    resolved(review)
        .filter(|(_, thread)| !thread.is_settled_for_good())
        .map(|(id, _)| id)
}

/// Returns the resolved threads that a response can only escalate if their problem is back.
pub(super) fn only_escalatable(review: &Review) -> impl Iterator<Item = &FindingId> {
    resolved(review)
        .filter(|(_, thread)| thread.is_settled_for_good())
        .map(|(id, _)| id)
}

fn resolved(review: &Review) -> impl Iterator<Item = (&FindingId, &Thread)> {
    let threads = review.threads.iter();
    threads.filter(|(_, thread)| thread.state == ThreadState::Resolved)
}
