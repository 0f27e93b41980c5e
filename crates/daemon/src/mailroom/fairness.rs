//! Decides in which order the daemon handles things: it judges a finished file before it handles a take, an order or a
//! deadline, gives a file in doubt some time, and lets no flood of newer files delay any of them forever.

use std::collections::BTreeMap;
use std::ffi::OsString;

use chrono::{DateTime, Utc};
use message_schema::id::AgentName;
use review::ReviewKey;
use spool::{Intake, OutboxListing, QueueMark, SpoolError};
use workspace::clock::Moment;
use workspace::error::chain;
use workspace::orders;

use super::{Mailroom, Pass};
use crate::docket::DEADLINE_GRACE;
use crate::step::{BeforeListing, StepEnd};

/// The time for which a file that may be unfinished holds up an order, in milliseconds. It begins when the order is
/// listed, because a round through many outboxes or on slow disks takes seconds.
const ORDER_GRACE_MS: u64 = 1_000;

/// The time for which a backlog holds up takes and orders, in milliseconds. Outboxes take turns, so only an outbox with
/// thousands of files is not judged by then.
const BACKLOG_MS: u64 = 2_000;

const DEADLINE_GRACE_MS: u64 = DEADLINE_GRACE.num_milliseconds().cast_unsigned();

/// The takes, orders and deadlines that wait for messages. When the time for files in doubt is over, a mark is set in
/// the queue: files in front of it are judged first, files behind it are not waited for.
pub(super) struct Fairness {
    /// The mark of the first sweep that no look for takes has followed, and the monotonic time since which that is due.
    takes: Option<(QueueMark, Option<u64>)>,
    /// True if there may be orders that no pass has listed: the watcher saw one, or a sweep has ended.
    pub(super) any_orders: bool,
    /// Orders that were listed, and the round through the outboxes that must end before they can have their turn.
    pub(super) listed: Option<(Vec<OsString>, u64)>,
    /// The monotonic time since which orders have been waiting.
    orders_since: Option<u64>,
    /// Orders whose time for files in doubt is over, and their mark.
    orders: Option<(QueueMark, Vec<OsString>)>,
    /// The reviews whose deadline has come and whose outboxes the daemon has listed.
    deadlines: BTreeMap<ReviewKey, DeadlineWait>,
    /// True if the last pass had no time to list the outboxes of another such review.
    any_deadlines: bool,
    /// The agents whose outboxes were listed for such reviews, and when each listing began.
    looked: BTreeMap<AgentName, DateTime<Utc>>,
    /// The listing that the last pass had no time to end, and when it began.
    looking: Option<(OutboxListing, DateTime<Utc>)>,
}

/// A deadline that has come.
struct DueDeadline {
    at: DateTime<Utc>,
    review: ReviewKey,
    /// The agents whose files are judged before it.
    parties: [AgentName; 2],
}

/// A deadline that has come and waits for the files of its agents. Each deadline waits by itself and delays no other.
#[derive(Debug)]
struct DeadlineWait {
    at: DateTime<Utc>,
    /// The monotonic time at which the outboxes were listed.
    since: u64,
    /// The mark set when the time for unfinished files was over, and that time.
    backlog: Option<(QueueMark, u64)>,
}

impl Default for Fairness {
    fn default() -> Self {
        Self {
            takes: None,
            any_orders: true,
            listed: None,
            orders_since: None,
            orders: None,
            deadlines: BTreeMap::new(),
            any_deadlines: false,
            looked: BTreeMap::new(),
            looking: None,
        }
    }
}

impl Mailroom {
    /// Lists the directory of orders, then the outboxes, so that a file that was finished before an order was given is
    /// judged before it.
    pub(super) fn find_orders(
        &mut self,
        moment: Moment,
        before: &mut BeforeListing<'_>,
    ) -> Vec<OsString> {
        if self.waits.orders.is_some() || !self.waits.any_orders {
            // Later orders get their own turn.
            return Vec::new();
        }
        let (found, round) = match self.waits.listed.take() {
            Some(listed) => listed,
            None => match orders::waiting(&self.root) {
                Ok(found) => (found, self.next_round()),
                Err(error) => {
                    tracing::warn!(error = %chain(&error), "cannot list the orders; will retry");
                    self.waits.orders_since = None;
                    return Vec::new();
                }
            },
        };
        if found.is_empty() {
            self.waits.any_orders = false;
            self.waits.orders_since = None;
            return found;
        }
        let since = *self.waits.orders_since.get_or_insert(moment.mono);
        match self.sweep_on(round, before) {
            Ok(true) => found,
            Ok(false) if moment.mono >= since + ORDER_GRACE_MS + BACKLOG_MS => found,
            Ok(false) => {
                self.waits.listed = Some((found, round));
                Vec::new()
            }
            Err(error) => {
                tracing::warn!(error = %chain(&error), "the sweep before an order failed; will retry");
                // Nothing is due before the next sweep.
                self.waits.orders_since = None;
                Vec::new()
            }
        }
    }

