//! The ledger in a stream of NATS JetStream: one subject for each workspace, one message for each batch.
//!
//! The fence is the server's: it appends a batch only if the subject's last message is the one that the batch's first
//! record names as its predecessor. An append that is not acknowledged is looked up by its place: if the message behind
//! that predecessor is another one, the batch can never be in the log. A time-out proves nothing, and neither does a
//! missing message: a deposed leader may answer without the newest ones.

mod change_signal;
mod found;
mod heartbeats;
mod link;
mod name;
mod own_runtime;
mod pulse;
mod reader;

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::{ConnectOptions, ServerAddr};
use message_schema::limit::{MESSAGE_BYTES_MAX, PACKET_BYTES_MAX};
use spool::log::{Appended, Head, Heartbeat, Log, LogError, OnChange, Signed};

use self::change_signal::ChangeSignal;
use self::heartbeats::Listener;
use self::link::{Found, Link, SendOutcome};
use self::own_runtime::OwnRuntime;
use self::pulse::Pulse;
use self::reader::BatchReader;
use crate::{GIVEN_BYTES_MAX, wire};

pub use self::found::{Founded, existing, found, too_old};
pub use self::name::LedgerName;

/// The time a consumer may lag behind the leader before another one replaces it.
const BEHIND: Duration = Duration::from_secs(2);

/// The time for which a batch is sent again while an earlier message is in flight, and the pause before each time. A
/// leader that syncs three disks needs about 10 ms for a message.
const BUSY: Duration = Duration::from_millis(300);
const BUSY_PAUSE: Duration = Duration::from_millis(2);

/// The most consumers in a row that may skip batches which the leader has.
const GAPS_MAX: u32 = 4;

/// The interval, in milliseconds, at which the daemon polls if no change wakes it first.
const POLL_MS: u64 = 500;

/// The message size with which a broker accepts every record: in JSON, with escapes, a message and its packet take up
/// to twice their size, the fields that a record repeats from a packet take no more than the packet, and the rest is
/// names.
pub const MESSAGE_BYTES_ENOUGH: usize =
    (2 * MESSAGE_BYTES_MAX + 4 * PACKET_BYTES_MAX) as usize + 128 * 1024;

/// A ledger in JetStream. It has a thread of its own, and no call waits longer than two requests take.
pub struct JetStream {
    // The order matters: fields that use the runtime are dropped before it.
    follower: Option<Followed>,
    /// The number of consumers in a row that skipped batches.
    gaps: u32,
    pulse: Pulse,
    listener: Listener,
    link: Link,
    signal: Arc<ChangeSignal>,
    /// The place of a batch that this host saw recently.
    seen: Option<Seen>,
    /// The end of a batch that the log may have.
    pending: Option<Head>,
    /// The leader was asked for its time. The pulse asks again now and then.
    has_asked_time: bool,
    runtime: OwnRuntime,
}

/// The reader that follows the stream, and its position.
struct Followed {
    task: BatchReader,
    /// The end of the last batch that was returned, or skipped as known.
    at: Head,
    /// The first place in the stream where the batch behind `at` can be.
    place: u64,
    /// The time at which the leader was first seen to have more.
    behind: Option<Instant>,
    /// An error behind a batch that was returned: the next call returns it.
    failed: Option<LogError>,
}

/// A batch's end and its place in the stream, 0 before the first.
#[derive(Clone, Copy, Debug)]
struct Seen {
    head: Head,
    place: u64,
}

impl Seen {
    const EMPTY: Seen = Seen {
        head: Head::EMPTY,
        place: 0,
    };
}

/// The place of a record.
enum Located {
    /// In this batch.
    In(Box<Found>),
    /// Before the first batch.
    Beginning,
    /// The log ends before it.
    Beyond(Head),
}

impl JetStream {
    /// Starts to connect to the first of these servers that answers. Fails only for a cause that no retry removes.
    pub fn open(
        servers: Vec<ServerAddr>,
        options: ConnectOptions,
        place: &LedgerName,
    ) -> Result<JetStream, LogError> {
        let runtime = OwnRuntime::start();
        let runtime = runtime.map_err(|error| LogError::Unreachable {
            why: error.to_string(),
        })?;
        let link = runtime.block_on(Link::open(servers, options, place))?;
        let signal = Arc::new(ChangeSignal::default());
        let pulse = Pulse::start(runtime.handle(), link.clone(), Arc::clone(&signal));
        let listener = Listener::start(runtime.handle(), link.clone());
        Ok(JetStream {
            follower: None,
            gaps: 0,
            pulse,
            listener,
            link,
            signal,
            seen: None,
            pending: None,
            has_asked_time: false,
            runtime,
        })
    }

