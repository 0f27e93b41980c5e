//! One channel's progress through the notices. The cursor on disk moves only after a notice was sent, so a kill in
//! between sends it again, under the same id.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

use chrono::{DateTime, FixedOffset, Utc};
use serde::{Deserialize, Serialize};
use spool::{Layout, Since, SpoolError, Tail};
use workspace::atomic_file;
use workspace::config::{NotifySection, QuietHours};

use crate::channel::Channel;
use crate::follow::Follower;
use crate::notice::Notice;

/// The directory of the cursors in `.settled`.
const CURSORS: &str = "notify";

/// The first and the longest pause after a failed notice, in seconds; each pause doubles the one before.
const BACKOFF_S: [u64; 2] = [1, 300];

/// The least time a daemon must serve before its end is worth a notice, in milliseconds. A command that judges mail
/// without a daemon holds the lock for less.
const SERVED_MS: u64 = 2_000;

/// The time and the state of the daemon, as the caller sees them.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Monotonic milliseconds.
    pub mono: u64,
    /// The time of day in the operator's time zone.
    pub at: DateTime<FixedOffset>,
    /// True if a daemon serves; `None` if this user cannot tell.
    pub serving: Option<bool>,
}

/// The reason why a lane cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum LaneError {
    /// The ledger cannot be read.
    #[error(transparent)]
    Ledger(#[from] SpoolError),
    /// The cursor cannot be read or written.
    #[error("{}: {source}", path.display())]
    Cursor {
        /// Its file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// The progress of a channel, as it is on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Cursor {
    /// The last record whose notices were all sent.
    seq: u64,
    /// The number of the next record's notices that were sent.
    #[serde(default)]
    of_next: usize,
    /// True if a daemon has served since the last one stopped.
    #[serde(default)]
    has_served: bool,
    /// A daemon that is gone.
    #[serde(default)]
    gone: Option<Gone>,
}

/// The end of a daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Gone {
    /// The time at which the notifier found it gone.
    since: DateTime<Utc>,
    /// The last record at that time.
    seq: u64,
}

/// A channel with its cursor.
#[derive(Debug)]
pub struct Lane {
    root: PathBuf,
    channel: Channel,
    quiet: Option<QuietHours>,
    stopped_after_ms: u64,
    follower: Follower,
    cursor: Cursor,
    /// The unsent notices, oldest first.
    queue: VecDeque<Notice>,
    /// The number of the first record's notices that the previous process sent.
    sent_before: usize,
    failures: u32,
    next_try: u64,
    serving_since: Option<u64>,
    gone_since: Option<u64>,
}

impl Lane {
    /// Opens the channel at its cursor. A new channel begins at the ledger's end, since nobody wants last year's
    /// notices.
    pub fn open(root: &Path, channel: Channel, section: &NotifySection) -> Result<Self, LaneError> {
        let mut lane = Self {
            root: root.to_owned(),
            channel,
            quiet: section.quiet_hours,
            stopped_after_ms: section.stopped_after_s * 1_000,
            follower: Follower::open(root)?,
            cursor: Cursor::default(),
            queue: VecDeque::new(),
            sent_before: 0,
            failures: 0,
            next_try: 0,
            serving_since: None,
            gone_since: None,
        };
        match std::fs::read_to_string(lane.path()) {
            Ok(text) => {
                lane.cursor =
                    serde_json::from_str(&text).map_err(|error| lane.failed(error.into()))?;
                lane.sent_before = lane.cursor.of_next;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                lane.cursor.seq = Tail::open(root, Since::End)?.seq();
                lane.save()?;
            }
            Err(error) => return Err(lane.failed(error)),
        }
        Ok(lane)
    }

