//! Runs agents' commands: a new process for each request to an agent that has a command, ended no later than the
//! request. Decides when a command starts, restarts and ends, and what its end does to the review; the ledger records
//! each step first. The command's answer is judged like any other message.
//!
//! - `queue` decides which waiting request gets a command; `report` records what runs report;
//! - `start` makes a run's folder and starts its keeper, the process that watches the agent (crate `runner`), in the
//!   files that `place` chooses;
//! - `run` is a started command with its request;
//! - `live` follows a run, `settle` settles one that ended, `answer` makes a message of its output;
//! - `orphans` cleans up after an earlier daemon.

pub mod answer;
mod live;
pub mod orphans;
mod place;
mod queue;
mod report;
mod run;
mod settle;
mod start;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::thread;

use chrono::{DateTime, Utc};
use review::{ReviewKey, RunSpend};
use runner::checkout;
use runner::launch::KeeperNote;
use spool::SpoolError;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use workspace::clock::Moment;
use workspace::error::chain;

use self::live::Live;
use self::place::PlaceSearch;
use self::report::{record_reads, record_spend, record_turns, record_validation_runs};
use self::run::{MAIL_MS, is_open, unavailable};
use self::settle::Settling;
use crate::mailroom::Mailroom;

pub use self::run::Run;

/// The pause between two checks of a run that is ending or waits for its agent's mail, in milliseconds.
const LOOK_MS: u64 = 100;

/// The agents' commands that one daemon starts.
#[derive(Debug)]
pub(crate) struct AgentCommands {
    live: Vec<Live>,
    settling: Vec<Settling>,
    /// Requests that wait for their reviewer's mail to be judged before its command starts, and since when.
    put_off: BTreeMap<ReviewKey, u64>,
    /// The searches for the files of runs that are about to start.
    searches: BTreeMap<ReviewKey, PlaceSearch>,
    /// The authors' turns at each reviewer.
    author_turns: queue::AuthorTurns,
    /// The time of the next attempt to make a run's folder; none while the attempts succeed.
    held_up_until: Option<u64>,
    /// The time at which the next day begins, if a request waits for it because its reviewer has used up its budget.
    day_turns_at: Option<DateTime<Utc>>,
    tell: UnboundedSender<(String, KeeperNote)>,
    heard: UnboundedReceiver<(String, KeeperNote)>,
    notes: Vec<(String, KeeperNote)>,
    /// True once the runs of an earlier daemon are dealt with.
    is_ready: bool,
    wake_at: Option<u64>,
}

impl Default for AgentCommands {
    fn default() -> Self {
        let (tell, heard) = unbounded_channel();
        let (live, settling, notes) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            live,
            settling,
            put_off: BTreeMap::new(),
            searches: BTreeMap::new(),
            author_turns: queue::AuthorTurns::default(),
            held_up_until: None,
            day_turns_at: None,
            tell,
            heard,
            notes,
            is_ready: false,
            wake_at: None,
        }
    }
}

impl AgentCommands {
    /// Waits for the next note of a keeper.
    pub(crate) async fn changed(&mut self) {
        // There is always one sender here, so the channel never closes.
        if let Some(note) = self.heard.recv().await {
            self.notes.push(note);
        }
    }

    /// The monotonic time of the next work that needs no event.
    pub(crate) fn next_wakeup(&self) -> Option<u64> {
        self.wake_at
    }