    /// The most bytes of a batch, as reported by the server that this host is connected to.
    pub fn batch_bytes_max(&self) -> usize {
        self.link.bytes_max()
    }

    /// Waits until a server lets this host in or refuses it.
    pub fn wait_until_connected(&self, limit: Duration) -> Result<(), LogError> {
        self.runtime.block_on(self.link.until_up(limit))
    }

    /// Asks the leader for its time before this host records anything: with a wrong clock it must not.
    fn ask_time(&mut self) {
        if !self.has_asked_time && self.link.is_up().is_ok() {
            self.has_asked_time = true;
            if let Some(ahead) = self.runtime.block_on(self.link.clock_ahead_ms()) {
                self.pulse.tell_clock(ahead);
            }
        }
    }

    /// Finds the batch that holds record `seq` by bisection: records and places grow together.
    fn locate(&self, seq: u64) -> Result<Located, LogError> {
        if seq == 0 {
            return Ok(Located::Beginning);
        }
        self.runtime.block_on(async {
            let Some(last) = self.link.last().await? else {
                return Ok(Located::Beyond(Head::EMPTY));
            };
            let end = last.signed.batch.head();
            if end.seq < seq {
                return Ok(Located::Beyond(end));
            }
            let holds = |found: &Found| {
                let batch = &found.signed.batch;
                batch.after().seq < seq && seq <= batch.head().seq
            };
            if holds(&last) {
                return Ok(Located::In(Box::new(last)));
            }
            let (mut low, mut high) = (1, last.place - 1);
            while low <= high {
                let middle = low + (high - low) / 2;
                let Some(found) = self.link.next(middle).await? else {
                    break;
                };
                if holds(&found) {
                    return Ok(Located::In(Box::new(found)));
                }
                if found.signed.batch.after().seq >= seq {
                    high = middle - 1;
                } else {
                    low = found.place + 1;
                }
            }
            Err(LogError::Broken {
                what: format!("it has record {}, but no record {seq}", end.seq),
            })
        })
    }

    /// The place of the batch that ends with `head`; `None` if the log has no such batch.
    fn place_of(&mut self, head: Head) -> Result<Option<u64>, LogError> {
        if head == Head::EMPTY {
            return Ok(Some(Seen::EMPTY.place));
        }
        if let Some(seen) = self.seen.filter(|seen| seen.head == head) {
            return Ok(Some(seen.place));
        }
        match self.locate(head.seq)? {
            Located::In(found) if found.signed.batch.head() == head => {
                let place = found.place;
                self.seen = Some(Seen { head, place });
                Ok(Some(place))
            }
            Located::In(_) | Located::Beginning | Located::Beyond(_) => Ok(None),
        }
    }

    /// Looks at the batch behind place `behind`, which decides the outcome of an append.
    fn look_behind(&mut self, signed: &Signed, behind: u64) -> Result<Option<Appended>, LogError> {
        let next = self.runtime.block_on(self.link.next(behind + 1))?;
        let Some(next) = next else {
            return Ok(None);
        };
        let head = next.signed.batch.head();
        let place = next.place;
        self.seen = Some(Seen { head, place });
        if head == signed.batch.head() {
            return Ok(Some(Appended::Committed));
        }
        // Another batch is there, so this one can never be. The log's present end is only informative.
        let end = self.runtime.block_on(self.link.last());
        let end = match end {
            Ok(Some(last)) => last.signed.batch.head(),
            Ok(None) | Err(_) => head,
        };
        Ok(Some(Appended::Moved(end)))
    }

    /// Keeps an unknown outcome unknown: once an append may have landed, no later failure excludes that.
    fn unless_pending(&self, head: Head, error: LogError) -> Result<Appended, LogError> {
        if self.pending == Some(head) {
            Ok(Appended::Unknown(error.to_string()))
        } else {
            Err(error)
        }
    }

    fn try_append(&mut self, signed: &Signed) -> Result<Appended, LogError> {
        let after = signed.batch.after();
        self.link.is_up()?;
        let (bytes, bytes_max) = (signed.batch.bytes().len(), self.link.bytes_max());
        if bytes > bytes_max {
            return Err(LogError::TooLarge { bytes, bytes_max });
        }
        let Some(behind) = self.place_of(after)? else {
            return self.not_behind(after);
        };
        let why = match self.send(signed, behind) {
            SendOutcome::Acknowledged(place) => {
                let head = signed.batch.head();
                self.seen = Some(Seen { head, place });
                return Ok(Appended::Committed);
            }
            SendOutcome::TooLarge => return Err(LogError::TooLarge { bytes, bytes_max }),
            SendOutcome::Nobody(error) => return Err(error),
            SendOutcome::WrongLast => {
                // The log may have lost the message at that place: the next try looks for it again.
                self.seen = None;
                "the last message is on its way".to_owned()
            }
            SendOutcome::Busy => "the last message is on its way".to_owned(),
            SendOutcome::Unknown(why) => why,
        };
        // From here on the batch may be in the log, or arrive late.
        match self.look_behind(signed, behind) {
            Ok(Some(appended)) => Ok(appended),
            Ok(None) => Ok(Appended::Unknown(why)),
            Err(error) => Ok(Appended::Unknown(format!("{why}; {error}"))),
        }
    }

