//! Runs agents' commands: a fresh process for each request to an agent that has a command, ended with its request at the
//! latest. Decides when a command starts, restarts and ends, and what its end does to the review; the ledger records each
//! step first. The command's answer is judged like any other message.
//!
//! - `start` makes a run's folder and starts its keeper, the process that watches the agent (crate `runner`);
//! - `live` follows a run, `settle` settles one that ended, `answer` makes a message of its output;
//! - `orphans` cleans up after an earlier daemon.

pub mod answer;
mod live;
pub mod orphans;
mod settle;
mod start;

use std::collections::BTreeMap;

use message_schema::id::{AgentName, MessageId, RepoPath};
use review::{Event, Invocation, ReadingState, ReviewKey, RuntimeClock, Which};
use runner::folder::{Folder, Launch};
use runner::launch::KeeperNote;
use serde::{Deserialize, Serialize};
use spool::SpoolError;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use workspace::clock::Moment;
use workspace::error::chain;

use self::live::Live;
use self::settle::Settling;
use crate::mailroom::Mailroom;

/// How long mail of an agent that is not judged yet puts off what depends on it, in milliseconds: a little longer
/// than the longest patience with a file whose packet is missing.
const MAIL_MS: u64 = 8_000;

/// The time between two looks at such mail, in milliseconds.
const LOOK_MS: u64 = 100;

/// The time before another start after the folder of a run could not be made, in milliseconds.
const RETRY_MS: u64 = 1_000;

/// A started command and its request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The version of the form: 1.
    pub schema_version: u32,
    /// Its id, which is the folder's name.
    pub id: String,
    /// The review.
    pub review: ReviewKey,
    /// The request it is to answer.
    pub request: MessageId,
    /// The how manieth start in the round it is, from 1.
    pub start: u8,
    /// The keeper's task.
    #[serde(flatten)]
    pub launch: Launch,
}

/// The commands of one daemon.
#[derive(Debug)]
pub(crate) struct Runner {
    live: Vec<Live>,
    settling: Vec<Settling>,
    /// Since when a request waits for the mail of its reviewer to be judged before its command is started.
    put_off: BTreeMap<ReviewKey, u64>,
    /// The time of the next attempt to make a run's folder; none while that succeeds.
    held_up_until: Option<u64>,
    tell: UnboundedSender<(String, KeeperNote)>,
    heard: UnboundedReceiver<(String, KeeperNote)>,
    notes: Vec<(String, KeeperNote)>,
    /// Whether what an earlier daemon left was seen to.
    is_ready: bool,
    wake_at: Option<u64>,
}

impl Default for Runner {
    fn default() -> Self {
        let (tell, heard) = unbounded_channel();
        let (live, settling, notes) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            live,
            settling,
            put_off: BTreeMap::new(),
            held_up_until: None,
            tell,
            heard,
            notes,
            is_ready: false,
            wake_at: None,
        }
    }
}

impl Runner {
    /// Waits for the next note of a keeper.
    pub(crate) async fn rings(&mut self) {
        // The runner keeps a sender itself, so there is always something to wait for.
        if let Some(note) = self.heard.recv().await {
            self.notes.push(note);
        }
    }

    /// The time of the next work without an event, on the monotonic clock.
    pub(crate) fn next_wakeup(&self) -> Option<u64> {
        self.wake_at
    }

    /// Does the due work after the finished files in the outboxes are judged: counts turns, ends commands whose request is
    /// over, settles ended runs and starts waiting ones. `has_changed` says whether any review may have changed. Returns
    /// the number of events it reported.
    pub(crate) fn tend(
        &mut self,
        mailroom: &mut Mailroom,
        now: Moment,
        has_changed: bool,
    ) -> Result<usize, SpoolError> {
        self.wake_at = None;
        let is_first = !self.is_ready;
        if is_first {
            self.settling = orphans::see_to(mailroom, now);
            self.is_ready = true;
        }
        let mut told = self.count_turns(mailroom, now)?;
        let ended = self.end_what_is_over(mailroom, now);
        told += self.settle(mailroom, now)?;
        let may_start = has_changed || is_first || ended || told > 0 || !self.put_off.is_empty();
        if may_start
            && mailroom
                .config()
                .agents
                .values()
                .any(|agent| !agent.command.is_empty())
        {
            told += self.start_what_waits(mailroom, now)?;
        }
        let warns_at = self
            .live
            .iter()
            .filter_map(|live| live.warns_at(mailroom, now))
            .min();
        if told > 0 {
            // What was told makes files; the next pass delivers them.
            self.wake_at = Some(0);
        } else if !self.settling.is_empty()
            || !self.put_off.is_empty()
            || self.live.iter().any(Live::is_being_ended)
        {
            self.wake_at = Some(now.mono + LOOK_MS);
        } else {
            self.wake_at = warns_at;
        }
        Ok(told)
    }

