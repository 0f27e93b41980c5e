//! Replays a ledger under another policy: judges every recorded message and event again, in order and at its time, and
//! lists the decisions that would differ.
//!
//! Folds two states side by side, the recorded one and the other policy's. A daemon acts on a deadline when it next
//! checks; for a review whose two states differ, the replay acts at the deadline's exact instant.
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use chrono::{DateTime, SecondsFormat, Utc};
use judgement::Judge;
use message_schema::id::{AgentName, MessageId, PacketPath};
use review::{
    Accepted, Duplicate, Event, EventRecord, Judgement, Policy, RULES, Record, RefusedMessage,
    ReportedEvent, ReviewKey, State,
};
use serde::Serialize;
use spool::{Away, Digest, Entry, Layout, Mailbox, Original, PacketRead, SpoolError};
use workspace::index::{self, Unreadable};

use super::session::SequentialIds;
use super::{facts, submit};

/// The differences between a ledger and its replay.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Replay {
    /// The number of records read.
    pub records: usize,
    /// The number of records that would be the same.
    pub same: usize,
    /// The decisions that would differ, in order.
    pub different: Vec<Difference>,
    /// The number of records judged by rules other than this program's.
    pub other_rules: usize,
    /// The numbers of records that cannot be judged again, because their refused message was removed.
    pub not_replayed: Vec<u64>,
    /// The reviews that would end in another state.
    pub reviews: Vec<ReviewDifference>,
}

/// A decision that would differ.
#[derive(Clone, Debug, Serialize)]
pub struct Difference {
    /// The record; `None` for a deadline that only the other policy has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The version of the rules that judged it, if it is not this program's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules: Option<u32>,
    /// Its time, RFC 3339.
    pub at: String,
    /// The message's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The recorded decision, one fact a line.
    pub then: Vec<String>,
    /// The decision under the other policy.
    pub now: Vec<String>,
}

/// A review that would end in another state.
#[derive(Clone, Debug, Serialize)]
pub struct ReviewDifference {
    /// The review's key.
    pub review: String,
    /// Its recorded state, if it was opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub then: Option<String>,
    /// Its state under the other policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
}

/// Judges the ledger of a workspace again under a policy; calls `done` with the number of each judged record.
pub fn replay(
    root: &Path,
    policy: Policy,
    done: &mut dyn FnMut(u64),
) -> Result<Replay, SpoolError> {
    let mut states = SideBySide::new(root, policy);
    spool::read_ledger(root, &mut |entry| {
        states.entry(entry)?;
        done(entry.seq);
        Ok(())
    })?;
    Ok(states.end())
}

/// The recorded state and the replayed one, side by side.
struct SideBySide {
    root: PathBuf,
    policy: Policy,
    then: State,
    now: State,
    /// Reviews whose two states differ.
    apart: BTreeSet<ReviewKey>,
    /// The texts of accepted messages with their packets; a duplicate's record does not repeat them.
    accepted: BTreeMap<(AgentName, MessageId), (String, Option<String>)>,
    written: SequentialIds,
    replay: Replay,
}

impl SideBySide {
    fn new(root: &Path, policy: Policy) -> Self {
        Self {
            root: root.to_owned(),
            policy,
            then: State::default(),
            now: State::default(),
            apart: BTreeSet::new(),
            accepted: BTreeMap::new(),
            written: SequentialIds::default(),
            replay: Replay::default(),
        }
    }

    fn entry(&mut self, entry: &Entry) -> Result<(), Unreadable> {
        let (then, at) = index::decision(entry)?;
        self.keep_own_deadlines(at);
        self.replay.records += 1;
        let rules = Some(super::rules(entry)).filter(|rules| *rules != RULES);
        self.replay.other_rules += usize::from(rules.is_some());
        let now = self.again(entry, &then, at);
        review::apply(&mut self.then, &then, at);
        if let Some(now) = &now {
            review::apply(&mut self.now, now, at);
        }
        let [was, is] =
            [Some(&then), now.as_ref()].map(|record| record.map_or_else(Vec::new, lines));
        if self.replay.not_replayed.last() == Some(&entry.seq) {
            // The message was removed, so there is nothing to compare.
        } else if was == is {
            self.replay.same += 1;
        } else {
            self.replay.different.push(Difference {
                seq: Some(entry.seq),
                rules,
                at: entry.at.clone(),
                id: entry.id.clone(),
                then: was,
                now: is,
            });
        }
        for key in touched(&then).chain(now.iter().flat_map(touched)) {
            self.compare(key);
        }
        Ok(())
    }

