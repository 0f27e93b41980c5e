//! Follows the log: this host judges the other hosts' records again with the same code, and only then takes them over.
//!
//! Until this host knows whether the log has its batch, it judges nothing else and sends the same bytes again. A
//! record that does not follow freezes the workspace here: this host judges, takes over and delivers nothing until the log
//! changes.

use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;

use chrono::{DateTime, Utc};
use judgement::rejudge::{Differs, RecordedMessage};
use message_schema::id::AgentName;
use review::{Event, EventRecord, HostChange, RULES, Record, State};
use spool::log::{Appended, Head, Signed};
use spool::{Entry, HostName, SpoolError};
use workspace::clock::Moment;
use workspace::index;

use super::{Mailroom, Pass};
use crate::shared_ledger::{LastRecord, SharedLedger, Sharing, SharingState};

/// The pause, in milliseconds, between two looks at a log with a record that this host does not take over.
const REFUSED_MS: u64 = 5_000;

impl Mailroom {
    /// Finds out whether the log has a batch of unknown outcome, and takes over new records. Returns whether this host may
    /// judge now.
    pub(super) fn follow(&mut self, moment: Moment) -> Result<bool, SpoolError> {
        let may_judge = self.follow_log(moment);
        let ledger = self.spool.layout().ledger();
        if let Some(shared) = &mut self.shared {
            shared.exchange_heartbeats(&self.root, self.spool.head(), moment);
            shared.compare_clocks(&mut self.docket.alerts, ledger, moment);
        }
        self.alert_of_sharing_state();
        Ok(may_judge? && !self.is_frozen())
    }

    /// Takes over new records like [`Mailroom::follow`], without heartbeats and alerts.
    pub(super) fn follow_log(&mut self, moment: Moment) -> Result<bool, SpoolError> {
        let Some(shared) = &mut self.shared else {
            return Ok(true);
        };
        shared.stop_if_it_lacks();
        let goes_on = match shared.sharing_state {
            SharingState::Outdated { .. } => false,
            SharingState::Frozen { .. } => shared.thaws(self.spool.head(), moment),
            SharingState::InStep | SharingState::Waiting { .. } => true,
        };
        if !goes_on {
            return Ok(false);
        }
        let is_due =
            shared.has_changed.swap(false, Ordering::Acquire) || moment.mono >= shared.look_at;
        if !is_due {
            return Ok(shared.may_judge());
        }
        if let Some(signed) = shared.unknown.take() {
            // Once the log answers, committed or moved, `follow` below returns the next batches. Without an answer this host
            // keeps the batch and appends it again at the next look.
            let is_known = match shared.sharing.log.append(&signed) {
                Ok(Appended::Committed | Appended::Moved(_)) => true,
                Ok(Appended::Unknown(why)) => {
                    shared.wait(&why, moment);
                    false
                }
                Err(error) => {
                    shared.failed(&error, moment);
                    false
                }
            };
            if !is_known {
                shared.unknown = Some(signed);
                return Ok(false);
            }
        }
        let batches = match shared.sharing.log.follow(self.spool.head()) {
            Ok(batches) => batches,
            Err(error) => {
                shared.failed(&error, moment);
                return Ok(false);
            }
        };
        let look = LogLook {
            latest: shared.latest_record(moment.utc),
            since: shared.waits_since().unwrap_or(moment.utc),
        };
        shared.goes_on();
        let poll = shared.sharing.log.poll_ms();
        shared.look_at = moment
            .mono
            .saturating_add(if batches.is_empty() { poll } else { 0 });
        if !batches.is_empty() {
            // A host that catches up gets many batches at once, and one sync is enough for their signatures: each is durable
            // before its batch. If the code below refuses a batch, or a kill loses it, its signature stays and fits no other.
            self.spool.note_signatures(&batches)?;
        }
        let followed = reading_ahead(&batches, |signed, read| {
            let before = self.shared.as_ref().map(|shared| shared.last.at);
            let followed = self.take_over(signed, read, look)?;
            if let (true, Some(shared), Some(before)) = (followed, &mut self.shared, before) {
                shared.note_time(&signed.host, before, moment.utc);
            }
            Ok(followed)
        })?;
        let may_judge = self.shared.as_mut().is_some_and(|shared| {
            shared.stop_without_its_key();
            shared.hold_back(look.since, moment);
            shared.may_judge()
        });
        Ok(followed && may_judge)
    }

