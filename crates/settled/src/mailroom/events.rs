//! What reaches the mailroom besides messages: orders, requests that leave their inbox, deadlines.
//! Each is heard by the rules and committed like a batch of messages.

use chrono::{DateTime, Utc};
use review::{Event, Record, ReviewKey, Told, Which};
use spool::SpoolError;

use super::{Mailroom, Pass, chain};
use crate::clock::{self, Moment};
use crate::desk::{Batch, Desk};
use crate::draft;
use crate::orders::{self, NoOrder};
use crate::outgoing::Outgoing;

/// How long, in milliseconds, a file that may still be unfinished holds up an order.
const GRACE_MS: u64 = 1_000;

/// The most orders that are committed together.
const BATCH_MAX: usize = 64;

impl Mailroom {
    /// The orders to be heard in this pass. Outboxes are looked through after they were listed, so
    /// that what was finished before an order was given is judged before it.
    pub(super) fn find_orders(&mut self, moment: Moment) -> Vec<String> {
        let found = orders::waiting(&self.root).unwrap_or_else(|error| {
            tracing::warn!(error = %chain(&error), "orders cannot be listed; they are tried again");
            Vec::new()
        });
        if found.is_empty() {
            self.orders_since = None;
            return found;
        }
        self.orders_since.get_or_insert(moment.mono);
        if let Err(error) = self.sweep() {
            tracing::warn!(error = %chain(&error), "the sweep before an order failed; it is tried again");
            return Vec::new();
        }
        found
    }

    /// Hears the orders, unless a file that may be finished in a moment lies in an outbox; and what the
    /// last sweep says of requests.
    pub(super) fn hear(
        &mut self,
        orders: &[String],
        moment: Moment,
        pass: &mut Pass,
    ) -> Result<(), SpoolError> {
        if std::mem::take(&mut self.looks_for_takes) {
            self.hear_takes(moment, pass)?;
        }
        let in_doubt = self.desk.intake.next_wakeup().is_some();
        let held_up = |since: u64| in_doubt && moment.mono < since.saturating_add(GRACE_MS);
        if orders.is_empty() || self.orders_since.is_some_and(held_up) {
            return Ok(());
        }
        self.orders_since = None;
        orders.chunks(BATCH_MAX).try_for_each(|names| self.hear_orders(names, moment, pass))
    }

    /// When orders that were held up are heard in any case, on the monotonic clock.
    pub(super) fn orders_due(&self) -> Option<u64> {
        self.orders_since.map(|since| since.saturating_add(GRACE_MS))
    }

    fn hear_orders(&mut self, names: &[String], moment: Moment, pass: &mut Pass) -> Result<(), SpoolError> {
        let mut batch = Batch::default();
        let mut heard = Vec::new();
        for name in names {
            let order = match orders::read(&self.root, name, moment.utc) {
                Ok(Some(order)) => order,
                Ok(None) => continue,
                Err(error) => {
                    self.put_aside(name, &error);
                    continue;
                }
            };
            // One that is known was committed by a process that ended before it removed the file.
            if !self.desk.state.has_order(&order.id) {
                let told = Told { order: Some(&order.id), event: &order.event };
                let record = self.judge_event(told, moment);
                self.take_down(&mut batch, record, moment);
            }
            heard.push(name);
        }
        self.commit(batch, pass)?;
        for name in heard {
            if let Err(error) = orders::remove(&self.root, name) {
                tracing::warn!(%name, error = %chain(&error), "an order that was heard cannot be removed; it counts once");
            }
        }
        Ok(())
    }

    fn put_aside(&self, name: &str, error: &NoOrder) {
        match error {
            NoOrder::Unfit(why) => match orders::put_aside(&self.root, name) {
                Ok(()) => {
                    tracing::warn!(%name, why, "not an order; it was moved to .settled/orders/unreadable");
                }
                Err(error) => {
                    tracing::warn!(%name, why, error = %chain(&error), "not an order, and it cannot be moved away");
                }
            },
            NoOrder::Young(why) => tracing::debug!(%name, why, "an order may still be written"),
            // An I/O error says nothing about the order.
            NoOrder::Io(error) => {
                tracing::warn!(%name, error = %chain(error), "an order cannot be read; it is tried again");
            }
        }
    }

    /// Records that the requests that have left their inboxes are taken.
    fn hear_takes(&mut self, moment: Moment, pass: &mut Pass) -> Result<(), SpoolError> {
        let spool = &self.spool;
        let has_left = |(key, request): (&ReviewKey, &crate::untaken::Delivered)| match spool.has_left(
            &request.mailbox,
            &request.file,
            request.seq,
        ) {
            Ok(left) => left.then(|| key.clone()),
            Err(error) => {
                tracing::warn!(review = %key, error = %chain(&error), "whether its request was taken cannot be seen; it is tried again");
                None
            }
        };
        let taken: Vec<ReviewKey> = self.desk.untaken.iter().filter_map(has_left).collect();
        let mut batch = Batch::default();
        for key in taken {
            let event = Event::Taken(Which::of(&key));
            match self.judge_event(Told { order: None, event: &event }, moment) {
                record @ Record::Happened(_) => self.take_down(&mut batch, record, moment),
                // Nobody asked, so nobody waits for the answer; the next sweep would say it again.
                record @ (Record::Declined { .. }
                | Record::Accepted(_)
                | Record::Duplicate { .. }
                | Record::Refused { .. }) => {
                    tracing::debug!(review = %key, ?record, "its request has left the inbox, which changes nothing");
                }
            }
        }
        self.commit(batch, pass)
    }

    /// Ends every wait whose deadline has come. What lies finished in an outbox has been judged before:
    /// whoever answered in time is heard, however late the daemon looks.
    pub fn keep_deadlines(&mut self, moment: Moment) -> Result<Pass, SpoolError> {
        let mut batch = Batch::default();
        while let Some(record) =
            review::due(&self.desk.state, &self.desk.policy, moment.utc, &mut clock::new_message_id)
        {
            self.take_down(&mut batch, record, moment);
        }
        let mut pass = Pass::default();
        self.commit(batch, &mut pass)?;
        Ok(pass)
    }

    /// When the next wait is over, by the time of day.
    pub fn next_deadline(&self) -> Option<DateTime<Utc>> {
        self.desk.state.next_deadline().map(|(at, _)| at)
    }

    fn judge_event(&self, told: Told<'_>, moment: Moment) -> Record {
        review::hear(&self.desk.state, &self.desk.policy, told, moment.utc, &mut clock::new_message_id)
    }

    /// Adds what was decided to the batch, and to the state, so that the next is decided after it.
    fn take_down(&mut self, batch: &mut Batch, record: Record, moment: Moment) {
        let seq = self.spool.next_seq() + batch.drafts.len() as u64;
        let Desk { state, names, agents, .. } = &mut self.desk;
        let outgoing = Outgoing { seq, moment, state, agents };
        batch.drafts.push(draft::of_event(&record, &outgoing, names));
        review::apply(state, &record, moment.utc);
        batch.records.push(record);
    }
}
