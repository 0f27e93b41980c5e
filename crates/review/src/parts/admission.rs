//! The rules that admit a message before any rule of reviews: which ids are taken, how many messages two agents
//! exchange, and how many notices of refusals an agent got. It knows only the keys of reviews.

use std::collections::{BTreeMap, VecDeque};

use chrono::{DateTime, TimeDelta, Utc};
use message_schema::Code;
use message_schema::id::{AgentName, MessageId};
use serde::{Deserialize, Serialize};

use review_words::key::ReviewKey;
use review_words::rate::FileRate;
use review_words::record::{ContentDigest, Duplicate, Notice};
use review_words::refusal::{Fault, Refusal};
use review_words::table::{RowKey, Table};

/// The most notices of refusals that one agent gets within a minute; the next minute's notice sums up the rest.
pub(crate) const NOTICES_PER_MINUTE: usize = 30;

/// The time for which a message counts.
const HOUR: TimeDelta = TimeDelta::hours(1);

/// The counts and ids of everything that the daemon has received and sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Admission {
    /// Every accepted message.
    pub(crate) known: Table<b'm'>,
    pub(crate) accepted: u64,
    pub(crate) pairs: BTreeMap<(AgentName, AgentName), VecDeque<DateTime<Utc>>>,
    pub(crate) notices: BTreeMap<AgentName, Notices>,
    /// The files that came out of every outbox, accepted or refused.
    pub(crate) rate: FileRate,
    /// The ids of the daemon's own messages.
    pub(crate) daemon_ids: Table<b'd'>,
}

/// An accepted message.
#[derive(Clone, Debug, PartialEq)]
struct AcceptedMessage {
    digest: ContentDigest,
    review: Option<ReviewKey>,
}

impl AcceptedMessage {
    /// Returns the row: the digest, followed by the key as JSON.
    fn row(&self) -> Vec<u8> {
        let mut row = self.digest.0.to_vec();
        if let Some(key) = &self.review {
            serde_json::to_writer(&mut row, key).expect("a key as JSON");
        }
        row
    }

    fn of_row(row: &[u8]) -> Self {
        let (digest, key) = row.split_first_chunk().expect("a digest has 32 bytes");
        let read = |key| serde_json::from_slice(key).expect("a key as JSON");
        Self {
            digest: ContentDigest(*digest),
            review: (!key.is_empty()).then(|| read(key)),
        }
    }
}

/// Returns the row of an accepted message.
pub(crate) fn row_of_message(sender: &AgentName, id: &MessageId) -> RowKey {
    Table::<b'm'>::key(&[sender.as_str().as_bytes(), id.as_str().as_bytes()])
}

/// Returns the row of a daemon's message id.
pub(crate) fn row_of_daemon_id(id: &MessageId) -> RowKey {
    Table::<b'd'>::key(&[id.as_str().as_bytes()])
}

/// The times of an agent's recent notices about refusals, and the number withheld since.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Notices {
    sent: VecDeque<DateTime<Utc>>,
    withheld: u32,
}

/// A pair's count before one more message; `None` if that is the first.
pub(crate) type Counted = Option<(usize, Vec<DateTime<Utc>>)>;

