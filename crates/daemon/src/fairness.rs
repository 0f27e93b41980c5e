//! Decides in which order the daemon handles things: it judges a finished file before it handles a take, an order or a
//! deadline, gives a file in doubt some time, and lets no flood of newer files delay any of them forever.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use chrono::{DateTime, Utc};
use message_schema::id::AgentName;
use review::ReviewKey;
use spool::{Intake, OutboxListing, QueueMark, SpoolError};
use workspace::clock::Moment;
use workspace::error::chain;
use workspace::orders;

use crate::docket::DEADLINE_GRACE;
use crate::shared_ledger::SharedLedger;
use crate::sweeping::OutboxStep;

/// The time for which a file that may be unfinished holds up an order, in milliseconds. It begins when the order is
/// listed, because a sweep through many outboxes or on slow disks takes seconds.
const ORDER_GRACE_MS: u64 = 1_000;

/// The time for which a backlog holds up takes and orders, in milliseconds. Outboxes take turns, so only an outbox with
/// thousands of files is not judged by then.
const BACKLOG_MS: u64 = 2_000;

const DEADLINE_GRACE_MS: u64 = DEADLINE_GRACE.num_milliseconds().cast_unsigned();

/// The takes, orders and deadlines that wait for messages. When the time for files in doubt is over, the daemon sets a mark
/// in the queue: it judges the files in front of the mark first, and does not wait for the files behind it.
#[derive(Default)]
pub(crate) struct Fairness {
    /// The mark of the first sweep that no look for takes has followed, and the monotonic time since which that is due.
    takes: Option<(QueueMark, Option<u64>)>,
    /// True if a pass has listed all orders: since then the watcher saw none, and no sweep has ended.
    pub(crate) all_listed: bool,
    /// Orders that were listed, and the sweep through the outboxes that must end before they can have their turn.
    listed: Option<ListedOrders>,
    /// The monotonic time since which orders have been waiting.
    orders_since: Option<u64>,
    /// Orders whose time for files in doubt is over, and their mark. If no time runs (`orders_since`), they are the rest of
    /// orders that had their turn.
    orders: Option<(QueueMark, Vec<OsString>)>,
    /// The reviews whose deadline has come and whose outboxes the daemon has listed.
    deadlines: BTreeMap<ReviewKey, DeadlineWait>,
    /// True if the last try to list the orders failed.
    pub(crate) unlisted: bool,
    /// True if the last pass had no time to list the outboxes of another such review.
    any_deadlines: bool,
    /// The agents whose outboxes were listed for such reviews, and when each listing began.
    looked: BTreeMap<AgentName, DateTime<Utc>>,
    /// The listing that the last pass had no time to end, and when it began.
    looking: Option<(OutboxListing, DateTime<Utc>)>,
}

/// Orders, and the sweep through the outboxes that must end before they can have their turn.
type ListedOrders = (Vec<OsString>, u64);

/// A deadline that has come.
pub(crate) struct DueDeadline {
    pub(crate) at: DateTime<Utc>,
    pub(crate) review: ReviewKey,
    /// The agents whose files are judged before it.
    pub(crate) parties: [AgentName; 2],
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

impl Fairness {
    /// The orders that were listed, or are now, and the sweep through the outboxes that has to end before they can have
    /// their turn, so that a file that was finished before an order was given is judged before it. For orders listed now
    /// it is `sweep`.
    pub(crate) fn list_orders(
        &mut self,
        root: &Path,
        sweep: u64,
        moment: Moment,
    ) -> Option<ListedOrders> {
        if self.orders.is_some() || self.all_listed {
            // Later orders get their own turn.
            return None;
        }
        let (orders, sweep) = match self.listed.take() {
            Some(listed) => listed,
            None => {
                let found = orders::waiting(root);
                self.unlisted = found.is_err();
                match found {
                    Ok(found) => (found, sweep),
                    Err(error) => {
                        tracing::warn!(error = %chain(&error), "cannot list the orders; will retry");
                        self.orders_since = None;
                        return None;
                    }
                }
            }
        };
        if orders.is_empty() {
            self.all_listed = true;
            self.orders_since = None;
            return None;
        }
        self.orders_since.get_or_insert(moment.mono);
        Some((orders, sweep))
    }

    /// Returns the listed orders if their sweep has ended or took too long.
    pub(crate) fn swept_before(
        &mut self,
        (orders, sweep): ListedOrders,
        swept: Result<bool, SpoolError>,
        moment: Moment,
    ) -> Vec<OsString> {
        match swept {
            Ok(true) => return orders,
            Ok(false) if self.is_late(moment) => return orders,
            Ok(false) => self.listed = Some((orders, sweep)),
            Err(error) => {
                tracing::warn!(error = %chain(&error), "the sweep before an order failed; will retry");
                // Nothing is due before the next sweep.
                self.orders_since = None;
            }
        }
        Vec::new()
    }

    /// Returns the orders whose turn it is after this pass, which found `found`.
    pub(crate) fn whose_turn(
        &mut self,
        found: Vec<OsString>,
        intake: &Intake,
        moment: Moment,
    ) -> Option<Vec<OsString>> {
        if self.listed.is_some() {
            return None;
        }
        if intake.next_wakeup().is_some() && self.orders.is_none() {
            let since = self.orders_since?;
            if moment.mono < since.saturating_add(ORDER_GRACE_MS) {
                return None;
            }
        }
        let (mark, orders) = self.orders.take().unwrap_or_else(|| (intake.mark(), found));
        if intake.has_waiting_since(mark) && !self.is_late(moment) {
            self.orders = Some((mark, orders));
            return None;
        }
        self.orders_since = None;
        (!orders.is_empty()).then_some(orders)
    }