    fn compare(&mut self, key: &ReviewKey) {
        if self.then.review(key) == self.now.review(key) {
            self.apart.remove(key);
        } else {
            self.apart.insert(key.clone());
        }
    }

    /// Decides what a record reports under the other policy; `None` if nothing would happen or the message is gone.
    fn again(&mut self, entry: &Entry, then: &Record, at: DateTime<Utc>) -> Option<Record> {
        match then {
            Record::Judged(judgement) => self.judged_again(entry, judgement, at).map(Record::from),
            // A recorded deadline is not an input for a review whose states differ: it has a deadline of its own.
            Record::Event(record) => {
                let passed = record.event().deadline();
                let is_own = passed.is_some_and(|(review, _)| self.apart.contains(review));
                (!is_own).then(|| self.event(record.event(), record.order(), at).into())
            }
        }
    }

    fn judged_again(
        &mut self,
        entry: &Entry,
        then: &Judgement,
        at: DateTime<Utc>,
    ) -> Option<Judgement> {
        match then {
            Judgement::Accepted(accepted) => {
                let text = entry
                    .original
                    .as_ref()
                    .and_then(|original| original.text.clone())?;
                let Accepted {
                    from, id, packet, ..
                } = &**accepted;
                self.accepted
                    .insert((from.clone(), id.clone()), (text.clone(), packet.clone()));
                Some(self.judge(from, text.as_bytes(), packet.as_deref(), at))
            }
            Judgement::Duplicate(Duplicate { from, id }) => {
                let (text, packet) = self.accepted.get(&(from.clone(), id.clone())).cloned()?;
                Some(self.judge(from, text.as_bytes(), packet.as_deref(), at))
            }
            Judgement::Refused(refused) => self.refused_again(entry, refused, at),
        }
    }

    /// Judges a refused message from the dead letters. An entry that was never read is refused under any policy. If the
    /// file is gone, only its cost is known, and only for a review whose two states agree.
    fn refused_again(
        &mut self,
        entry: &Entry,
        then: &RefusedMessage,
        at: DateTime<Utc>,
    ) -> Option<Judgement> {
        let original = entry.original.as_ref()?;
        let again = || Judgement::Refused(then.clone());
        if original.digest.is_none() {
            return Some(again());
        }
        if let Some(bytes) = self.dead_letter(original) {
            return Some(self.judge(&then.from, &bytes, None, at));
        }
        self.replay.not_replayed.push(entry.seq);
        let is_apart = then
            .cost
            .as_ref()
            .is_some_and(|cost| self.apart.contains(&cost.step.review));
        (!is_apart).then(again)
    }

    fn dead_letter(&self, original: &Original) -> Option<Vec<u8>> {
        let Away::DeadLetter(file) = &original.away else {
            return None;
        };
        let mailbox =
            Layout::new(&self.root).mailbox(&Mailbox::DeadLetter(original.outbox.clone()));
        let bytes = std::fs::read(mailbox.join(file.to_string())).ok()?;
        (Some(Digest::of(&bytes)) == original.digest).then_some(bytes)
    }

    /// Judges a message. Reads its packet from the workspace if the ledger does not hold it.
    fn judge(
        &self,
        outbox: &AgentName,
        bytes: &[u8],
        packet: Option<&str>,
        at: DateTime<Utc>,
    ) -> Judgement {
        let root = &self.root;
        let packet = |path: &PacketPath| {
            let bytes = match packet {
                Some(text) => Some(text.as_bytes().to_vec()),
                None => std::fs::read(root.join(path.as_str())).ok(),
            };
            bytes.map_or(PacketRead::Missing, PacketRead::Bytes)
        };
        let ids = &mut || self.written.next();
        submit::text(self.judge_at(at), outbox, bytes, packet, ids)
    }

