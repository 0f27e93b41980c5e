//! What decides whether a message is admitted before any rule of reviews is asked: which ids are
//! taken, how often two agents write to each other, and how many notices of refusals an agent was
//! sent. It knows nothing of reviews beyond their keys.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use message_schema::Code;
use message_schema::id::{AgentName, MessageId};
use serde::{Deserialize, Serialize};

use crate::parts::rate::FileRate;
use crate::words::key::ReviewKey;
use crate::words::record::{ContentDigest, Duplicate, Notice};
use crate::words::refusal::{Fault, Refusal};

/// Notices of refusals one agent gets within a minute; further ones are summed up in the next.
pub(crate) const NOTICES_PER_MINUTE: usize = 30;

/// What has passed through the mailroom.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Admission {
    pub(crate) known: BTreeMap<AgentName, BTreeMap<MessageId, AcceptedMessage>>,
    pub(crate) accepted: u64,
    pub(crate) pairs: BTreeMap<(AgentName, AgentName), VecDeque<DateTime<Utc>>>,
    pub(crate) notices: BTreeMap<AgentName, Notices>,
    /// What came out of every outbox, refused or not.
    pub(crate) rate: FileRate,
    pub(crate) daemon_ids: BTreeSet<MessageId>,
}

/// An accepted message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AcceptedMessage {
    pub(crate) digest: ContentDigest,
    pub(crate) review: Option<Arc<ReviewKey>>,
}

/// When an agent was last told of refusals, and how many were withheld since.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Notices {
    sent: VecDeque<DateTime<Utc>>,
    withheld: u32,
}

/// What the ledger knows of an id.
pub(crate) enum IdStatus {
    /// Nothing.
    New,
    /// The same bytes were accepted.
    Same,
    /// Other bytes were accepted.
    Other,
}

impl Admission {
    pub(crate) fn accepted(&self) -> u64 {
        self.accepted
    }

    pub(crate) fn status_of(
        &self,
        sender: &AgentName,
        id: &MessageId,
        digest: ContentDigest,
    ) -> IdStatus {
        match self.known.get(sender).and_then(|ids| ids.get(id)) {
            None => IdStatus::New,
            Some(known) if known.digest == digest => IdStatus::Same,
            Some(_) => IdStatus::Other,
        }
    }

    /// The id rules: `None` for a new message, the duplicate for a known one.
    pub(crate) fn check_id(
        &self,
        from: &AgentName,
        id: &MessageId,
        digest: ContentDigest,
    ) -> Result<Option<Duplicate>, Refusal> {
        match self.status_of(from, id, digest) {
            IdStatus::New => Ok(None),
            IdStatus::Same => Ok(Some(Duplicate {
                from: from.clone(),
                id: id.clone(),
            })),
            IdStatus::Other => Err(Fault::new(
                Code::IdCollision,
                format!(
                    "`{id}` was accepted before with other bytes; an accepted message cannot be changed"
                ),
            )
            .field("id")
            .found(id)
            .expected("an id you have not used")
            .fix("send the message again under a new id")
            .refuses()),
        }
    }

    pub(crate) fn review_of(&self, sender: &AgentName, id: &MessageId) -> Option<&ReviewKey> {
        self.known.get(sender)?.get(id)?.review.as_deref()
    }

    /// Whether the daemon itself wrote the message with this id.
    pub(crate) fn is_daemons(&self, id: &str) -> bool {
        MessageId::new(id).is_ok_and(|id| self.daemon_ids.contains(&id))
    }

    /// How many messages of the limited kinds the pair exchanged in the hour before `now`.
    pub(crate) fn in_the_last_hour(
        &self,
        from: &AgentName,
        to: &AgentName,
        now: DateTime<Utc>,
    ) -> usize {
        let since = now - TimeDelta::hours(1);
        self.pairs
            .get(&(from.clone(), to.clone()))
            .map_or(0, |times| times.iter().filter(|at| **at > since).count())
    }

    pub(crate) fn accept(
        &mut self,
        from: &AgentName,
        id: &MessageId,
        digest: ContentDigest,
        review: Option<Arc<ReviewKey>>,
    ) {
        self.accepted += 1;
        let known = AcceptedMessage { digest, review };
        if let Some(ids) = self.known.get_mut(from) {
            ids.insert(id.clone(), known);
        } else {
            self.known
                .entry(from.clone())
                .or_default()
                .insert(id.clone(), known);
        }
    }

    /// Counts a message of the limited kinds; what lies an hour back is forgotten.
    pub(crate) fn count(&mut self, from: &AgentName, to: &AgentName, at: DateTime<Utc>) {
        let times = self.pairs.entry((from.clone(), to.clone())).or_default();
        times.push_back(at);
        forget_before(times, at - TimeDelta::hours(1));
    }

    pub(crate) fn record_notice(&mut self, agent: &AgentName, notice: &Notice, at: DateTime<Utc>) {
        let notices = self.notices.entry(agent.clone()).or_default();
        match notice {
            Notice::Sent { id, .. } => {
                notices.sent.push_back(at);
                notices.withheld = 0;
                self.daemon_ids.insert(id.clone());
            }
            Notice::Withheld => notices.withheld = notices.withheld.saturating_add(1),
            Notice::Never => {}
        }
        forget_before(&mut notices.sent, at - TimeDelta::minutes(1));
    }

    /// Remembers an id of the daemon's own, so that an answer to it gets no notice.
    pub(crate) fn add_daemon_id(&mut self, id: &MessageId) {
        self.daemon_ids.insert(id.clone());
    }

    pub(crate) fn may_notify(&self, agent: &AgentName, now: DateTime<Utc>) -> bool {
        let since = now - TimeDelta::minutes(1);
        self.notices.get(agent).is_none_or(|told| {
            told.sent.iter().filter(|at| **at > since).count() < NOTICES_PER_MINUTE
        })
    }

    pub(crate) fn withheld(&self, agent: &AgentName) -> u32 {
        self.notices
            .get(agent)
            .map_or(0, |notices| notices.withheld)
    }
}

fn forget_before(times: &mut VecDeque<DateTime<Utc>>, since: DateTime<Utc>) {
    while times.front().is_some_and(|at| *at <= since) {
        times.pop_front();
    }
}
