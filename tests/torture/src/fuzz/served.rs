//! The daemon in this process, driven like the loop of `daemon::serve`, on a disk that kills it at a chosen change and
//! with a clock that the case moves.

use std::collections::{BTreeMap, VecDeque};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use daemon::mailroom::{Mailroom, MailroomError};
use serde_json::Value;
use spool::{DiskFault, FaultyDisk, SpoolError};
use workspace::clock::{self, Moment};

/// The daemon's own periods, in milliseconds: between two sweeps, of quiet before a checkpoint, and after a failed pass.
const SWEEP_MS: u64 = 2_000;
const IDLE_MS: u64 = 1_000;
const RETRY_MS: u64 = 1_000;

/// The most failed starts in a row, and the most turns before the daemon has to be idle.
const STARTS_MAX: u32 = 20;
const TURNS_MAX: u32 = 20_000;

/// The time of a case: elapsed time, which nothing can set, and the time of day, which can be set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Time {
    /// Milliseconds since the case began.
    pub(super) passed: u64,
    start: DateTime<Utc>,
    /// The total by which the time of day was set forward (positive) or back, in milliseconds.
    set_by: i64,
}

impl Time {
    /// Returns the time of day.
    pub(super) fn of_day(&self) -> DateTime<Utc> {
        let passed = TimeDelta::milliseconds(self.passed.cast_signed() + self.set_by);
        self.start + passed
    }
}

/// A record, and the time at which it first appeared in the ledger.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) at: u64,
    pub(super) record: Value,
}

/// The daemon, running or dead.
pub(super) struct Served {
    root: PathBuf,
    pub(super) time: Time,
    mailroom: Option<Mailroom>,
    disk: Arc<FaultyDisk>,
    hides_writers: bool,
    /// The faults of the next daemons, each during its recovery.
    faults: VecDeque<DiskFault>,
    /// The time at which this daemon started; its own clock counts from there.
    started: u64,
    sweep_at: u64,
    checkpoint_at: Option<u64>,
    checkpoint: Option<Begun>,
    /// No pass before this time, because the last one failed.
    rest_until: u64,
    pub(super) ledger: Ledger,
    pub(super) kills: u64,
    pub(super) in_recovery: u64,
    pub(super) failures: u64,
    pub(super) wrong: Vec<String>,
}

/// A checkpoint that has begun and not ended.
enum Begun {
    Unsynced(spool::Checkpoint),
    Synced(spool::SyncedCheckpoint),
}

impl Begun {
    fn synced(self) -> spool::SyncedCheckpoint {
        match self {
            Begun::Unsynced(begun) => begun.sync(),
            Begun::Synced(synced) => synced,
        }
    }
}

impl Served {
    pub(super) fn new(root: &Path, hides_writers: bool) -> Served {
        Served {
            root: root.to_owned(),
            time: Time {
                passed: 0,
                start: clock::now(),
                set_by: 0,
            },
            mailroom: None,
            disk: Arc::new(FaultyDisk::new("boot-1")),
            hides_writers,
            faults: VecDeque::new(),
            started: 0,
            sweep_at: 0,
            checkpoint_at: None,
            checkpoint: None,
            rest_until: 0,
            ledger: Ledger::default(),
            kills: 0,
            in_recovery: 0,
            failures: 0,
            wrong: Vec::new(),
        }
    }

    /// Passes on that a file of an outbox is finished, if a daemon is watching.
    pub(super) fn hint(&mut self, agent: &str, file: &str) {
        let name = spool::FileName::new(file).expect("a name");
        if let Some(mailroom) = &mut self.mailroom {
            mailroom.hint(agent, &name);
        }
    }

    /// Passes on that a packet is finished.
    pub(super) fn hint_packet(&mut self, file: &str) {
        let name = spool::FileName::new(file).expect("a name");
        if let Some(mailroom) = &self.mailroom {
            mailroom.hint_packet(&name);
        }
    }

    /// Makes the disk inject this fault into the running daemon.
    pub(super) fn strike(&mut self, fault: DiskFault) {
        self.disk.set(Some(fault));
    }

    /// Kills the daemon now, and its successors during their recovery with these faults.
    pub(super) fn kill(&mut self, faults: impl IntoIterator<Item = DiskFault>) {
        self.faults = faults.into_iter().collect();
        if self.mailroom.take().is_some() {
            self.kills += 1;
        }
        self.ledger
            .read_again(&self.root, self.time.passed, &mut self.wrong);
    }