    /// Judges a batch again and takes it over; false if it does not follow, or cannot be judged here.
    fn take_over(
        &mut self,
        signed: &Signed,
        read: ReadBatch,
        look: LogLook,
    ) -> Result<bool, SpoolError> {
        let shared = self
            .shared
            .as_mut()
            .expect("only a shared ledger has batches of others");
        if shared.has_other_policy() {
            // The batch before this one changed the policy, and its host judged this one by the new policy.
            return Ok(false);
        }
        let head = self.spool.head().seq;
        let entries = signed.batch.entries().iter().zip(read);
        let new = entries.filter(|(entry, _)| entry.seq > head);
        let mut records = Vec::new();
        let mut last = shared.last;
        for (entry, read) in new {
            let checked = read.and_then(|(record, at, message)| {
                // A batch has one signature, over all of its bytes.
                if records.is_empty() {
                    check_signature(shared, signed, &record)?;
                }
                check_origin(shared, signed, entry, (&record, at), last)?;
                // A record with the same time as the one before it moves no clock.
                if at > last.at && at > look.latest {
                    return Err(Untrusted::Early(at));
                }
                check_deadline(shared, self.docket.tentative.state(), signed, &record, at)?;
                let tentative = &mut self.docket.tentative;
                if entry.host.is_none() {
                    // A single host judged the record before others joined, for agents and by a policy that no record names.
                    tentative.add_recorded(entry, &record, at);
                } else {
                    let followed = tentative.add_again(entry, &record, message, at);
                    followed.map_err(|differs| Untrusted::Frozen(why(&differs)))?;
                }
                Ok((record, at))
            });
            match checked {
                Ok((record, at)) => {
                    records.push(record);
                    let names_host = entry.host.is_some();
                    last = LastRecord { at, names_host };
                }
                Err(refused) => {
                    let seq = entry.seq;
                    let host = &signed.host;
                    shared.sharing_state = match refused {
                        Untrusted::Frozen(why) => {
                            let why = format!("host {host}: {why}");
                            shared.refused = Some(signed.batch.head());
                            SharingState::Frozen { seq, why }
                        }
                        Untrusted::Outdated(why) => SharingState::Outdated { why },
                        Untrusted::Early(at) => SharingState::Waiting {
                            since: look.since,
                            why: early(seq, host, at),
                        },
                    };
                    self.roll_back();
                    return Ok(false);
                }
            }
        }
        if records.is_empty() {
            return Ok(true);
        }
        let committed = self.spool.mirror(signed).inspect_err(|_| {
            self.docket.tentative.roll_back();
        })?;
        shared.last = last;
        shared.past.note_batch(&signed.batch);
        self.committed(&committed, &records, &mut Pass::default());
        let told: Vec<_> = committed.into_iter().zip(records).collect();
        self.log_committed(&told);
        Ok(true)
    }
}

impl SharedLedger {
    /// Makes a host wait that followed the log, but whose clock is too far ahead to record anything.
    fn hold_back(&mut self, since: DateTime<Utc>, moment: Moment) {
        match &self.sharing_state {
            SharingState::InStep => {
                if let Some(why) = self.clock_too_far_ahead(moment.utc) {
                    self.sharing_state = SharingState::Waiting { since, why };
                    self.pause(moment);
                }
            }
            SharingState::Waiting { .. } => {
                self.look_at = moment.mono.saturating_add(REFUSED_MS);
            }
            SharingState::Frozen { .. } | SharingState::Outdated { .. } => {}
        }
    }

    /// True if the log that froze this host continues its ledger now, which ends with `ours`. A batch that broke a rule
    /// still breaks it: only another batch in its place, or none, ends the freeze.
    fn thaws(&mut self, ours: Head, moment: Moment) -> bool {
        if moment.mono < self.look_at {
            return false;
        }
        self.look_at = moment.mono.saturating_add(REFUSED_MS);
        if self.other_history(moment.utc).is_some() {
            return false;
        }
        let log = &mut self.sharing.log;
        let (Ok(end), Ok(batches)) = (log.head(), log.follow(ours)) else {
            return false;
        };
        // The absence of a batch proves nothing: the next one may still be on its way.
        let next = batches.first().map(|signed| signed.batch.head());
        let thaws = next.map_or(end == ours, |next| Some(next) != self.refused);
        if thaws {
            tracing::info!("the log continues this host's ledger again; following it");
            (self.sharing_state, self.refused) = (SharingState::InStep, None);
            self.look_at = moment.mono;
        }
        thaws
    }
}

/// A look at the log.
#[derive(Clone, Copy)]
struct LogLook {
    /// The latest time of a record to take over.
    latest: DateTime<Utc>,
    /// The time since which this host waits, if it cannot go on.
    since: DateTime<Utc>,
}

/// The reason a record of another host is not taken over.
enum Untrusted {
    Frozen(String),
    Outdated(String),
    /// The record's time is in the future. This host takes the record over once that time comes: its own clock may be the
    /// wrong one.
    Early(DateTime<Utc>),
}

impl From<&str> for Untrusted {
    fn from(why: &str) -> Self {
        Self::Frozen(why.to_owned())
    }
}

/// The records of a batch, read without the state before them: each with its time and its message.
type ReadBatch = Vec<Result<(Record, DateTime<Utc>, Option<RecordedMessage>), Untrusted>>;

fn read(signed: &Signed) -> ReadBatch {
    let entries = signed.batch.entries().iter();
    let read = entries.map(|entry| {
        let (record, at) = decision(entry)?;
        Ok((record, at, RecordedMessage::of(entry)))
    });
    read.collect()
}