    /// Ends every command and waits until nothing of them runs. What they answer for stays open: the next daemon
    /// starts them once more.
    pub(crate) fn stop(&mut self) {
        live::end_all(&mut self.live);
    }

    fn count_turns(&mut self, mailroom: &mut Mailroom, now: Moment) -> Result<usize, SpoolError> {
        while let Ok(note) = self.heard.try_recv() {
            self.notes.push(note);
        }
        for (id, note) in self.notes.drain(..) {
            if let Some(live) = self.live.iter_mut().find(|live| live.run.id == id) {
                live.note(&note);
            }
        }
        let mut told = 0;
        for live in &mut self.live {
            let count = live.uncounted();
            if count > 0 && is_open(mailroom, &live.run) {
                told += usize::from(tell_turns(mailroom, &live.run.review, count, now)?);
                live.counted += count;
            }
            told += usize::from(tell_reads(mailroom, live, now)?);
        }
        Ok(told)
    }

    /// Says whether a run ended.
    fn end_what_is_over(&mut self, mailroom: &Mailroom, now: Moment) -> bool {
        for live in &mut self.live {
            live.look(mailroom, now);
        }
        let mut ended = false;
        for at in (0..self.live.len()).rev() {
            if self.live[at].is_gone(now) {
                ended = true;
                let live = self.live.swap_remove(at);
                self.settling.push(Settling::new(&live, now));
            }
        }
        if ended {
            live::end_strays(&self.live);
        }
        ended
    }

    fn settle(&mut self, mailroom: &mut Mailroom, now: Moment) -> Result<usize, SpoolError> {
        let mut told = 0;
        let mut left = Vec::new();
        while let Some(mut settling) = self.settling.pop() {
            match settling.go_on(mailroom, now) {
                Ok(settle::Settlement::Wait) => left.push(settling),
                Ok(settle::Settlement::Done(count)) => {
                    told += count;
                    if !is_open(mailroom, &settling.run) {
                        start::put_away(mailroom.root(), &settling.run);
                    }
                }
                Err(error) => {
                    left.push(settling);
                    self.settling.append(&mut left);
                    return Err(error);
                }
            }
        }
        self.settling = left;
        Ok(told)
    }

    /// Starts the commands of the requests that wait, those that must be picked up first before others, as far as
    /// there is room. Each has a folder before it is in the ledger, and is in the ledger before it is started.
    fn start_what_waits(
        &mut self,
        mailroom: &mut Mailroom,
        now: Moment,
    ) -> Result<usize, SpoolError> {
        let mut due: Vec<_> = mailroom
            .open_requests()
            .filter(|(key, _, open)| self.is_due(mailroom, key, open))
            .map(|(key, _, open)| (open.pick_up_by, key.clone()))
            .collect();
        due.sort_unstable();
        self.put_off
            .retain(|key, _| due.iter().any(|(_, waiting)| waiting == key));
        let mut told = 0;
        if self.held_up_until.is_some_and(|until| now.mono < until) {
            return Ok(told);
        }
        for (_, key) in due {
            if !self.has_room(mailroom, &key.reviewer) {
                continue;
            }
            let since = *self.put_off.entry(key.clone()).or_insert(now.mono);
            if now.mono < since + MAIL_MS && !is_ready(mailroom, &key) {
                continue;
            }
            // Until there is a folder and the ledger has it, it waits: a full disk forgets no request and costs no start.
            let Some(folder) = self.folder(mailroom, &key, now) else {
                break;
            };
            let is_heard = mailroom
                .record_run(&Event::Started(Which::of(&key)), now)
                .inspect_err(|_| folder.remove())?;
            self.put_off.remove(&key);
            if !is_heard {
                folder.remove();
                continue;
            }
            told += 1;
            match start::start(mailroom, &key, folder, &self.tell, now) {
                Ok(live) => self.live.push(live),
                Err(error) => {
                    let failed = Settling::not_started(&key, mailroom, &error, now);
                    tracing::error!(review = %key, error = %chain(&error), "cannot prepare a command");
                    self.settling.extend(failed);
                }
            }
        }
        Ok(told)
    }