    /// Ends the daemon as an operator does.
    pub(super) fn stop(&mut self) {
        if self.disk.stopped() {
            self.kill([]);
            return;
        }
        self.disk.set(None);
        let moment = self.moment();
        if let Some(mut mailroom) = self.mailroom.take() {
            // A checkpoint reports a failed sync only at its end, and the disk may have failed meanwhile.
            let may_have_failed = matches!(self.checkpoint, Some(Begun::Synced(_)));
            let mut end = || {
                mailroom.finish(moment)?;
                if let Some(begun) = self.checkpoint.take() {
                    match mailroom.end_checkpoint(begun.synced()) {
                        Err(error) if !error.is_retryable() => return Err(error),
                        _ => {}
                    }
                }
                mailroom.checkpoint()
            };
            let ended = end();
            mailroom.close();
            match ended {
                Err(error) if error.is_retryable() => {}
                Err(_) if may_have_failed => self.failures += 1,
                Err(error) => {
                    let what = workspace::error::chain(&error);
                    self.wrong.push(format!("it did not end well: {what}"));
                }
                Ok(()) => {}
            }
        }
        self.ledger.read(&self.root, self.time.passed);
    }

    /// Stops all faults from here on.
    pub(super) fn have_peace(&mut self) {
        self.disk.set(None);
        self.faults.clear();
    }

    /// Sets the clock of the machine.
    pub(super) fn set_clock(&mut self, by_ms: i64) {
        self.time.set_by += by_ms;
    }

    /// Lets time pass without the daemon: the machine sleeps or is busy.
    pub(super) fn sleep(&mut self, ms: u64) {
        self.time.passed += ms;
    }

    /// Lets the daemon work for this time.
    pub(super) fn work(&mut self, ms: u64) {
        let end = self.time.passed + ms;
        for turn in 0.. {
            self.turn();
            if self.time.passed >= end {
                return;
            }
            if turn > TURNS_MAX {
                self.wrong.push(format!(
                    "it took {turn} turns within {ms} ms and is not at rest"
                ));
                self.time.passed = end;
                return;
            }
            self.time.passed = self.next().clamp(self.time.passed + 1, end);
        }
    }

    fn moment(&self) -> Moment {
        Moment {
            mono: self.time.passed - self.started,
            utc: self.time.of_day(),
        }
    }

    /// The time at which the daemon would wake.
    fn next(&self) -> u64 {
        let Some(mailroom) = &self.mailroom else {
            return self.time.passed + 1;
        };
        let on_its_clock = mailroom.schedule(self.moment()).next();
        let on_its_clock = on_its_clock.map(|at| at + self.started);
        let wake = on_its_clock.map(|at| at.max(self.rest_until));
        let all = [wake, Some(self.sweep_at), self.checkpoint_at];
        all.into_iter().flatten().min().unwrap_or(self.sweep_at)
    }

    /// One turn of the daemon's loop. If the turn ends the daemon, the next turn starts it.
    fn turn(&mut self) {
        if self.mailroom.is_none() && !self.start() {
            return;
        }
        let done = self.duties();
        if self.disk.stopped() {
            // The disk has killed it, whatever the daemon concluded.
            let faults = std::mem::take(&mut self.faults);
            self.kill(faults);
            return;
        }
        match done {
            Ok(()) => {
                self.ledger.read(&self.root, self.time.passed);
                self.ledger.acknowledged = self.ledger.records.len();
            }
            Err(error) if error.is_retryable() => {
                self.failures += 1;
                self.rest_until = self.time.passed + RETRY_MS;
                self.sweep_at = self.rest_until;
                self.ledger.read(&self.root, self.time.passed);
            }
            // It stops by itself with a reason, and its supervisor starts it again.
            Err(_) => {
                self.failures += 1;
                self.mailroom = None;
                self.ledger
                    .read_again(&self.root, self.time.passed, &mut self.wrong);
            }
        }
    }

    fn duties(&mut self) -> Result<(), SpoolError> {
        let (now, moment) = (self.time.passed, self.moment());
        let mailroom = self.mailroom.as_mut().expect("it was started");
        if now >= self.sweep_at {
            mailroom.sweep()?;
            mailroom.look_for_unknown_senders(moment);
            mailroom.look_for_changed_originals(moment)?;
            self.sweep_at = now + SWEEP_MS;
        }
        if now >= self.rest_until {
            let mut pass = mailroom.pass(moment)?;
            pass.events += mailroom.keep_deadlines_in_turn(moment)?.events;
            if !pass.is_empty() && self.checkpoint.is_none() {
                self.checkpoint_at = Some(now + IDLE_MS);
            }
        }
        if self.checkpoint_at.is_some_and(|at| now >= at) {
            let done = match self.checkpoint.take() {
                Some(begun) => mailroom.end_checkpoint(begun.synced()),
                None => mailroom.begin_checkpoint(&Arc::default()).map(|begun| {
                    // Until it ends the daemon keeps delivering, after or before the sync.
                    let begun = begun.map(Begun::Unsynced);
                    self.checkpoint = match now % 2 {
                        0 => begun,
                        _ => begun.map(|begun| Begun::Synced(begun.synced())),
                    };
                }),
            };
            self.checkpoint_at = match done {
                Err(error) if error.is_retryable() => Some(now + RETRY_MS),
                result => result.map(|()| {
                    let is_begun = self.checkpoint.is_some();
                    (is_begun || mailroom.wants_checkpoint()).then_some(now + IDLE_MS)
                })?,
            };
        }
        Ok(())
    }