    /// Sends a batch, again while the leader is busy with the message before: it refuses the next one even after it has
    /// acknowledged that message. If another host's message is the one in flight, the next try is refused for good.
    fn send(&self, signed: &Signed, behind: u64) -> SendOutcome {
        let began = Instant::now();
        loop {
            let (link, batch) = (self.link.clone(), signed.clone());
            let sending = async move { link.send(&batch, behind).await };
            let sent = self.runtime.wait_for(sending);
            if !matches!(sent, SendOutcome::Busy) || began.elapsed() >= BUSY {
                return sent;
            }
            std::thread::sleep(BUSY_PAUSE);
        }
    }

    /// Handles an append whose predecessor the log does not have.
    fn not_behind(&self, after: Head) -> Result<Appended, LogError> {
        let end = self.head_now()?;
        if end.seq < after.seq {
            self.is_short(end, after)?;
        }
        Ok(Appended::Moved(end))
    }

    fn head_now(&self) -> Result<Head, LogError> {
        let last = self.runtime.block_on(self.link.last())?;
        self.pulse.answered();
        Ok(last.map_or(Head::EMPTY, |last| last.signed.batch.head()))
    }

    /// Handles a leader whose end is before what this host has from the log. Fails until it is certain that this is the
    /// log's end, and not a deposed leader's: at once with one server, else when the pulse has confirmed it.
    fn is_short(&self, end: Head, ours: Head) -> Result<(), LogError> {
        self.pulse.know(ours);
        let is_certain = self
            .pulse
            .last_answer()
            .is_some_and(|heard| heard.is_certain());
        if is_certain || self.runtime.block_on(self.link.is_alone())? {
            return Ok(());
        }
        Err(LogError::Unreachable {
            why: format!(
                "its leader has records up to {}, and this host has record {} from it: that leader may have been cut off",
                end.seq, ours.seq
            ),
        })
    }

    /// Starts to follow behind `from`.
    fn follow_from(&mut self, from: Head) -> Result<(), LogError> {
        let (at, place) = match self.locate(from.seq)? {
            Located::Beginning => (Head::EMPTY, 1),
            Located::Beyond(log) => {
                self.is_short(log, from)?;
                return Err(LogError::RolledBack { log, ours: from });
            }
            Located::In(found) => {
                let batch = &found.signed.batch;
                match batch.head_at(from.seq) {
                    Some(head) if head == from => {}
                    theirs => {
                        let theirs = theirs.map_or(batch.head().digest, |head| head.digest);
                        return Err(wire::forked(from, theirs));
                    }
                }
                if batch.head() == from {
                    (from, found.place + 1)
                } else {
                    (batch.after(), found.place)
                }
            }
        };
        let signal = Arc::clone(&self.signal);
        let task = BatchReader::start(self.runtime.handle(), self.link.clone(), place, signal);
        self.follower = Some(Followed {
            task,
            at,
            place,
            behind: None,
            failed: None,
        });
        Ok(())
    }

    /// Checks the leader's answer when nothing new has arrived.
    fn quiet(&mut self, from: Head) -> Result<(), LogError> {
        let Some(heard) = self.pulse.last_answer() else {
            return Ok(());
        };
        let end = heard.end.clone()?;
        if end.seq < from.seq {
            // The request to the leader may be older than this host's record.
            let is_certain = heard.is_certain() && heard.known.seq >= from.seq;
            let (log, ours) = (end, from);
            return if is_certain {
                Err(LogError::RolledBack { log, ours })
            } else {
                Ok(())
            };
        }
        if end.seq == from.seq && end.digest != from.digest {
            return Err(wire::forked(from, end.digest));
        }
        let Some(followed) = &mut self.follower else {
            // The next call starts another follower.
            return Ok(());
        };
        if end.seq <= followed.at.seq || !followed.task.is_idle() {
            followed.behind = None;
            return Ok(());
        }
        let since = *followed.behind.get_or_insert_with(Instant::now);
        if since.elapsed() > BEHIND {
            tracing::debug!(at = followed.at.seq, end = end.seq, "following again");
            self.follower = None;
        }
        Ok(())
    }