/// The ledger's answer about an id.
pub(crate) enum IdStatus {
    /// The id is new.
    New,
    /// The same bytes were accepted under it.
    Same,
    /// Other bytes were accepted under it.
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
        match self.message(sender, id) {
            None => IdStatus::New,
            Some(known) if known.digest == digest => IdStatus::Same,
            Some(_) => IdStatus::Other,
        }
    }

    /// Applies the id rules: `None` for a new message, the duplicate for a known one.
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

    pub(crate) fn review_of(&self, sender: &AgentName, id: &MessageId) -> Option<ReviewKey> {
        self.message(sender, id)?.review
    }

    fn message(&self, sender: &AgentName, id: &MessageId) -> Option<AcceptedMessage> {
        let row = self.known.get(&row_of_message(sender, id))?;
        Some(AcceptedMessage::of_row(&row))
    }

    /// True if the daemon itself wrote the message with this id.
    pub(crate) fn is_daemons(&self, id: &str) -> bool {
        MessageId::new(id).is_ok_and(|id| self.daemon_ids.has(&row_of_daemon_id(&id)))
    }

    /// True if the pair exchanged at least `limit` messages of the limited kinds in the hour before `now`.
    pub(crate) fn is_full(
        &self,
        from: &AgentName,
        to: &AgentName,
        limit: usize,
        now: DateTime<Utc>,
    ) -> bool {
        let times = self.pairs.get(&(from.clone(), to.clone()));
        // Only a long enough list is worth filtering for older entries.
        let many = times.filter(|times| times.len() >= limit);
        many.is_some_and(|times| times.iter().filter(|at| **at > now - HOUR).count() >= limit)
    }

    pub(crate) fn accept(
        &mut self,
        from: &AgentName,
        id: &MessageId,
        digest: ContentDigest,
        review: Option<ReviewKey>,
    ) {
        self.accepted += 1;
        let known = AcceptedMessage { digest, review };
        self.known.put(row_of_message(from, id), known.row());
    }

    /// Counts a message of the limited kinds; forgets those older than an hour.
    pub(crate) fn count(&mut self, from: &AgentName, to: &AgentName, at: DateTime<Utc>) {
        let times = self.pairs.entry((from.clone(), to.clone())).or_default();
        times.push_back(at);
        forget_before(times, at - HOUR);
    }

    /// Returns how many messages of a pair are counted, and the times that one more makes it forget, oldest first.
    pub(crate) fn counted(&self, pair: &(AgentName, AgentName), at: DateTime<Utc>) -> Counted {
        let times = self.pairs.get(pair)?;
        let forgotten = times.iter().take_while(|time| **time <= at - HOUR);
        Some((times.len(), forgotten.copied().collect()))
    }

    /// Restores a pair's earlier count.
    pub(crate) fn uncount(&mut self, pair: (AgentName, AgentName), counted: Counted) {
        let Some((count, forgotten)) = counted else {
            self.pairs.remove(&pair);
            return;
        };
        let times = self.pairs.entry(pair).or_default();
        times.truncate(count - forgotten.len());
        let oldest_last = forgotten.into_iter().rev();
        oldest_last.for_each(|at| times.push_front(at));
    }

    pub(crate) fn record_notice(&mut self, agent: &AgentName, notice: &Notice, at: DateTime<Utc>) {
        let notices = self.notices.entry(agent.clone()).or_default();
        match notice {
            Notice::Sent { id, .. } => {
                notices.sent.push_back(at);
                notices.withheld = 0;
                self.daemon_ids.put(row_of_daemon_id(id), []);
            }
            Notice::Withheld => notices.withheld = notices.withheld.saturating_add(1),
            Notice::Never => {}
        }
        forget_before(&mut notices.sent, at - TimeDelta::minutes(1));
    }

    /// Remembers an id of a daemon's message, so that an answer to it gets no notice.
    pub(crate) fn add_daemon_id(&mut self, id: &MessageId) {
        self.daemon_ids.put(row_of_daemon_id(id), []);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_messages_of_an_hour_and_the_notices_of_a_minute_are_kept_and_no_older_ones() {
        let agent = |name: &str| AgentName::new(name).expect("a name");
        let (from, to) = (agent("claude"), agent("codex"));
        let at = |seconds: i64| DateTime::from_timestamp(seconds, 0).expect("an instant");
        let mut admission = Admission::default();
        // A message an hour old is forgotten with the next one, and until then it does not count.
        for (now, count, is_full_of_two) in [
            (0, 1, false),
            (1_800, 2, true),
            (3_599, 3, true),
            (3_600, 3, true),
            (7_199, 2, true),
            (12_000, 1, false),
        ] {
            let pair = (from.clone(), to.clone());
            let (before, counted) = (admission.clone(), admission.counted(&pair, at(now)));
            admission.count(&from, &to, at(now));
            let is_full = admission.is_full(&from, &to, 2, at(now));
            assert_eq!(
                (admission.pairs[&pair].len(), is_full),
                (count, is_full_of_two),
                "{now}"
            );
            let mut after = admission.clone();
            after.uncount(pair, counted);
            assert_eq!(after, before, "{now}");
        }
        assert!(admission.is_full(&from, &to, 1, at(15_599)));
        assert!(!admission.is_full(&from, &to, 1, at(15_600)));
        for (now, count) in [(0, 1), (59, 2), (60, 2), (200, 1)] {
            let id = MessageId::new(format!("notice-{now}")).expect("an id");
            admission.record_notice(&from, &Notice::Sent { id, summed_up: 0 }, at(now));
            assert_eq!(admission.notices[&from].sent.len(), count, "{now}");
        }
    }
}