    /// Starts the daemon, after one killed start for each pending fault.
    fn start(&mut self) -> bool {
        for _ in 0..STARTS_MAX {
            self.disk = Arc::new(FaultyDisk::new("boot-1"));
            if self.hides_writers {
                self.disk.hide_writers();
            }
            let fault = self.faults.pop_front();
            self.disk.set(fault);
            match Mailroom::open_on(&self.root, Arc::clone(&self.disk) as _) {
                Ok((mailroom, _)) => {
                    self.mailroom = Some(mailroom);
                    self.started = self.time.passed;
                    self.sweep_at = self.time.passed;
                    self.rest_until = 0;
                    self.checkpoint_at = None;
                    self.checkpoint = None;
                    return true;
                }
                Err(error) if fault.is_none() => {
                    self.wrong
                        .push(format!("it does not start: {}", told(&error)));
                    return false;
                }
                Err(_) => {
                    self.kills += 1;
                    self.in_recovery += 1;
                    self.ledger
                        .read_again(&self.root, self.time.passed, &mut self.wrong);
                }
            }
        }
        false
    }
}

fn told(error: &MailroomError) -> String {
    workspace::error::chain(error)
}

/// The ledger, followed by a reader.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) records: Vec<Seen>,
    /// The kinds of each file's records, by outbox and name.
    pub(super) kinds: BTreeMap<(String, String), Vec<String>>,
    lines: Vec<Vec<u8>>,
    offset: u64,
    /// The number of records when a pass returned: none of them may disappear.
    acknowledged: usize,
}

impl Ledger {
    /// Reads the new lines.
    fn read(&mut self, root: &Path, now: u64) {
        let Some(path) = settled_tests::list(root.join(".settled/ledger")).pop() else {
            return;
        };
        let mut bytes = Vec::new();
        let mut file = std::fs::File::open(path).expect("the ledger can be read");
        file.seek(SeekFrom::Start(self.offset))
            .expect("a place in it");
        file.read_to_end(&mut bytes)
            .expect("the ledger can be read");
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            if line.last() == Some(&b'\n') {
                self.offset += line.len() as u64;
                self.add(line.to_vec(), now);
            }
        }
    }

    /// Reads the ledger from the start, since a recovery may have cut its end. Acknowledged records must still be
    /// there.
    fn read_again(&mut self, root: &Path, now: u64, wrong: &mut Vec<String>) {
        let before = std::mem::take(self);
        self.read(root, now);
        let same = self.lines.iter().zip(&before.lines);
        let same = same.take_while(|(now, then)| now == then).count();
        for (seen, then) in self.records.iter_mut().zip(&before.records).take(same) {
            seen.at = then.at;
        }
        if same < before.acknowledged {
            wrong.push(format!(
                "record {} was there when a pass came back, and is gone",
                same + 1
            ));
        }
        self.acknowledged = before.acknowledged.min(same);
    }

    fn add(&mut self, line: Vec<u8>, at: u64) {
        // A line that is not a record is damage, which the model reports at the end.
        let record: Value = serde_json::from_slice(&line).unwrap_or_default();
        let original = &record["original"];
        if let (Some(outbox), Some(file)) = (original["outbox"].as_str(), original["file"].as_str())
        {
            let kinds = self
                .kinds
                .entry((outbox.to_owned(), file.to_owned()))
                .or_default();
            kinds.push(record["kind"].as_str().unwrap_or_default().to_owned());
        }
        self.records.push(Seen { at, record });
        self.lines.push(line);
    }

    /// True if this file has one record, which accepted it.
    pub(super) fn has_accepted(&self, outbox: &str, file: &str) -> bool {
        let kinds = self.kinds.get(&(outbox.to_owned(), file.to_owned()));
        kinds.is_some_and(|kinds| kinds == &["accepted"])
    }
}
