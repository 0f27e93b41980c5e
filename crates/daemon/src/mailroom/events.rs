//! Handles everything besides messages: orders, requests that leave their inbox, deadlines. The rules judge each, and
//! the ledger commits it like a batch of messages.

use std::collections::VecDeque;
use std::ffi::OsString;

use chrono::{DateTime, Utc};
use judgement::RequestFile;
use message_schema::id::MessageId;
use review::{Deadline, Event, EventRecord, ReportedEvent, ReviewKey, Which};
use spool::{Mailbox, SpoolError};
use workspace::clock::{self, Moment};
use workspace::orders::{self, NoOrder};
use workspace::untaken_requests::Delivered;

use super::{HostChangeError, Mailroom, Pass};
use crate::batch::OpenBatch;
use crate::fairness::DueDeadline;
use crate::step::{BeforeListing, StepEnd};
use crate::sweeping::OutboxStep;
use workspace::error::chain;

/// The most orders that are committed together.
const BATCH_MAX: usize = 64;

/// Collects the files that are not orders, so that a pass logs them in one line.
#[derive(Default)]
struct Unfit {
    moved: UnfitFiles,
    /// The files that could not be moved aside.
    stuck: UnfitFiles,
}

/// Counts the files and keeps the first one, with the reason it is not an order.
#[derive(Default)]
struct UnfitFiles {
    count: usize,
    first: Option<(OsString, String)>,
}

impl Unfit {
    fn log(&self) {
        if let Some((name, why)) = &self.moved.first {
            let name = name.display();
            match self.moved.count {
                1 => {
                    tracing::warn!(%name, why, "not an order; moved it to .settled/orders/unreadable");
                }
                files => {
                    tracing::warn!(files, first = %name, why, "not orders; moved them to .settled/orders/unreadable");
                }
            }
        }
        if let Some((name, why)) = &self.stuck.first {
            let (name, files) = (name.display(), self.stuck.count);
            tracing::warn!(files, first = %name, why, "not orders, and could not move them aside");
        }
    }
}

impl UnfitFiles {
    fn add(&mut self, name: OsString, why: String) {
        self.count += 1;
        self.first.get_or_insert((name, why));
    }
}

impl Mailroom {
    /// Lists the directory of orders, then the outboxes; returns the orders whose earlier files have all been listed.
    pub(super) fn find_orders(
        &mut self,
        moment: Moment,
        before: &mut BeforeListing<'_>,
    ) -> Vec<OsString> {
        let sweep = self.next_sweep();
        let Some(listed) = self.waits.list_orders(&self.root, sweep, moment) else {
            return Vec::new();
        };
        let swept = self.sweep_on(listed.1, before);
        self.waits.swept_before(listed, swept, moment)
    }

    /// Processes the orders whose turn it is. If the step ends at some time, it processes at most one batch until then, and the
    /// rest in later passes: a backlog of orders holds up no mail.
    pub(super) fn process_orders(
        &mut self,
        orders: Vec<OsString>,
        end: StepEnd,
        moment: Moment,
        pass: &mut Pass,
    ) -> Result<(), SpoolError> {
        let mut orders = VecDeque::from(orders);
        let mut unfit = Unfit::default();
        let mut done = Ok(());
        while done.is_ok() && !orders.is_empty() {
            done = self.process_some(&mut orders, end, &mut unfit, moment, pass);
            if end.is_limited() {
                break;
            }
        }
        unfit.log();
        done?;
        let intake = &self.docket.intake;
        self.waits.keep_rest(orders.into(), intake);
        Ok(())
    }

