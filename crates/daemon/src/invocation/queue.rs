//! Decides which waiting requests get a command now, and starts it.

use std::collections::BTreeMap;
use std::io;

use chrono::{DateTime, Utc};
use message_schema::id::AgentName;
use review::{DayBudget, Event, Invocation, Review, ReviewKey, RuntimeClock, UsedUp, Which};
use runner::folder::Folder;
use spool::SpoolError;
use workspace::clock::Moment;
use workspace::error::chain;

use super::place::{CodePlace, PlaceSearch};
use super::settle::Settling;
use super::{AgentCommands, MAIL_MS, start, unavailable};
use crate::mailroom::Mailroom;

/// A request that waits for its reviewer's command.
struct WaitingRequest {
    /// The time by which the command should start, by the author's priority.
    pick_up_by: DateTime<Utc>,
    review: ReviewKey,
    reviewer: AgentName,
}

/// The authors' turns at each reviewer. Priorities are the author's own word, so they order only its own requests: no
/// number of urgent ones keeps another author waiting for more than one start.
#[derive(Debug, Default)]
pub(super) struct AuthorTurns {
    /// For each reviewer and author, the number of its last start among all starts.
    last: BTreeMap<(AgentName, AgentName), u64>,
    starts: u64,
}

impl AuthorTurns {
    /// Notes that a request of this author starts.
    fn note(&mut self, reviewer: &AgentName, author: &AgentName) {
        self.starts += 1;
        self.last
            .insert((reviewer.clone(), author.clone()), self.starts);
    }

    /// Orders the requests: every author's first before any author's second, and first the author that has waited
    /// longest for its turn.
    fn in_order(&self, mut due: Vec<WaitingRequest>) -> Vec<ReviewKey> {
        due.sort_unstable_by(|a, b| (a.pick_up_by, &a.review).cmp(&(b.pick_up_by, &b.review)));
        let mut places = BTreeMap::<_, u64>::new();
        let turn = |it: WaitingRequest| {
            let side = (it.reviewer, it.review.author.clone());
            let last = self.last.get(&side).copied().unwrap_or(0);
            let place = places.entry(side).or_default();
            *place += 1;
            (*place, last, it.pick_up_by, it.review)
        };
        let mut turns: Vec<_> = due.into_iter().map(turn).collect();
        turns.sort_unstable();
        turns.into_iter().map(|(_, _, _, review)| review).collect()
    }
}

/// The pause before another start after the folder of a run could not be made, in milliseconds.
const RETRY_MS: u64 = 1_000;

impl AgentCommands {
    /// Starts the commands of waiting requests while there is room. Authors take turns.
    pub(super) fn start_what_waits(
        &mut self,
        mailroom: &mut Mailroom,
        now: Moment,
    ) -> Result<usize, SpoolError> {
        let due = self.due(mailroom);
        self.put_off.retain(|key, _| due.contains(key));
        self.searches.retain(|key, _| due.contains(key));
        self.day_turns_at = None;
        let mut recorded = 0;
        if self.held_up_until.is_some_and(|until| now.mono < until) {
            return Ok(recorded);
        }
        for key in due {
            let Some(reviewer) = mailroom.reviewer(&key).cloned() else {
                continue;
            };
            if let Some(used_up) = mailroom.used_up(&reviewer, &[], now) {
                recorded +=
                    self.put_off_to_the_next_day(mailroom, (&key, &reviewer), &used_up, now)?;
            } else if self.has_room(mailroom, (&key, &reviewer))
                && self.has_waited(mailroom, &key, now)
            {
                let question = start::place_question(mailroom, &key);
                let found = question
                    .and_then(|asked| PlaceSearch::poll_or_begin(&mut self.searches, &key, asked));
                let Some((id, place)) = found else {
                    continue;
                };
                let Some(folder) = self.folder(mailroom, (&key, &id), now) else {
                    break;
                };
                recorded +=
                    usize::from(self.begin(mailroom, (&key, &reviewer), (folder, place), now)?);
            }
        }
        Ok(recorded)
    }