    /// Returns the orders whose turn it is after this pass, which found `found`.
    pub(super) fn whose_turn(
        &mut self,
        found: Vec<OsString>,
        moment: Moment,
    ) -> Option<Vec<OsString>> {
        let Self { waits, docket, .. } = self;
        if waits.listed.is_some() {
            return None;
        }
        if docket.intake.next_wakeup().is_some() && waits.orders.is_none() {
            let since = waits.orders_since?;
            if moment.mono < since.saturating_add(ORDER_GRACE_MS) {
                return None;
            }
        }
        let (mark, orders) = waits
            .orders
            .take()
            .unwrap_or_else(|| (docket.intake.mark(), found));
        let is_late = waits
            .orders_since
            .is_none_or(|since| moment.mono >= since + ORDER_GRACE_MS + BACKLOG_MS);
        if docket.intake.has_waiting_since(mark) && !is_late {
            waits.orders = Some((mark, orders));
            return None;
        }
        waits.orders_since = None;
        (!orders.is_empty()).then_some(orders)
    }

    /// The earliest monotonic time to process orders that were held up.
    pub(super) fn orders_due(&self) -> Option<u64> {
        if self.waits.listed.is_some() {
            return Some(0);
        }
        self.waits
            .orders_since
            .map(|since| since.saturating_add(ORDER_GRACE_MS))
    }

    /// Has the daemon look for takes once it has judged what this sweep found. If an earlier sweep already did so, its
    /// mark stays: newer files do not delay the look.
    pub(super) fn expect_takes(&mut self) {
        self.waits
            .takes
            .get_or_insert((self.docket.intake.mark(), None));
    }

    /// True if the files that the last sweeps found are judged, so that an answer comes before the take of its request.
    pub(super) fn is_turn_of_takes(&mut self, moment: Moment) -> bool {
        let intake = &self.docket.intake;
        let is_turn = |(mark, since): &mut (QueueMark, Option<u64>)| {
            let since = *since.get_or_insert(moment.mono);
            !intake.has_waiting_since(*mark) || moment.mono >= since + BACKLOG_MS
        };
        self.waits.takes.take_if(is_turn).is_some()
    }

    /// Ends the waits whose deadline has come, if it is their turn. Only the two agents of a review can still answer in
    /// time, so no other outbox is listed and no other files hold up the deadline.
    pub fn keep_deadlines_in_turn(&mut self, moment: Moment) -> Result<Pass, SpoolError> {
        let mut pass = Pass::default();
        let due = self.due_deadlines(moment);
        self.look_before_deadlines(&due, moment);
        let Self { waits, docket, .. } = self;
        let in_turn = due.into_iter().filter(|due| {
            let known = waits.deadlines.get_mut(&due.review);
            known.is_some_and(|known| known.is_turn(&due.parties, &docket.intake, moment))
        });
        let in_turn: Vec<ReviewKey> = in_turn.map(|due| due.review).collect();
        if !in_turn.is_empty() {
            self.record_takes(moment, &mut pass)?;
            self.end_waits(&in_turn, moment, &mut pass)?;
        }
        Ok(pass)
    }

    /// The deadlines that have come and that this host may fire.
    fn due_deadlines(&self, moment: Moment) -> Vec<DueDeadline> {
        if !self.is_in_step() {
            return Vec::new();
        }
        let state = self.docket.tentative.state();
        let due = state.deadlines().take_while(|(at, _)| *at <= moment.utc);
        due.filter(|(_, review)| self.may_fire(review, moment))
            .map(|(at, review)| {
                let reviewer = state
                    .review(review)
                    .map_or(&review.reviewer, |known| known.reviewer(review));
                DueDeadline {
                    at,
                    parties: [review.author.clone(), reviewer.clone()],
                    review: review.clone(),
                }
            })
            .collect()
    }