    /// Takes a batch of orders from the front and commits it; one at least, however soon the step ends.
    fn process_some(
        &mut self,
        orders: &mut VecDeque<OsString>,
        end: StepEnd,
        unfit: &mut Unfit,
        moment: Moment,
        pass: &mut Pass,
    ) -> Result<(), SpoolError> {
        let mut batch = OpenBatch::default();
        let mut processed = Vec::new();
        for n in 0..BATCH_MAX {
            if n > 0 && end.has_come() {
                break;
            }
            let Some(name) = orders.pop_front() else {
                break;
            };
            let order = match orders::read(&self.root, &name, moment.utc) {
                Ok(Some(order)) => order,
                Ok(None) => continue,
                Err(error) => {
                    self.put_aside(name, error, unfit);
                    continue;
                }
            };
            // A known order was committed by a process that ended before it removed the file.
            if let Event::Host(change) = &order.event {
                let (known, id) = (self.state().has_order(&order.id), Some(&order.id));
                if !known {
                    self.commit(std::mem::take(&mut batch), moment, pass)?;
                    if let Err(refused) = self.change_hosts(change, id, moment) {
                        let HostChangeError::Spool(error) = refused else {
                            self.put_aside(name, NoOrder::Unfit(refused.to_string()), unfit);
                            continue;
                        };
                        return Err(error);
                    }
                    // A later order may wait for a restart, and the command that wrote this one waits until its file is
                    // gone.
                    processed.push(name);
                    self.remove_orders(&mut processed);
                    continue;
                }
            } else if !self.state().has_order(&order.id) {
                let record = self.judge_event(&order.event, Some(&order.id), moment);
                self.add(&mut batch, record, moment);
            }
            processed.push(name);
        }
        self.commit(batch, moment, pass)?;
        self.remove_orders(&mut processed);
        Ok(())
    }

    /// Removes orders that the ledger has.
    fn remove_orders(&self, processed: &mut Vec<OsString>) {
        for name in processed.drain(..) {
            if let Err(error) = orders::remove(&self.root, &name) {
                tracing::warn!(name = %name.display(), error = %chain(&error), "cannot remove an order that is in the ledger; it counts once");
            }
        }
    }

    fn put_aside(&self, name: OsString, error: NoOrder, unfit: &mut Unfit) {
        match error {
            NoOrder::Unfit(why) => match orders::put_aside(&self.root, &name) {
                Ok(()) => unfit.moved.add(name, why),
                Err(error) => unfit.stuck.add(name, format!("{why}; {}", chain(&error))),
            },
            NoOrder::Young(why) => {
                tracing::debug!(name = %name.display(), why, "an order may be incomplete; will read it again");
            }
            // An I/O error says nothing about the order.
            NoOrder::Io(error) => {
                tracing::warn!(name = %name.display(), error = %chain(&error), "cannot read an order; will retry");
            }
        }
    }

    /// Records a take for each request that has left its inbox.
    pub(super) fn record_takes(
        &mut self,
        moment: Moment,
        pass: &mut Pass,
    ) -> Result<(), SpoolError> {
        let mut presence = self.spool.presence(&mut self.presence, moment.spool());
        let alerts = &mut self.docket.alerts;
        let mut has_left = |key: &ReviewKey, request: &Delivered| {
            presence.has_left(&request.mailbox, &request.file, request.seq).unwrap_or_else(|error| {
                if !alerts.raise_unreadable(&error) {
                    tracing::warn!(review = %key, error = %chain(&error), "cannot tell whether the request was taken; will retry");
                }
                false
            })
        };
        let homes = self.spool.homes();
        let is_here = |request: &Delivered| match &request.mailbox {
            Mailbox::Inbox(agent) | Mailbox::DeadLetter(agent) => homes.has(agent),
            Mailbox::Packets(_) | Mailbox::PullRequest(_) => true,
        };
        let untaken = self.docket.untaken.iter();
        let taken = untaken.filter(|(key, requests)| {
            requests
                .iter()
                .any(|request| is_here(request) && has_left(key, request))
        });
        let taken: Vec<ReviewKey> = taken.map(|(key, _)| key.clone()).collect();
        presence.remember();
        let mut batch = OpenBatch::default();
        for key in taken {
            let Some(review) = self.state().review(&key) else {
                continue;
            };
            let event = Event::Taken(Which::at_work(&key, review.reviewer(&key)));
            match self.judge_event(&event, None, moment) {
                record @ EventRecord::Happened(_) => self.add(&mut batch, record, moment),
                // Nobody asked, so nobody waits for the answer, and the next sweep would repeat it.
                EventRecord::Declined(declined) => {
                    tracing::debug!(review = %key, ?declined, "its request has left the inbox, which changes nothing");
                }
            }
        }
        self.commit(batch, moment, pass)
    }

