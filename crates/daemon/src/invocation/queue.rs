//! Decides which waiting requests get a command now, and starts it.

use message_schema::id::AgentName;
use review::{DayBudget, Event, Invocation, Review, ReviewKey, RuntimeClock, UsedUp, Which};
use runner::folder::Folder;
use spool::SpoolError;
use workspace::clock::Moment;
use workspace::error::chain;

use super::settle::Settling;
use super::{MAIL_MS, Runner, start, unavailable};
use crate::mailroom::Mailroom;

/// The pause before another start after the folder of a run could not be made, in milliseconds.
const RETRY_MS: u64 = 1_000;

impl Runner {
    /// Starts the commands of waiting requests while there is room, those with the earliest pick-up deadline first.
    pub(super) fn start_what_waits(
        &mut self,
        mailroom: &mut Mailroom,
        now: Moment,
    ) -> Result<usize, SpoolError> {
        let due = self.due(mailroom);
        self.put_off.retain(|key, _| due.contains(key));
        self.day_turns_at = None;
        let mut told = 0;
        if self.held_up_until.is_some_and(|until| now.mono < until) {
            return Ok(told);
        }
        for key in due {
            let Some(reviewer) = mailroom.reviewer(&key).cloned() else {
                continue;
            };
            if let Some(used_up) = mailroom.used_up(&reviewer, &[], now) {
                told += self.put_off_to_the_next_day(mailroom, (&key, &reviewer), &used_up, now)?;
            } else if self.has_room(mailroom, &reviewer) && self.has_waited(mailroom, &key, now) {
                let Some(folder) = self.folder(mailroom, &key, now) else {
                    break;
                };
                told += usize::from(self.begin(mailroom, (&key, &reviewer), folder, now)?);
            }
        }
        Ok(told)
    }

    /// The reviews whose request waits for a command, in the order of their pick-up deadlines.
    fn due(&self, mailroom: &Mailroom) -> Vec<ReviewKey> {
        let mut due: Vec<_> = mailroom
            .open_requests()
            .filter(|waiting| self.is_due(mailroom, *waiting))
            .map(|(key, _, open)| (open.pick_up_by, key.clone()))
            .collect();
        due.sort_unstable();
        due.into_iter().map(|(_, key)| key).collect()
    }

    /// True if the request has waited for its reviewer's mail, or does not have to.
    fn has_waited(&mut self, mailroom: &Mailroom, key: &ReviewKey, now: Moment) -> bool {
        let since = *self.put_off.entry(key.clone()).or_insert(now.mono);
        now.mono >= since + MAIL_MS || is_ready(mailroom, key)
    }

    /// Records the start, then starts the command; true if the start was recorded. The request waits until the folder
    /// exists and the ledger has the start: a full disk loses no request and uses up no start. A crash between the
    /// record and the process uses up the start.
    fn begin(
        &mut self,
        mailroom: &mut Mailroom,
        (key, reviewer): (&ReviewKey, &AgentName),
        folder: Folder,
        now: Moment,
    ) -> Result<bool, SpoolError> {
        let is_recorded = mailroom
            .record_run(&Event::Started(Which::at_work(key, reviewer)), now)
            .inspect_err(|_| folder.remove())?;
        self.put_off.remove(key);
        // If the review's budget was lowered, recording the start has ended the review.
        let is_waiting = mailroom.reviewer(key) == Some(reviewer)
            && mailroom
                .review(key)
                .is_some_and(|review| review.phase.invocation().is_some());
        if !is_recorded || !is_waiting {
            folder.remove();
            return Ok(is_recorded);
        }
        match start::start(mailroom, key, folder, &self.tell, now) {
            Ok(live) => self.live.push(live),
            Err(error) => {
                let failed = Settling::not_started(key, mailroom, &error, now);
                tracing::error!(review = %key, error = %chain(&error), "cannot prepare a command");
                self.settling.extend(failed);
            }
        }
        Ok(true)
    }

    /// Does not start a reviewer without budget before the next day. If the reviewer's own budget is used up, the next
    /// reviewer on the list gets the request; without a list, or if nobody has a budget left, the request waits for the
    /// next day or its deadline.
    fn put_off_to_the_next_day(
        &mut self,
        mailroom: &mut Mailroom,
        (key, reviewer): (&ReviewKey, &AgentName),
        used_up: &UsedUp,
        now: Moment,
    ) -> Result<usize, SpoolError> {
        let open = mailroom
            .review(key)
            .and_then(|review| review.phase.invocation());
        if used_up.budget == DayBudget::PerAgent
            && open.is_some_and(|open| open.next_reviewers.is_some())
        {
            let event = Event::Failed {
                which: Which::at_work(key, reviewer),
                failure: unavailable(used_up, None),
            };
            tracing::warn!(review = %key, %reviewer, why = %used_up, "the next reviewer is asked");
            return mailroom.record_run(&event, now).map(usize::from);
        }
        if self.day_turns_at.is_none() {
            tracing::warn!(%reviewer, why = %used_up, until = %used_up.until, "no command is started before the next day");
        }
        self.day_turns_at = Some(used_up.until);
        Ok(0)
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

    fn is_due(
        &self,
        mailroom: &Mailroom,
        (key, review, open): (&ReviewKey, &Review, &Invocation),
    ) -> bool {
        let has_command = mailroom
            .config()
            .agents
            .get(review.reviewer(key))
            .is_some_and(|agent| !agent.command.is_empty());
        // After a failed reviewer the clock continues; this reviewer has taken nothing yet.
        let is_handed_on = review
            .failed
            .as_ref()
            .is_some_and(|failed| failed.reviewer != *review.reviewer(key));
        // A reviewer that took the request before any start is already at work on it.
        let is_taken = mailroom.config().runtime_clock == RuntimeClock::Take
            && open.starts == 0
            && open.taken_at.is_some()
            && !is_handed_on;
        let is_seen_to = self.live.iter().any(|live| live.run.review == *key)
            || self
                .settling
                .iter()
                .any(|settling| settling.run.review == *key && !settling.is_paid_only());
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
            .filter(|live| live.run.agent() == agent)
            .count() as u64;
        own < max && (self.live.len() as u64) < config.runner.concurrent
    }
}

/// True if a command can start now: its agent's outbox holds no message, and the request is delivered.
fn is_ready(mailroom: &Mailroom, key: &ReviewKey) -> bool {
    let Some(review) = mailroom.review(key) else {
        return false;
    };
    let reviewer = review.reviewer(key);
    let is_delivered =
        |open: &Invocation| start::request(mailroom.root(), reviewer, &open.request).is_some();
    !mailroom.has_mail(reviewer) && review.phase.invocation().is_some_and(is_delivered)
}