    /// Reads the new records, and sends the oldest notice if it is due. Returns true if another one could be sent at
    /// once.
    pub fn step(&mut self, now: Step) -> Result<bool, LaneError> {
        for notice in self.follower.read()? {
            if notice.seq > self.cursor.seq {
                self.queue.push_back(notice);
            }
        }
        // The previous process may have sent some notices of this record before it was killed.
        let sent = std::mem::take(&mut self.sent_before);
        self.queue.drain(..sent.min(self.queue.len()));
        self.look_at_daemon(now)?;
        let is_quiet = self.quiet.is_some_and(|quiet| quiet.holds(now.at.time()));
        if is_quiet || now.mono < self.next_try {
            return Ok(false);
        }
        if let Some(notice) = self.queue.front().cloned() {
            return self.send(&notice, now, Self::sent_first);
        }
        match self.stopped() {
            Some(notice) if self.is_gone_for_good(now) => {
                self.send(&notice, now, |lane| lane.cursor.has_served = false)
            }
            Some(_) | None => Ok(false),
        }
    }

    fn send(&mut self, notice: &Notice, now: Step, sent: fn(&mut Self)) -> Result<bool, LaneError> {
        let channel = self.channel.word();
        match self.channel.send(&self.root, notice, now.at.to_utc()) {
            Ok(()) => {
                tracing::info!(channel, id = notice.id, "sent the notice");
                sent(self);
                self.failures = 0;
                self.save()?;
                Ok(true)
            }
            Err(error) => {
                let [first, longest] = BACKOFF_S;
                let again_s = longest.min(first << self.failures.min(20));
                self.failures += 1;
                self.next_try = now.mono + again_s * 1_000;
                tracing::warn!(
                    channel,
                    id = notice.id,
                    again_s,
                    "cannot send the notice; will retry: {error}"
                );
                Ok(false)
            }
        }
    }

    /// True if nothing waits to be sent.
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    fn sent_first(&mut self) {
        let Some(sent) = self.queue.pop_front() else {
            return;
        };
        let more = self.queue.front().is_some_and(|next| next.seq == sent.seq);
        if more {
            self.cursor.of_next += 1;
        } else {
            self.cursor.of_next = 0;
            self.cursor.seq = sent.seq;
        }
    }

    /// Notes when a daemon begins to serve and when it ends. Writes the time of its end to disk before the notice goes
    /// out, so that a repeated notice of the same end has the same id.
    fn look_at_daemon(&mut self, now: Step) -> Result<(), LaneError> {
        match now.serving {
            None => Ok(()),
            Some(true) => {
                let since = *self.serving_since.get_or_insert(now.mono);
                self.gone_since = None;
                let is_new = !self.cursor.has_served || self.cursor.gone.is_some();
                if is_new && now.mono.saturating_sub(since) >= SERVED_MS {
                    self.cursor.has_served = true;
                    self.cursor.gone = None;
                    self.save()?;
                }
                Ok(())
            }
            Some(false) => {
                self.serving_since = None;
                self.gone_since.get_or_insert(now.mono);
                if self.cursor.has_served && self.cursor.gone.is_none() {
                    self.cursor.gone = Some(Gone {
                        since: now.at.to_utc(),
                        seq: self.follower.seq(),
                    });
                    self.save()?;
                }
                Ok(())
            }
        }
    }

    fn is_gone_for_good(&self, now: Step) -> bool {
        self.gone_since
            .is_some_and(|since| now.mono.saturating_sub(since) >= self.stopped_after_ms)
    }

    /// The unsent notice of the daemon's end, if any.
    fn stopped(&self) -> Option<Notice> {
        let Gone { since, seq } = self
            .cursor
            .gone
            .as_ref()
            .filter(|_| self.cursor.has_served)?;
        Some(Notice::stopped(&self.root, *seq, *since))
    }

    fn path(&self) -> PathBuf {
        let own = Layout::new(&self.root).own();
        own.join(CURSORS)
            .join(format!("{}.json", self.channel.word()))
    }

    fn save(&self) -> Result<(), LaneError> {
        let text =
            serde_json::to_string(&self.cursor).map_err(|error| self.failed(error.into()))?;
        atomic_file::replace(&self.path(), &(text + "\n")).map_err(|error| self.failed(error))
    }

    fn failed(&self, source: io::Error) -> LaneError {
        LaneError::Cursor {
            path: self.path(),
            source,
        }
    }
}
