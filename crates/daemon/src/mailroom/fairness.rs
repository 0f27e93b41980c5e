//! The order in which the daemon handles things: it judges a finished file before it processes a take, an
//! order or a deadline, gives a file in doubt a moment, and lets no flood of newer files put one of them off
//! forever.

use std::ffi::OsString;

use chrono::{DateTime, TimeDelta, Utc};
use spool::{QueueMark, SpoolError};
use workspace::clock::Moment;
use workspace::orders;

use super::sweeping::BeforeListing;
use super::{Mailroom, Pass};
use workspace::error::chain;

/// The time, in milliseconds, for which a file that may still be unfinished holds up an order. It begins when the order is
/// listed: beside many agents or slow disks a round through the outboxes takes seconds.
const ORDER_GRACE_MS: u64 = 1_000;

/// The time, in milliseconds, for which a backlog holds up takes and orders. Outboxes take turns, so only one with
/// thousands of files is not judged by then.
const BACKLOG_MS: u64 = 2_000;

/// The time, in milliseconds, for which a file that may still be unfinished, and then a backlog, each hold up a
/// deadline that has come: in the outboxes of its review, and no other. A deadline that passed hours ago, while the
/// daemon or the machine slept, has this time as well: files finished by then are found in the same moment, and may
/// look too young to be read.
const DEADLINE_GRACE_MS: u64 = 5_000;

/// The takes, orders and deadline that wait for messages to be judged, and for which. A mark is set once the moment for
/// files in doubt is over: files that wait for their turn then are judged first, and nothing that comes later.
#[derive(Debug)]
pub(super) struct Fairness {
    /// The first sweep not yet followed by a look for requests that left their inboxes, and the time from which that
    /// look is due, on the monotonic clock.
    takes: Option<(QueueMark, Option<u64>)>,
    /// True if there may be orders that no pass has listed: the watcher saw one, or nobody looked since the last sweep.
    pub(super) any_orders: bool,
    /// Orders that were listed, and the round through the outboxes that has to end before they are known to wait.
    pub(super) listed: Option<(Vec<OsString>, u64)>,
    /// The time from which orders have been waiting, on the monotonic clock.
    orders_since: Option<u64>,
    /// Orders whose moment is over.
    orders: Option<(QueueMark, Vec<OsString>)>,
    /// The time from which a deadline has been due, on the monotonic clock.
    deadlines_since: Option<u64>,
    /// The first deadline whose moment is over.
    deadline: Option<DueDeadline>,
}

/// A deadline that waits for the files that were in the outboxes of its review when its moment was over.
#[derive(Clone, Copy, Debug)]
struct DueDeadline {
    at: DateTime<Utc>,
    mark: QueueMark,
    /// The time of the mark, on the monotonic clock.
    since: u64,
}

impl Default for Fairness {
    fn default() -> Self {
        Self {
            takes: None,
            any_orders: true,
            listed: None,
            orders_since: None,
            orders: None,
            deadlines_since: None,
            deadline: None,
        }
    }
}

impl Fairness {
    /// No deadline waits.
    fn forget_deadlines(&mut self) {
        (self.deadlines_since, self.deadline) = (None, None);
    }
}

impl Mailroom {
    /// The orders in the directory. The daemon lists the outboxes after the orders, so that a file that was
    /// finished before an order was given is judged before it.
    pub(super) fn find_orders(
        &mut self,
        moment: Moment,
        before: &mut BeforeListing<'_>,
    ) -> Vec<OsString> {
        if self.waits.orders.is_some() || !self.waits.any_orders {
            // Later ones have their own moment.
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

    /// The orders whose turn it is after this pass, which found these.
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

    /// The earliest time to process orders that were held up, on the monotonic clock.
    pub(super) fn orders_due(&self) -> Option<u64> {
        if self.waits.listed.is_some() {
            return Some(0);
        }
        self.waits
            .orders_since
            .map(|since| since.saturating_add(ORDER_GRACE_MS))
    }

    /// Has requests that left their inboxes looked for once what the sweep found is judged. An earlier sweep counts:
    /// newer files do not put that look off.
    pub(super) fn expect_takes(&mut self) {
        self.waits
            .takes
            .get_or_insert((self.docket.intake.mark(), None));
    }

    /// True if the files that the last sweeps found are judged, so that an answer goes before the take of the request
    /// it answers.
    pub(super) fn is_turn_of_takes(&mut self, moment: Moment) -> bool {
        let intake = &self.docket.intake;
        let is_turn = |(mark, since): &mut (QueueMark, Option<u64>)| {
            let since = *since.get_or_insert(moment.mono);
            !intake.has_waiting_since(*mark) || moment.mono >= since + BACKLOG_MS
        };
        self.waits.takes.take_if(is_turn).is_some()
    }

    /// Ends the waits whose deadline came before the last sweep, at `swept_at`, if it is their turn. Files in other
    /// outboxes than those of the review hold up none of them.
    pub fn keep_deadlines_in_turn(
        &mut self,
        swept_at: DateTime<Utc>,
        moment: Moment,
    ) -> Result<Pass, SpoolError> {
        let mut pass = Pass::default();
        let may_fire = self.may_fire_next(moment);
        if !may_fire || self.next_deadline().is_none_or(|at| at > swept_at) {
            self.waits.forget_deadlines();
            return Ok(pass);
        }
        if self.docket.intake.next_wakeup().is_none() {
            self.waits.forget_deadlines();
            return self.keep_deadlines(swept_at, moment);
        }
        self.record_takes(moment, &mut pass)?;
        while self.may_fire_next(moment)
            && let Some(until) = self.deadline_in_turn(swept_at, moment)
        {
            self.end_waits(until, moment, &mut pass)?;
        }
        Ok(pass)
    }

    /// The next deadline, if it has come and it is its turn.
    fn deadline_in_turn(
        &mut self,
        swept_at: DateTime<Utc>,
        moment: Moment,
    ) -> Option<DateTime<Utc>> {
        let Self { waits, docket, .. } = self;
        let next = docket.tentative.state().next_deadline();
        let Some((at, review)) = next.filter(|(at, _)| *at <= swept_at) else {
            waits.forget_deadlines();
            return None;
        };
        let since = *waits.deadlines_since.get_or_insert(moment.mono);
        let intake = &docket.intake;
        let state = docket.tentative.state();
        let reviewer = state
            .review(review)
            .map_or(&review.reviewer, |known| known.reviewer(review));
        let parties = [review.author.as_str(), reviewer.as_str()];
        if parties.iter().all(|agent| intake.known(agent) == 0) {
            return Some(at);
        }
        if waits.deadline.is_none_or(|marked| marked.at != at) {
            let is_over = moment.mono >= since + DEADLINE_GRACE_MS
                && at <= moment.utc - TimeDelta::milliseconds(DEADLINE_GRACE_MS.cast_signed());
            waits.deadline = is_over.then(|| DueDeadline {
                at,
                mark: intake.mark(),
                since: moment.mono,
            });
        }
        let is_turn = |due: &mut DueDeadline| {
            let mut parties = parties.iter();
            moment.mono >= due.since + DEADLINE_GRACE_MS
                || !parties.any(|agent| intake.has_waiting_in(agent, due.mark))
        };
        waits.deadline.take_if(is_turn).map(|due| due.at)
    }
}