/// Calls `take_over` with each batch and its records until it returns false. Another thread reads the next batch meanwhile: a
/// host that has much to take over has more than one core.
fn reading_ahead(
    batches: &[Signed],
    mut take_over: impl FnMut(&Signed, ReadBatch) -> Result<bool, SpoolError>,
) -> Result<bool, SpoolError> {
    std::thread::scope(|scope| {
        let (give, taken) = sync_channel(1);
        let reading = (batches.len() > 1).then(|| {
            std::thread::Builder::new().spawn_scoped(scope, move || {
                // The receiver ends with the first batch that `take_over` rejects.
                let _ = batches
                    .iter()
                    .try_for_each(|signed| give.send(read(signed)));
            })
        });
        let is_reading = matches!(reading, Some(Ok(_)));
        for signed in batches {
            let ahead = is_reading.then(|| taken.recv().ok()).flatten();
            if !take_over(signed, ahead.unwrap_or_else(|| read(signed)))? {
                return Ok(false);
            }
        }
        Ok(true)
    })
}

/// Reads a record if this version can judge it.
fn decision(entry: &Entry) -> Result<(Record, DateTime<Utc>), Untrusted> {
    if let Some(rules) = entry.rules.filter(|rules| *rules > RULES) {
        let why = format!(
            "record {} was judged by rules {rules}, this version has {RULES}; upgrade settled on this host",
            entry.seq
        );
        return Err(Untrusted::Outdated(why));
    }
    index::decision(entry).map_err(|error| Untrusted::Frozen(error.to_string()))
}

/// Checks that a batch is signed by its host. A host that joins brings its key, in a batch of one record.
fn check_signature(
    shared: &SharedLedger,
    signed: &Signed,
    first: &Record,
) -> Result<(), Untrusted> {
    let Sharing {
        workspace,
        fleet,
        keys,
        ..
    } = &shared.sharing;
    let key = match index::host_change(first) {
        Some(HostChange::Joined(joined)) => Some(joined.key.as_str()),
        Some(_) | None => fleet.key(&signed.host),
    };
    let key = key.ok_or("its key is not known, or retired")?;
    if !signed.is_by(key, workspace, &**keys) {
        return Err("the signature is not its own".into());
    }
    Ok(())
}

/// Checks that the host that signed a batch may record this record, and that the record's time does not go back.
fn check_origin(
    shared: &SharedLedger,
    signed: &Signed,
    entry: &Entry,
    (record, at): (&Record, DateTime<Utc>),
    last: LastRecord,
) -> Result<(), Untrusted> {
    let (fleet, host) = (&shared.sharing.fleet, &signed.host);
    let change = index::host_change(record);
    if let Some(change) = change {
        if signed.batch.entries().len() > 1 {
            return Err("it changes hosts and more in one batch".into());
        }
        let folded = fleet.clone().change(change, host);
        folded.map_err(|refusal| Untrusted::Frozen(refusal.to_string()))?;
    }
    // A record names no host if it was made before other hosts joined.
    let may_name_none = !last.names_host;
    match &entry.host {
        Some(named) if named == host => {}
        None if may_name_none => {}
        Some(_) | None => return Err("the record names another host than signed it".into()),
    }
    if at < last.at {
        return Err("the record is older than the one before it".into());
    }
    if let (Some(original), Some(_)) = (&entry.original, &entry.host) {
        let outbox = AgentName::new(original.outbox.as_str()).ok();
        let home = outbox.as_ref().and_then(|agent| fleet.home(agent));
        if home != Some(host) {
            return Err("it judged an outbox that is at home elsewhere".into());
        }
    }
    Ok(())
}

/// Checks that no host fired a deadline early, or while it had to wait for another host.
fn check_deadline(
    shared: &SharedLedger,
    state: &State,
    signed: &Signed,
    record: &Record,
    at: DateTime<Utc>,
) -> Result<(), Untrusted> {
    let Record::Event(EventRecord::Happened(happened)) = record else {
        return Ok(());
    };
    let is_away = if let Event::Deadline { review, .. } = &happened.event {
        if !shared.may_fire(state, review, &signed.host, at) {
            return Err("it fired a deadline too early".into());
        }
        shared.is_away(state, review, &signed.host)
    } else {
        false
    };
    if happened.home_away == is_away {
        Ok(())
    } else {
        Err("it does not say on which host its deadline was awaited".into())
    }
}

fn early(seq: u64, host: &HostName, at: DateTime<Utc>) -> String {
    let at = at.format("%Y-%m-%dT%H:%M:%SZ");
    format!(
        "record {seq}, of host {host}, is of {at}, which has not come by any clock this host knows: set the clock that is wrong"
    )
}

fn why(differs: &Differs) -> String {
    match differs {
        Differs::NoText => "an accepted message without its text".to_owned(),
        Differs::Decides(now) => format!("the rules decide `{}` instead", now.word()),
        Differs::OtherSender => "it is not the message of the outbox's owner".to_owned(),
        Differs::NotRepeated => "no such message was accepted before".to_owned(),
        Differs::Free(code) => format!("a refusal with `{code}` costs the reviewer something"),
        Differs::Files(what) => format!("by the rules {what}"),
    }
}