    /// Makes the folder of a run. Logs a failure once until it succeeds again.
    fn folder(&mut self, mailroom: &Mailroom, key: &ReviewKey, now: Moment) -> Option<Folder> {
        match start::prepare(mailroom, key) {
            Ok(folder) => {
                self.held_up_until = None;
                Some(folder)
            }
            Err(error) => {
                if self.held_up_until.is_none() {
                    tracing::error!(review = %key, error = %chain(&error), "cannot start a command; will retry");
                }
                self.held_up_until = Some(now.mono + RETRY_MS);
                None
            }
        }
    }

    fn is_due(&self, mailroom: &Mailroom, key: &ReviewKey, open: &Invocation) -> bool {
        let has_command = mailroom
            .config()
            .agents
            .get(&key.reviewer)
            .is_some_and(|agent| !agent.command.is_empty());
        // Whoever took the request before any start is at work on it.
        let is_taken = mailroom.config().runtime_clock == RuntimeClock::Take
            && open.starts == 0
            && open.taken_at.is_some();
        let is_seen_to = self.live.iter().any(|live| live.run.review == *key)
            || self
                .settling
                .iter()
                .any(|settling| settling.run.review == *key);
        has_command && !is_taken && !is_seen_to && open.starts_left() > 0
    }

    fn has_room(&self, mailroom: &Mailroom, agent: &AgentName) -> bool {
        let config = mailroom.config();
        let max = config
            .agents
            .get(agent)
            .map_or(0, |section| section.concurrent.0);
        let own = self
            .live
            .iter()
            .filter(|live| live.run.review.reviewer == *agent)
            .count() as u64;
        own < max && (self.live.len() as u64) < config.runner.concurrent
    }
}

/// Whether a command can be started now: no answer lies finished in the outbox, and the request is delivered.
fn is_ready(mailroom: &Mailroom, key: &ReviewKey) -> bool {
    let open = mailroom
        .review(key)
        .and_then(|review| review.phase.invocation());
    let is_delivered =
        |open: &Invocation| start::request(mailroom.root(), &key.reviewer, &open.request).is_some();
    !mailroom.has_mail(&key.reviewer) && open.is_some_and(is_delivered)
}

/// Whether the request a run is to answer is still open.
fn is_open(mailroom: &Mailroom, run: &Run) -> bool {
    let open = mailroom
        .review(&run.review)
        .and_then(|review| review.phase.invocation());
    open.is_some_and(|open| open.request == run.request)
}

/// Records the changed files that an agent was seen to read; says whether there were new ones.
fn tell_reads(mailroom: &mut Mailroom, live: &mut Live, now: Moment) -> Result<bool, SpoolError> {
    let reads = std::mem::take(&mut live.reads);
    let Some(review) = mailroom
        .review(&live.run.review)
        .filter(|_| !reads.is_empty() && is_open(mailroom, &live.run))
    else {
        return Ok(false);
    };
    let ReadingState {
        change, observed, ..
    } = &review.reading;
    let is_new = |file: &RepoPath| change.files.contains(file) && !observed.contains(file);
    let files: Vec<RepoPath> = reads.into_iter().filter(is_new).collect();
    if files.is_empty() {
        return Ok(false);
    }
    let event = Event::Observed {
        which: Which::of(&live.run.review),
        files,
    };
    mailroom.record_run(&event, now)
}

fn tell_turns(
    mailroom: &mut Mailroom,
    key: &ReviewKey,
    count: u16,
    now: Moment,
) -> Result<bool, SpoolError> {
    mailroom.record_run(
        &Event::Turns {
            which: Which::of(key),
            count,
        },
        now,
    )
}
