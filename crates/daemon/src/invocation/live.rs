//! Follows a live run: its output, its remaining time and its end. The keeper ends the agent; this module tells the
//! keeper to, and kills it if it does not exit.

use std::process::{Child, ChildStdin};
use std::time::{Duration, Instant};

use review::Closer;
use runner::folder::Folder;
use runner::launch::KeeperNote;
use runner::tree;
use workspace::clock::Moment;

use super::{Run, is_open};
use crate::mailroom::Mailroom;

/// The time an agent may still run after its answer was accepted, in milliseconds.
const LINGER_MS: u64 = 10_000;

/// The time a keeper has to end its agent, in milliseconds: longer than it gives the agent.
const KEEPER_MS: u64 = 8_000;

/// A run whose keeper is our child.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) run: Run,
    pub(super) folder: Folder,
    /// Turns the ledger has.
    pub(super) counted: u16,
    keeper: Child,
    /// Open as long as the agent may go on.
    control: Option<ChildStdin>,
    turns: u16,
    is_silent: bool,
    is_warned: bool,
    over_since: Option<u64>,
    told_at: Option<u64>,
}

impl Live {
    /// `is_warned` says whether the log was told of its time already, by a start before it.
    pub(super) fn new(run: Run, folder: Folder, mut keeper: Child, is_warned: bool) -> Self {
        let control = keeper.stdin.take();
        Self {
            run,
            folder,
            counted: 0,
            keeper,
            control,
            turns: 0,
            is_silent: false,
            is_warned,
            over_since: None,
            told_at: None,
        }
    }

    pub(super) fn note(&mut self, note: &KeeperNote) {
        match note {
            KeeperNote::Turns(turns) => self.turns = self.turns.max(*turns),
            KeeperNote::Silent => self.is_silent = true,
        }
    }

    /// Turns that were heard of and are not in the ledger.
    pub(super) fn uncounted(&self) -> u16 {
        self.turns.saturating_sub(self.counted)
    }

    /// Whether its end is only a matter of time.
    pub(super) fn is_being_ended(&self) -> bool {
        self.over_since.is_some() || self.is_silent
    }

    /// Looks where its review stands: ends it with its request, at once, or a little later if it was answered.
    pub(super) fn look(&mut self, mailroom: &Mailroom, now: Moment) {
        if is_open(mailroom, &self.run) {
            self.warn(mailroom, now);
            return;
        }
        let since = *self.over_since.get_or_insert(now.mono);
        let review = mailroom.review(&self.run.review);
        let is_answered = review.is_some_and(|review| {
            review.phase.invocation().is_none() && review.closed_by == Some(Closer::Reviewer)
        });
        if self.told_at.is_none() && (!is_answered || now.mono >= since + LINGER_MS) {
            tracing::info!(review = %self.run.review, run = self.run.id, "its request is over; ending the command");
            self.tell_to_end(now.mono);
        }
    }

    /// The time to log that its time is nearly over, on the monotonic clock; none once that is logged.
    pub(super) fn warns_at(&self, mailroom: &Mailroom, now: Moment) -> Option<u64> {
        let warn_ms = i64::try_from(mailroom.config().runner.warn_s)
            .ok()?
            .saturating_mul(1000);
        let deadline = mailroom
            .review(&self.run.review)
            .and_then(review::Review::deadline);
        let (at, _) =
            deadline.filter(|_| !self.is_warned && self.over_since.is_none() && warn_ms > 0)?;
        let left_ms = (at - now.utc).num_milliseconds().saturating_sub(warn_ms);
        Some(now.mono.saturating_add(u64::try_from(left_ms).unwrap_or(0)))
    }

    fn warn(&mut self, mailroom: &Mailroom, now: Moment) {
        if self.warns_at(mailroom, now).is_none_or(|at| at > now.mono) {
            return;
        }
        self.is_warned = true;
        let deadline = mailroom
            .review(&self.run.review)
            .and_then(review::Review::deadline);
        let left_s = deadline.map_or(0, |(at, _)| (at - now.utc).num_seconds());
        tracing::warn!(review = %self.run.review, run = self.run.id, left_s, "the time of a command is nearly over");
    }

    fn tell_to_end(&mut self, mono: u64) {
        self.control = None;
        self.told_at.get_or_insert(mono);
    }

    /// Whether its keeper is gone; one that takes too long is killed, and what it kept with it.
    pub(super) fn is_gone(&mut self, now: Moment) -> bool {
        if self.told_at.is_some_and(|at| now.mono >= at + KEEPER_MS) {
            tracing::warn!(
                run = self.run.id,
                "the command's keeper did not exit in time; killing it"
            );
            let _ = self.keeper.kill();
        }
        // One that cannot be waited for is none of ours any more.
        (self.is_silent || self.told_at.is_some()) && !matches!(self.keeper.try_wait(), Ok(None))
    }
}

/// Ends them all, and waits for it.
pub(super) fn end_all(live: &mut Vec<Live>) {
    if live.is_empty() {
        return;
    }
    live.iter_mut().for_each(|live| live.tell_to_end(0));
    let start = Instant::now();
    while live
        .iter_mut()
        .any(|live| matches!(live.keeper.try_wait(), Ok(None)))
    {
        if start.elapsed() >= Duration::from_millis(KEEPER_MS) {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    for live in live.iter_mut() {
        // Most are gone by now.
        let _ = live.keeper.kill();
        let _ = live.keeper.wait();
    }
    live.clear();
    tree::end_strays(&[]);
}

/// Ends what agents left behind whose keeper was killed.
pub(super) fn end_strays(live: &[Live]) {
    let kept: Vec<i32> = live
        .iter()
        .map(|live| live.keeper.id().cast_signed())
        .collect();
    tree::end_strays(&kept);
}