    /// Handles a batch that does not follow the one before it. If the stream's leader has the same batch there, the log
    /// is damaged. If not, the consumer, which may run on any server, skipped a batch: the next call starts another
    /// one.
    fn gap(&mut self, found: &Found) -> Result<(), LogError> {
        let Some(Followed { at, place, .. }) = self.follower.take() else {
            return Ok(());
        };
        let next = self.runtime.block_on(self.link.next(place))?;
        let (after, head) = (found.signed.batch.after(), found.signed.batch.head());
        let is_there = next.is_some_and(|next| next.signed.batch.head() == head);
        self.gaps += 1;
        if !is_there && self.gaps < GAPS_MAX {
            let next = after.seq + 1;
            tracing::debug!(at = at.seq, next, "following again behind a gap");
            return Ok(());
        }
        Err(if after.seq == at.seq {
            wire::forked(at, after.digest)
        } else {
            LogError::Broken {
                what: format!("record {} comes after record {}", after.seq + 1, at.seq),
            }
        })
    }

    /// Returns the batches behind `from` that have arrived.
    fn take(&mut self, from: Head) -> Result<Vec<Signed>, LogError> {
        let Some(followed) = &mut self.follower else {
            return Ok(Vec::new());
        };
        if let Some(error) = followed.failed.take() {
            self.follower = None;
            return Err(error);
        }
        let (mut given, mut bytes) = (Vec::new(), 0);
        while bytes < GIVEN_BYTES_MAX {
            let found = match followed.task.next() {
                None => break,
                Some(Ok(found)) => found,
                Some(Err(error)) if given.is_empty() => {
                    self.follower = None;
                    return Err(error);
                }
                Some(Err(error)) => {
                    followed.failed = Some(error);
                    break;
                }
            };
            let head = found.signed.batch.head();
            if head.seq <= followed.at.seq {
                // A recreated consumer may begin a little early.
                continue;
            }
            if found.signed.batch.after() != followed.at {
                match self.gap(&found) {
                    Err(error) if given.is_empty() => return Err(error),
                    // The follower is gone, so a later call meets the gap again and returns the error.
                    Ok(()) | Err(_) => break,
                }
            }
            let Found { place, signed } = found;
            (followed.at, followed.place) = (head, place + 1);
            self.gaps = 0;
            self.seen = Some(Seen { head, place });
            if head.seq <= from.seq {
                // This host's own batch, or one it already has: the records must be identical.
                if signed
                    .batch
                    .head_at(from.seq)
                    .is_some_and(|ours| ours != from)
                {
                    self.follower = None;
                    return Err(wire::forked(from, head.digest));
                }
                continue;
            }
            bytes += signed.batch.bytes().len();
            given.push(signed);
        }
        Ok(given)
    }
}

impl Log for JetStream {
    fn head(&mut self) -> Result<Head, LogError> {
        let head = self.head_now()?;
        self.ask_time();
        Ok(head)
    }

    fn append(&mut self, signed: &Signed) -> Result<Appended, LogError> {
        let head = signed.batch.head();
        let appended = match self.try_append(signed) {
            Ok(appended) => Ok(appended),
            Err(error) => self.unless_pending(head, error),
        };
        self.pending = match &appended {
            Ok(Appended::Unknown(_)) => Some(head),
            Ok(Appended::Committed | Appended::Moved(_)) | Err(_) => None,
        };
        if appended == Ok(Appended::Committed) {
            self.pulse.know(head);
            self.pulse.answered();
        }
        appended
    }

    fn follow(&mut self, from: Head) -> Result<Vec<Signed>, LogError> {
        let is_behind = |followed: &Followed| {
            from.seq < followed.at.seq || (from.seq == followed.at.seq && from != followed.at)
        };
        if self.follower.as_ref().is_none_or(is_behind) {
            self.follow_from(from)?;
            self.ask_time();
        }
        self.pulse.know(from);
        let given = self.take(from)?;
        if given.is_empty() {
            self.quiet(from)?;
        }
        Ok(given)
    }

    fn on_change(&mut self, on_change: OnChange) {
        self.signal.set(on_change);
    }

    fn poll_ms(&self) -> u64 {
        POLL_MS
    }

    fn clock_ahead_ms(&self) -> Option<i64> {
        self.pulse.clock_ahead_ms()
    }

    fn send_heartbeat(&mut self, bytes: Vec<u8>) {
        let link = self.link.clone();
        self.runtime
            .handle()
            .spawn(async move { link.send_heartbeat(bytes).await });
    }

    fn heartbeats(&mut self) -> Vec<Heartbeat> {
        self.listener.take()
    }
}
