//! The input of the rules of a message type, and the ruling they return.

use chrono::{DateTime, Utc};
use message_schema::body::Telemetry;
use message_schema::envelope::Envelope;
use message_schema::id::{AgentName, CommitSha};
use policy::Policy;
use review_words::alert::Alert;
use review_words::key::ReviewKey;
use review_words::phase::Approval;
use review_words::record::{ContentDigest, ReviewStep};
use validate_message::Valid;

use crate::parts::evidence::Between;
use crate::parts::review::Review;
use crate::parts::state::State;

/// A checked message and its outbox.
#[derive(Clone, Copy, Debug)]
pub struct Posted<'a> {
    /// The owner of its outbox.
    pub outbox: &'a AgentName,
    /// The digest of its bytes.
    pub digest: ContentDigest,
    /// The message.
    pub valid: &'a Valid,
}

/// The input of the rules of a message type.
pub(crate) struct MessageContext<'a> {
    pub(crate) state: &'a State,
    pub(crate) policy: &'a Policy,
    pub(crate) posted: Posted<'a>,
    pub(crate) now: DateTime<Utc>,
}

impl<'a> MessageContext<'a> {
    pub(crate) fn envelope(&self) -> &'a Envelope {
        self.posted.valid.envelope()
    }

    /// The turns that a response declares for the whole round, in its envelope or its telemetry: the larger number counts.
    pub(crate) fn declared_turns(&self, telemetry: Option<&Telemetry>) -> Option<u64> {
        let in_body = telemetry.and_then(|telemetry| telemetry.turns);
        self.envelope().turns.max(in_body)
    }

    /// The one recipient of a review message.
    pub(crate) fn recipient(&self) -> &'a AgentName {
        self.envelope()
            .to
            .names()
            .first()
            .expect("a checked message has a recipient")
    }

    pub(crate) fn is_advised(&self, key: &ReviewKey, review: &Review) -> bool {
        self.state.is_advised(self.policy, key, review)
    }

    /// Makes an approval given now; it is stale from the start if the head of the pull request is another commit.
    pub(crate) fn approval(&self, key: &ReviewKey, commit: Option<CommitSha>) -> Approval {
        let approval = Approval::of(commit, self.now);
        Approval {
            stale: self
                .known_head(key)
                .is_some_and(|head| approval.is_outlived_by(&head)),
            ..approval
        }
    }

    /// Returns the alert to both sides about a new approval that has no commit, or is stale.
    pub(crate) fn approval_alert(&self, key: &ReviewKey, approval: &Approval) -> Option<Alert> {
        let Some(commit) = &approval.commit else {
            return Some(Alert::ApprovalUnbound);
        };
        let head = self.known_head(key).filter(|_| approval.stale)?;
        Some(Alert::ApprovalStale {
            commit: commit.clone(),
            head,
        })
    }

    /// Returns the author and the reviewer of a response: `lookup` has checked that its sender is the current reviewer.
    pub(crate) fn between(&self) -> Between<'_> {
        Between {
            author: self.recipient(),
            reviewer: &self.envelope().from,
        }
    }

    fn known_head(&self, key: &ReviewKey) -> Option<CommitSha> {
        self.state.pull(key.repo.as_ref(), &key.pr)?.head
    }
}

/// The result of the rules of a type: the step, and its alerts.
pub(crate) struct Ruling {
    pub(crate) step: ReviewStep,
    pub(crate) alerts: Vec<Alert>,
}