    /// Ends every wait whose deadline came by `until`, an instant in the past, after it has recorded the requests that
    /// left their inbox as taken. The caller first judges the finished files of the outboxes: an answer that came in
    /// time counts, however late the daemon looks.
    pub fn keep_deadlines(
        &mut self,
        until: DateTime<Utc>,
        moment: Moment,
    ) -> Result<Pass, SpoolError> {
        let mut pass = Pass::default();
        self.record_takes(moment, &mut pass)?;
        let due = self.state().deadlines();
        let due = due.take_while(|(at, _)| *at <= until);
        let due: Vec<ReviewKey> = due.map(|(_, key)| key.clone()).collect();
        self.end_waits(&due, moment, &mut pass)?;
        Ok(pass)
    }

    /// Ends the waits whose deadline has come, if it is their turn.
    pub fn keep_deadlines_in_turn(&mut self, moment: Moment) -> Result<Pass, SpoolError> {
        let mut pass = Pass::default();
        let due = self.due_deadlines(moment);
        let mut step = OutboxStep {
            spool: &mut self.spool,
            docket: &mut self.docket,
            shared: self.shared.as_ref(),
            end: self.sweeping.step_end(),
            before: &mut |_, _| (),
        };
        let in_turn = self.waits.deadlines_in_turn(due, &mut step, moment);
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
        let state = self.state();
        let due = state.deadlines_with_reviewers();
        due.take_while(|(at, ..)| *at <= moment.utc)
            .filter(|(_, review, _)| self.may_fire(review, moment))
            .map(|(at, review, reviewer)| DueDeadline {
                at,
                parties: [review.author.clone(), reviewer.clone()],
                review: review.clone(),
            })
            .collect()
    }

    /// Ends the waits of these reviews; the caller has recorded the takes. A take, or the end of another of these
    /// waits, may have given a review more time.
    pub(super) fn end_waits(
        &mut self,
        due: &[ReviewKey],
        moment: Moment,
        pass: &mut Pass,
    ) -> Result<(), SpoolError> {
        for some in due.chunks(BATCH_MAX) {
            let mut batch = OpenBatch::default();
            for key in some {
                let Some(which) = self.deadline_due(key, moment) else {
                    continue;
                };
                let event = Event::Deadline {
                    review: key.clone(),
                    which,
                };
                let record = self.marked_away(self.judge_event(&event, None, moment));
                self.add(&mut batch, record, moment);
            }
            self.commit(batch, moment, pass)?;
        }
        Ok(())
    }

    /// The deadline of this review, if it has come and this host may fire it.
    fn deadline_due(&self, key: &ReviewKey, moment: Moment) -> Option<Deadline> {
        let (at, which) = self.state().review(key)?.deadline()?;
        (at <= moment.utc && self.may_fire(key, moment)).then_some(which)
    }

    /// Judges an event, and with it the id of the order that reports it, if one does.
    pub(super) fn judge_event(
        &self,
        event: &Event,
        order: Option<&MessageId>,
        moment: Moment,
    ) -> EventRecord {
        let reported = ReportedEvent { order, event };
        let judge = self.docket.tentative.judge(self.judged_at(moment).utc);
        judge.event(reported, &mut clock::new_message_id)
    }

    /// Judges an event and commits it alone.
    pub(super) fn record_event(
        &mut self,
        event: &Event,
        order: Option<&MessageId>,
        moment: Moment,
    ) -> Result<(), SpoolError> {
        let record = self.judge_event(event, order, moment);
        let mut batch = OpenBatch::default();
        self.add(&mut batch, record, moment);
        self.commit(batch, moment, &mut Pass::default())
    }

    /// Adds a decision to the batch.
    pub(super) fn add(&mut self, batch: &mut OpenBatch, record: EventRecord, moment: Moment) {
        self.add_with_request(batch, record, None, moment);
    }

    /// Adds a decision whose record may move a review, with the open request for its new reviewer.
    pub(super) fn add_with_request(
        &mut self,
        batch: &mut OpenBatch,
        record: EventRecord,
        request: Option<RequestFile>,
        moment: Moment,
    ) {
        let seq = batch.next_seq(self.spool.next_seq());
        let place = (seq, self.judged_at(moment).utc);
        let (draft, record) = self.docket.tentative.add_event(record, request, place);
        batch.add(draft, record);
    }
}