    /// Does the work that is due once the finished files in the outboxes are judged: counts turns, ends commands whose
    /// request is over, settles ended runs and starts waiting ones. `has_changed` is true if any review may have
    /// changed. Returns the number of events it recorded.
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
            self.remove_trees(mailroom);
            self.is_ready = true;
        }
        let mut recorded = self.count_turns(mailroom, now)?;
        recorded += self.count_spend(mailroom, now)?;
        let ended = self.end_what_is_over(mailroom, now);
        recorded += self.settle(mailroom, now)?;
        let may_start = has_changed
            || is_first
            || ended
            || recorded > 0
            || !self.put_off.is_empty()
            || self.has_day_turned(now);
        if may_start
            && mailroom
                .config()
                .agents
                .values()
                .any(|agent| !agent.command.is_empty())
        {
            recorded += self.start_what_waits(mailroom, now)?;
        }
        let warns_at = self
            .live
            .iter()
            .filter_map(|live| live.warns_at(mailroom, now))
            .min();
        if recorded > 0 {
            // The events just recorded make files; the next pass delivers them.
            self.wake_at = Some(0);
        } else if !self.settling.is_empty()
            || !self.put_off.is_empty()
            || self.live.iter().any(Live::is_being_ended)
        {
            self.wake_at = Some(now.mono + LOOK_MS);
        } else {
            self.wake_at = [warns_at, self.day_turns(now)].into_iter().flatten().min();
        }
        Ok(recorded)
    }

    /// Ends every command and waits until none of their processes is left. Their requests stay open: the next daemon
    /// starts the commands again.
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
        let mut recorded = 0;
        for live in &mut self.live {
            let count = live.uncounted();
            if count > 0 && is_open(mailroom, &live.run) {
                recorded += usize::from(record_turns(mailroom, &live.run, count, now)?);
                live.counted += count;
            }
            recorded += usize::from(record_reads(mailroom, live, now)?);
            recorded += record_validation_runs(mailroom, live, now)?;
        }
        Ok(recorded)
    }

    /// Records what runs have used once that exhausts a budget, and ends the runs of an agent that has none left for
    /// the day. If the review's own budget is exhausted, the rules end the review.
    fn count_spend(&mut self, mailroom: &mut Mailroom, now: Moment) -> Result<usize, SpoolError> {
        let going_on: Vec<RunSpend> = self
            .live
            .iter()
            .map(|live| live.run.report(live.spend))
            .filter(|report| !mailroom.unrecorded(report).is_nothing())
            .collect();
        // A run that is being ended is recorded at its end.
        let ending: Vec<String> = self
            .live
            .iter()
            .filter(|live| live.is_being_ended())
            .map(|live| live.run.id.clone())
            .collect();
        let mut recorded = 0;
        for report in going_on
            .iter()
            .filter(|report| !ending.contains(&report.run))
        {
            let is_over = mailroom.is_used_up(&report.review, mailroom.unrecorded(report))
                || mailroom.used_up(&report.agent, &going_on, now).is_some();
            if is_over {
                recorded += usize::from(record_spend(mailroom, report, now)?);
            }
        }
        for live in &mut self.live {
            if let Some(used_up) = mailroom.used_up(live.run.agent(), &[], now)
                && is_open(mailroom, &live.run)
            {
                live.end_for(&used_up, now);
            }
        }
        Ok(recorded)
    }

    /// Checks the requests that wait for the next day again: a reloaded config may give them a budget.
    pub(crate) fn reconfigured(&mut self) {
        if self.day_turns_at.is_some() {
            self.day_turns_at = Some(DateTime::UNIX_EPOCH);
            self.wake_at = Some(0);
        }
    }

    /// True if a request waits for a day that has begun.
    fn has_day_turned(&self, now: Moment) -> bool {
        self.day_turns_at.is_some_and(|at| at <= now.utc)
    }

    /// The monotonic time at which the day begins that a request waits for.
    fn day_turns(&self, now: Moment) -> Option<u64> {
        let left_ms = (self.day_turns_at? - now.utc).num_milliseconds();
        // If the clock is set meanwhile, the daemon notices within the hour.
        Some(now.mono + u64::try_from(left_ms).unwrap_or(0).min(3_600_000))
    }

    /// Ends the runs whose request is over; true if a run has ended.
    fn end_what_is_over(&mut self, mailroom: &Mailroom, now: Moment) -> bool {
        for live in &mut self.live {
            live.check_request(mailroom, now);
        }
        let mut ended = Vec::new();
        for at in (0..self.live.len()).rev() {
            if self.live[at].is_gone(now) {
                let live = self.live.swap_remove(at);
                self.settling.push(Settling::new(&live, now));
                ended.push(live);
            }
        }
        if ended.is_empty() {
            return false;
        }
        live::end_strays(&self.live);
        ended.iter().for_each(Live::remove_group);
        self.remove_trees(mailroom);
        true
    }

    /// Removes the trees that belong to no live run: a killed keeper leaves its own behind. A thread does it, because a
    /// large tree takes long.
    fn remove_trees(&self, mailroom: &Mailroom) {
        let mut left = checkout::left(mailroom.root()).unwrap_or_else(|error| {
            tracing::warn!(error = %chain(&error), "cannot list the trees that are left of runs");
            Vec::new()
        });
        left.retain(|tree| {
            let has_it = |live: &Live| live.run.launch.checkout.as_ref() == Some(tree);
            !self.live.iter().any(has_it)
        });
        if left.is_empty() {
            return;
        }
        thread::spawn(move || {
            for tree in left {
                if let Err(error) = tree.remove() {
                    let tree = tree.tree.display();
                    tracing::warn!(%tree, error = %chain(&error), "cannot remove the tree of a run");
                }
            }
        });
    }

    fn settle(&mut self, mailroom: &mut Mailroom, now: Moment) -> Result<usize, SpoolError> {
        let mut recorded = 0;
        let mut left = Vec::new();
        while let Some(mut settling) = self.settling.pop() {
            match settling.go_on(mailroom, now) {
                Ok(settle::Settlement::Wait) => left.push(settling),
                Ok(settle::Settlement::Done(count)) => {
                    recorded += count;
                    if !settling.is_paid_only && !is_open(mailroom, &settling.run) {
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
        Ok(recorded)
    }
}