    /// Keeps the orders for which a turn had no time: they have theirs in the next pass, before orders that were given later.
    pub(crate) fn keep_rest(&mut self, rest: Vec<OsString>, intake: &Intake) {
        if !rest.is_empty() {
            self.orders = Some((intake.mark(), rest));
        }
    }

    /// True if orders have waited for as long as any file may hold them up.
    fn is_late(&self, moment: Moment) -> bool {
        let late = ORDER_GRACE_MS + BACKLOG_MS;
        self.orders_since
            .is_none_or(|since| moment.mono >= since + late)
    }

    /// The earliest monotonic time to process orders that were held up.
    pub(crate) fn orders_due(&self) -> Option<u64> {
        let is_rest = self.orders.is_some() && self.orders_since.is_none();
        if self.listed.is_some() || is_rest {
            return Some(0);
        }
        self.orders_since
            .map(|since| since.saturating_add(ORDER_GRACE_MS))
    }

    /// Has the daemon look for orders, and for takes once it has judged what this sweep found. If an earlier sweep
    /// already did so, its mark stays: newer files do not delay the look.
    pub(crate) fn sweep_ended(&mut self, intake: &Intake) {
        self.all_listed = false;
        self.takes.get_or_insert((intake.mark(), None));
    }

    /// True if the files that the last sweeps found are judged, so that an answer comes before the take of its request.
    pub(crate) fn is_turn_of_takes(&mut self, intake: &Intake, moment: Moment) -> bool {
        let is_turn = |(mark, since): &mut (QueueMark, Option<u64>)| {
            let since = *since.get_or_insert(moment.mono);
            !intake.has_waiting_since(*mark) || moment.mono >= since + BACKLOG_MS
        };
        self.takes.take_if(is_turn).is_some()
    }

    /// The reviews whose deadline ends their wait now. Only the two agents of a review can still answer in time, so
    /// no other outbox is listed and no other files hold up the deadline.
    pub(crate) fn deadlines_in_turn(
        &mut self,
        due: Vec<DueDeadline>,
        step: &mut OutboxStep<'_>,
        moment: Moment,
    ) -> Vec<ReviewKey> {
        self.look_before_deadlines(&due, step, moment);
        let in_turn = due.into_iter().filter(|due| {
            let known = self.deadlines.get_mut(&due.review);
            known.is_some_and(|known| known.is_turn(&due.parties, &step.docket.intake, moment))
        });
        in_turn.map(|due| due.review).collect()
    }

    /// Lists the outboxes of reviews whose deadline is seen for the first time, for as long as a step may take.
    fn look_before_deadlines(
        &mut self,
        due: &[DueDeadline],
        step: &mut OutboxStep<'_>,
        moment: Moment,
    ) {
        let mut before = std::mem::take(&mut self.deadlines);
        self.any_deadlines = false;
        for due in due {
            let known = before.remove(&due.review);
            let wait = match known.filter(|known| known.at == due.at) {
                Some(wait) => wait,
                None if self.has_looked_for_answers(due, step, moment) => DeadlineWait {
                    at: due.at,
                    since: moment.mono,
                    backlog: None,
                },
                None => {
                    self.any_deadlines = true;
                    continue;
                }
            };
            self.deadlines.insert(due.review.clone(), wait);
        }
        if !self.any_deadlines {
            self.looked.clear();
            self.looking = None;
        }
    }

    /// Lists the outboxes of both agents of a review, as far as the time allows; true if both were listed since the
    /// deadline came.
    fn has_looked_for_answers(
        &mut self,
        due: &DueDeadline,
        step: &mut OutboxStep<'_>,
        moment: Moment,
    ) -> bool {
        for agent in &due.parties {
            let looked = self.looked.get(agent);
            if looked.is_some_and(|began| *began >= due.at)
                || !SharedLedger::reads(step.shared, agent)
            {
                continue;
            }
            if step.end.has_come() {
                return false;
            }
            match self.look_for_answer(agent, due.at, step, moment) {
                Ok(None) => return false,
                Ok(Some(began)) => drop(self.looked.insert(agent.clone(), began)),
                // An agent that locks its own outbox does not delay its deadline.
                Err(error) => {
                    self.looked.insert(agent.clone(), moment.utc);
                    step.docket
                        .unreadable(&error, "cannot list an outbox before a deadline");
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
        step: &mut OutboxStep<'_>,
        moment: Moment,
    ) -> Result<Option<DateTime<Utc>>, SpoolError> {
        let (view, intake, end) = (step.spool.view(), &mut step.docket.intake, step.end);
        let going = self.looking.take();
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
        self.looking = Some((listing, began));
        Ok(None)
    }

    /// The earliest monotonic time at which a deadline that has come no longer waits for files.
    pub(crate) fn deadlines_due(&self) -> Option<u64> {
        if self.any_deadlines {
            return Some(0);
        }
        self.deadlines.values().map(DeadlineWait::ends).min()
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
