//! Whose turn it is: what lies finished in an outbox is judged before a take, an order or a deadline
//! is heard, a file in doubt is given a moment, and newer files put none of them off for ever.

use std::ffi::OsString;

use chrono::{DateTime, TimeDelta, Utc};
use spool::{QueueMark, SpoolError};
use workspace::clock::Moment;
use workspace::orders;

use super::{Mailroom, Pass};
use workspace::error::chain;

/// How long, in milliseconds, a file that may still be unfinished holds up an order.
const ORDER_GRACE_MS: u64 = 1_000;

/// How long a file that may still be unfinished holds up a deadline that has come.
const DEADLINE_GRACE: TimeDelta = TimeDelta::seconds(5);

/// What waits for messages to be judged, and for which. A mark is set once the moment for files in
/// doubt is over: what waits for its turn then is judged first, and nothing that comes later.
#[derive(Debug)]
pub(super) struct Fairness {
    /// The first sweep that was not followed yet by a look which requests have left their inboxes.
    pub(super) takes: Option<QueueMark>,
    /// Whether orders may lie there that no pass has listed: the watcher saw one, or nobody looked since the last sweep.
    pub(super) any_orders: bool,
    /// Since when orders have been waiting, on the monotonic clock.
    orders_since: Option<u64>,
    /// Orders whose moment is over.
    orders: Option<(QueueMark, Vec<OsString>)>,
    /// Deadlines whose moment is over: all that came by then.
    deadlines: Option<(QueueMark, DateTime<Utc>)>,
}

impl Default for Fairness {
    fn default() -> Self {
        Self {
            takes: None,
            any_orders: true,
            orders_since: None,
            orders: None,
            deadlines: None,
        }
    }
}

impl Mailroom {
    /// The orders that lie there. Outboxes are looked through after they were listed, so that what was
    /// finished before an order was given is judged before it.
    pub(super) fn find_orders(&mut self, moment: Moment) -> Vec<OsString> {
        if self.waits.orders.is_some() || !self.waits.any_orders {
            // Later ones have their own moment.
            return Vec::new();
        }
        let found = match orders::waiting(&self.root) {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(error = %chain(&error), "orders cannot be listed; they are tried again");
                self.waits.orders_since = None;
                return Vec::new();
            }
        };
        if found.is_empty() {
            self.waits.any_orders = false;
            self.waits.orders_since = None;
            return found;
        }
        if let Err(error) = self.sweep() {
            tracing::warn!(error = %chain(&error), "the sweep before an order failed; it is tried again");
            // Nothing is due before the next sweep.
            self.waits.orders_since = None;
            return Vec::new();
        }
        self.waits.orders_since.get_or_insert(moment.mono);
        found
    }

    /// The orders whose turn it is after this pass, which found these.
    pub(super) fn whose_turn(
        &mut self,
        found: Vec<OsString>,
        moment: Moment,
    ) -> Option<Vec<OsString>> {
        let Self { waits, docket, .. } = self;
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
        if docket.intake.has_waiting_since(mark) {
            waits.orders = Some((mark, orders));
            return None;
        }
        waits.orders_since = None;
        (!orders.is_empty()).then_some(orders)
    }

    /// When orders that were held up are heard at the earliest, on the monotonic clock.
    pub(super) fn orders_due(&self) -> Option<u64> {
        self.waits
            .orders_since
            .map(|since| since.saturating_add(ORDER_GRACE_MS))
    }

    /// Whether what the last sweeps found is judged, so that an answer goes before the take of what it
    /// answers.
    pub(super) fn is_turn_of_takes(&mut self) -> bool {
        let intake = &self.docket.intake;
        self.waits
            .takes
            .take_if(|mark| !intake.has_waiting_since(*mark))
            .is_some()
    }

    /// Ends the waits whose deadline came before the last sweep, at `swept_at`, if it is their turn.
    pub fn keep_deadlines_in_turn(
        &mut self,
        swept_at: DateTime<Utc>,
        moment: Moment,
    ) -> Result<Pass, SpoolError> {
        let Some(at) = self.next_deadline().filter(|at| *at <= swept_at) else {
            self.waits.deadlines = None;
            return Ok(Pass::default());
        };
        let Self { waits, docket, .. } = self;
        let intake = &docket.intake;
        if intake.next_wakeup().is_none() {
            waits.deadlines = None;
            return self.keep_deadlines(swept_at, moment);
        }
        let patient_until = swept_at.min(moment.utc - DEADLINE_GRACE);
        if waits.deadlines.is_none() && at <= patient_until {
            waits.deadlines = Some((intake.mark(), patient_until));
        }
        match waits
            .deadlines
            .take_if(|(mark, _)| !intake.has_waiting_since(*mark))
        {
            Some((_, until)) => self.keep_deadlines(until, moment),
            None => Ok(Pass::default()),
        }
    }
}