    /// Lists the outboxes of reviews whose deadline is seen for the first time, for as long as a step may take.
    fn look_before_deadlines(&mut self, due: &[DueDeadline], moment: Moment) {
        let mut before = std::mem::take(&mut self.waits.deadlines);
        let end = self.step_end();
        self.waits.any_deadlines = false;
        for due in due {
            let known = before.remove(&due.review);
            let wait = match known.filter(|known| known.at == due.at) {
                Some(wait) => wait,
                None if self.has_looked_for_answers(due, moment, end) => DeadlineWait {
                    at: due.at,
                    since: moment.mono,
                    backlog: None,
                },
                None => {
                    self.waits.any_deadlines = true;
                    continue;
                }
            };
            self.waits.deadlines.insert(due.review.clone(), wait);
        }
        if !self.waits.any_deadlines {
            self.waits.looked.clear();
            self.waits.looking = None;
        }
    }

    /// Lists the outboxes of both agents of a review, as far as the time allows; true if both were listed since the
    /// deadline came.
    fn has_looked_for_answers(&mut self, due: &DueDeadline, moment: Moment, end: StepEnd) -> bool {
        for agent in &due.parties {
            let looked = self.waits.looked.get(agent);
            if looked.is_some_and(|began| *began >= due.at) || !self.is_at_home(agent) {
                continue;
            }
            if end.has_come() {
                return false;
            }
            match self.look_for_answer(agent, due.at, moment, end) {
                Ok(None) => return false,
                Ok(Some(began)) => drop(self.waits.looked.insert(agent.clone(), began)),
                // An agent that locks its own outbox does not delay its deadline.
                Err(error) => {
                    self.waits.looked.insert(agent.clone(), moment.utc);
                    if !self.docket.alerts.raise_unreadable(&error) {
                        tracing::warn!(error = %chain(&error), "cannot list an outbox before a deadline");
                    }
                }
            }
        }
        true
    }

    /// Lists an agent's outbox and returns when the listing began; `None` if the time was over before it ended.
    fn look_for_answer(
        &mut self,
        agent: &AgentName,
        since: DateTime<Utc>,
        moment: Moment,
        end: StepEnd,
    ) -> Result<Option<DateTime<Utc>>, SpoolError> {
        let (view, intake) = (self.spool.view(), &mut self.docket.intake);
        let going = self.waits.looking.take();
        let going =
            going.filter(|(going, began)| going.agent() == agent.as_str() && *began >= since);
        let (mut listing, began) = match going {
            Some(going) => going,
            None => match intake.list(&view, agent.as_str())? {
                Some(listing) => (listing, moment.utc),
                None => return Ok(Some(moment.utc)),
            },
        };
        if intake.list_on(&view, &mut listing, &mut || end.has_come())? {
            return Ok(Some(began));
        }
        self.waits.looking = Some((listing, began));
        Ok(None)
    }

    /// The earliest monotonic time at which a deadline that has come no longer waits for files.
    pub(super) fn deadlines_due(&self) -> Option<u64> {
        if self.waits.any_deadlines {
            return Some(0);
        }
        self.waits.deadlines.values().map(DeadlineWait::ends).min()
    }
}

impl DeadlineWait {
    /// True if no file of these agents waits to be judged, or none that may still count.
    fn is_turn(&mut self, parties: &[AgentName], intake: &Intake, moment: Moment) -> bool {
        let mut parties = parties.iter().map(AgentName::as_str);
        if parties.clone().all(|agent| intake.known(agent) == 0) {
            return true;
        }
        if moment.mono < self.since.saturating_add(DEADLINE_GRACE_MS) {
            return false;
        }
        let (mark, since) = *self
            .backlog
            .get_or_insert_with(|| (intake.mark(), moment.mono));
        moment.mono >= since.saturating_add(DEADLINE_GRACE_MS)
            || !parties.any(|agent| intake.has_waiting_in(agent, mark))
    }

    fn ends(&self) -> u64 {
        let since = self.backlog.map_or(self.since, |(_, since)| since);
        since.saturating_add(DEADLINE_GRACE_MS)
    }
}