    /// The reviews whose request waits for a command, in the order in which their commands start.
    fn due(&self, mailroom: &Mailroom) -> Vec<ReviewKey> {
        let due = mailroom
            .open_requests()
            .filter(|waiting| self.is_due(mailroom, *waiting))
            .map(|(key, review, open)| WaitingRequest {
                pick_up_by: open.pick_up_by,
                review: key.clone(),
                reviewer: review.reviewer(key).clone(),
            });
        self.author_turns.in_order(due.collect())
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
        (folder, place): (Folder, io::Result<CodePlace>),
        now: Moment,
    ) -> Result<bool, SpoolError> {
        let is_recorded = mailroom
            .record_run(&Event::Started(Which::at_work(key, reviewer)), now)
            .inspect_err(|_| folder.remove())?;
        self.put_off.remove(key);
        self.author_turns.note(reviewer, &key.author);
        // If the review's budget was lowered, recording the start has ended the review.
        let is_waiting = mailroom.reviewer(key) == Some(reviewer)
            && mailroom
                .review(key)
                .is_some_and(|review| review.phase.invocation().is_some());
        if !is_recorded || !is_waiting {
            folder.remove();
            return Ok(is_recorded);
        }
        let started =
            place.and_then(|place| start::start(mailroom, key, (folder, place), &self.tell, now));
        match started {
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
            tracing::warn!(review = %key, %reviewer, why = %used_up, "asking the next reviewer");
            return mailroom.record_run(&event, now).map(usize::from);
        }
        if self.day_turns_at.is_none() {
            tracing::warn!(%reviewer, why = %used_up, until = %used_up.until, "starting no command before the next UTC day");
        }
        self.day_turns_at = Some(used_up.until);
        Ok(0)
    }

    /// Makes the folder of a run. Logs a failure once until it succeeds again.
    fn folder(
        &mut self,
        mailroom: &Mailroom,
        (key, id): (&ReviewKey, &str),
        now: Moment,
    ) -> Option<Folder> {
        match start::prepare(mailroom, key, id) {
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
                .any(|settling| settling.run.review == *key && !settling.is_paid_only);
        has_command && !is_taken && !is_seen_to && open.starts_left() > 0
    }

    /// True if one more command of this agent may run, beside those for which the daemon searches the files.
    fn has_room(&self, mailroom: &Mailroom, (key, agent): (&ReviewKey, &AgentName)) -> bool {
        let config = mailroom.config();
        let section = config.agents.get(agent);
        let max = section.map_or(0, |section| section.concurrent.0);
        let searches = self.searches.keys().filter(|other| *other != key);
        let live = self.live.iter().map(|live| Some(live.run.agent()));
        let agents: Vec<Option<&AgentName>> = searches
            .map(|other| mailroom.reviewer(other))
            .chain(live)
            .collect();
        let own = agents.iter().filter(|other| **other == Some(agent)).count() as u64;
        own < max && (agents.len() as u64) < config.runner.concurrent
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a waiting request, `PR AUTHOR REVIEWER`, with a deadline in this many hours.
    fn waiting(words: &str, hours: i64) -> WaitingRequest {
        let mut words = words.split(' ');
        let pr = words
            .next()
            .and_then(|pr| pr.parse().ok())
            .expect("a number");
        let mut agent = || AgentName::new(words.next().expect("a name")).expect("a name");
        let (author, reviewer) = (agent(), agent());
        WaitingRequest {
            pick_up_by: DateTime::UNIX_EPOCH + chrono::TimeDelta::hours(hours),
            review: ReviewKey::new(None, &pr, author, reviewer.clone()),
            reviewer,
        }
    }

    #[test]
    fn authors_take_turns_and_priorities_order_only_their_own_requests() {
        let mut turns = AuthorTurns::default();
        let mut due = vec![
            ("1 mallory codex", 2),
            ("2 mallory codex", 1),
            ("3 mallory codex", 3),
            ("4 claude codex", 48),
            ("5 claude codex", 24),
            ("6 claude gemini", 50),
        ];
        let mut started = Vec::new();
        while !due.is_empty() {
            let requests = due.iter().map(|(words, hours)| waiting(words, *hours));
            let next = turns
                .in_order(requests.collect())
                .swap_remove(0)
                .pr
                .to_string();
            let at = due
                .iter()
                .position(|(words, _)| words.starts_with(&next))
                .expect("it waits");
            let it = waiting(due.remove(at).0, 0);
            turns.note(&it.reviewer, &it.review.author);
            started.push(next);
        }
        assert_eq!(started, ["2", "5", "6", "1", "4", "3"]);
    }
}