    fn event(&self, event: &Event, order: Option<&MessageId>, at: DateTime<Utc>) -> EventRecord {
        let reported = ReportedEvent { order, event };
        self.judge_at(at)
            .event(reported, &mut || self.written.next())
    }

    fn judge_at(&self, now: DateTime<Utc>) -> Judge<'_> {
        Judge {
            state: &self.now,
            policy: &self.policy,
            now,
        }
    }

    /// Keeps the deadlines of reviews whose states differ, up to but excluding an instant.
    fn keep_own_deadlines(&mut self, until: DateTime<Utc>) {
        loop {
            let own = self.apart.iter().filter_map(|key| {
                let (at, which) = self.now.review(key)?.deadline()?;
                (at < until).then(|| (at, key.clone(), which))
            });
            let Some((at, review, which)) = own.min_by_key(|(at, ..)| *at) else {
                return;
            };
            let event = Event::Deadline {
                review: review.clone(),
                which,
            };
            let record = Record::from(self.event(&event, None, at));
            review::apply(&mut self.now, &record, at);
            self.replay.different.push(Difference {
                seq: None,
                rules: None,
                at: at.to_rfc3339_opts(SecondsFormat::Millis, true),
                id: None,
                then: Vec::new(),
                now: lines(&record),
            });
            self.compare(&review);
        }
    }

    fn end(mut self) -> Replay {
        let stands = |state: &State, key: &ReviewKey| {
            state
                .review(key)
                .map(|review| facts::phase(&review.phase, review.round))
        };
        self.replay.reviews = self
            .apart
            .iter()
            .map(|key| ReviewDifference {
                review: key.to_string(),
                then: stands(&self.then, key),
                now: stands(&self.now, key),
            })
            .filter(|review| review.then != review.now)
            .collect();
        self.replay
    }
}

fn lines(record: &Record) -> Vec<String> {
    facts::record(record)
        .into_iter()
        .map(|outcome| outcome.line)
        .collect()
}

/// The reviews a record moves.
fn touched(record: &Record) -> impl Iterator<Item = &ReviewKey> {
    record.steps().iter().map(|step| &step.review)
}

/// Formats the replay for people.
pub fn replay_text(replay: &Replay) -> String {
    let mut out = String::new();
    let mut both = |head: String, then: &[String], now: &[String]| {
        out += &format!("{head}\n");
        for (word, lines) in [("then", then), ("now ", now)] {
            let nothing = ["nothing".to_owned()];
            for line in if lines.is_empty() {
                &nothing[..]
            } else {
                lines
            } {
                out += &format!("  {word}  {line}\n");
            }
        }
    };
    for Difference {
        seq,
        rules,
        at,
        id,
        then,
        now,
    } in &replay.different
    {
        let seq = seq.map_or_else(|| "-".to_owned(), |seq| seq.to_string());
        let id = id
            .as_deref()
            .map_or_else(String::new, |id| format!("  {id}"));
        let rules = rules.map_or_else(String::new, |rules| {
            format!("  judged by version {rules} of the rules, now by {RULES}")
        });
        both(format!("{seq}  {at}{id}{rules}"), then, now);
    }
    for ReviewDifference { review, then, now } in &replay.reviews {
        both(
            format!("at the end: {review}"),
            then.as_slice(),
            now.as_slice(),
        );
    }
    let Replay {
        records,
        same,
        different,
        other_rules,
        not_replayed,
        reviews,
    } = replay;
    let (different, gone, elsewhere) = (different.len(), not_replayed.len(), reviews.len());
    out += &format!(
        "{records} records, {same} the same, {different} different, {gone} that cannot be replayed; {elsewhere} reviews end differently\n"
    );
    if *other_rules > 0 {
        out += &format!(
            "{other_rules} records were judged by another version of the rules; this program has {RULES}\n"
        );
    }
    out
}

#[cfg(test)]
mod tests;
