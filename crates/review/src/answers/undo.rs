//! The parts of the state that a record changes, saved before it. The daemon judges each message of a batch on the
//! state that the one before it leaves, and takes the whole batch back if the ledger does not accept it. The cost is a
//! copy of the parts that one record touches, never of the state.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use message_schema::id::{AgentName, MessageId};
use pair_machine::PairId;
use review_words::event::Event;
use review_words::key::{ReviewKey, TaskId};
use review_words::pulls::row_of_number;
use review_words::rate::MinuteCounts;
use review_words::record::{
    Accepted, DaemonMessage, EventRecord, Happened, Judgement, Notice, Record, RefusedMessage,
    ReviewStep,
};
use review_words::table::{RowKey, Table};
use review_words::task::Task;

use crate::answers::apply::requested;
use crate::parts::admission::{Counted, Notices, row_of_daemon_id, row_of_message};
use crate::parts::open_pair::OpenPair;
use crate::parts::review::Review;
use crate::parts::spending::Spending;
use crate::parts::state::{State, row_of_conversation, row_of_order};

/// The touched parts of a state, each by its key; `None` if there was nothing under the key.
#[derive(Debug, Default)]
pub struct Undo {
    accepted: u64,
    reviews: Vec<(ReviewKey, Option<Review>)>,
    messages: Rows,
    conversations: Rows,
    exchanged: Vec<((AgentName, AgentName), Counted)>,
    notices: Slots<AgentName, Notices>,
    rate: Slots<AgentName, MinuteCounts>,
    pulls: Rows,
    pairs: Slots<PairId, OpenPair>,
    tasks: Slots<TaskId, Task>,
    daemon_ids: Rows,
    orders: Rows,
    spending: Option<Spending>,
}

type Slots<K, V> = Vec<(K, Option<V>)>;

/// Rows, each with the value put for it since the last snapshot.
type Rows = Slots<RowKey, Box<[u8]>>;

impl Undo {
    /// Saves the parts of the state that `record` changes at this time. Call it before applying the record.
    pub fn of(state: &State, record: &Record, at: DateTime<Utc>) -> Self {
        let mut undo = Self {
            accepted: state.admission.accepted,
            ..Self::default()
        };
        match record {
            Record::Judged(Judgement::Accepted(accepted)) => undo.accepted(state, accepted, at),
            Record::Judged(Judgement::Duplicate(_)) => {}
            Record::Judged(Judgement::Refused(refused)) => undo.refused(state, refused),
            Record::Event(EventRecord::Happened(happened)) => undo.happened(state, happened),
            Record::Event(EventRecord::Declined(declined)) => {
                undo.order(state, declined.order.as_ref());
            }
        }
        undo
    }

    /// Restores the saved parts. Undo records in the reverse of the order in which they were applied.
    pub fn revert(self, state: &mut State) {
        let admission = &mut state.admission;
        admission.accepted = self.accepted;
        restore_rows(&mut admission.known, self.messages);
        for (pair, counted) in self.exchanged {
            admission.uncount(pair, counted);
        }
        restore(&mut admission.notices, self.notices);
        restore(&mut admission.rate.0, self.rate);
        restore_rows(&mut admission.daemon_ids, self.daemon_ids);
        restore_rows(&mut state.orders, self.orders);
        restore_rows(&mut state.conversations.0, self.conversations);
        restore_rows(&mut state.pulls.0, self.pulls);
        restore(&mut state.pairs, self.pairs);
        restore(&mut state.tasks, self.tasks);
        if let Some(spending) = self.spending {
            state.spending = spending;
        }
        for (key, before) in self.reviews {
            state.reviews.put_back(&key, before);
        }
    }

    fn accepted(&mut self, state: &State, accepted: &Accepted, at: DateTime<Utc>) {
        let Accepted {
            from,
            id,
            to,
            kind,
            conversation,
            step,
            ..
        } = accepted;
        let admission = &state.admission;
        save_row(
            &mut self.messages,
            &admission.known,
            row_of_message(from, id),
        );
        save(&mut self.rate, &admission.rate.0, from);
        // An hour of messages is too much to copy for every message.
        for to in to.iter().filter(|_| !kind.is_review()) {
            let pair = (from.clone(), to.clone());
            if self.exchanged.iter().all(|(known, _)| *known != pair) {
                let counted = admission.counted(&pair, at);
                self.exchanged.push((pair, counted));
            }
        }
        if let Some(step) = step {
            if let Some(conversation) = conversation {
                let row = row_of_conversation(conversation, &step.review);
                save_row(&mut self.conversations, &state.conversations.0, row);
            }
            self.step(state, step);
        }
        if let Some(key) = requested(accepted) {
            let pairs = state.pairs.iter().filter(|(_, pair)| pair.is_theirs(key));
            for (id, _) in pairs {
                save(&mut self.pairs, &state.pairs, id);
            }
        }
    }

    fn refused(&mut self, state: &State, refused: &RefusedMessage) {
        let admission = &state.admission;
        save(&mut self.rate, &admission.rate.0, &refused.from);
        save(&mut self.notices, &admission.notices, &refused.from);
        if let Notice::Sent { id, .. } = &refused.notice {
            self.daemon_id(state, id);
        }
        if let Some(cost) = &refused.cost {
            self.daemon_ids(state, &cost.messages);
            self.step(state, &cost.step);
        }
    }

    fn happened(&mut self, state: &State, happened: &Happened) {
        self.order(state, happened.order.as_ref());
        match &happened.event {
            Event::Pull(event) => {
                save_row(&mut self.pulls, &state.pulls.0, row_of_number(&event.pr));
            }
            Event::Pair(report) => {
                save(&mut self.pairs, &state.pairs, &report.pair);
                let spent = state.spent_in_pair(report);
                self.spending = spent.map(|_| state.spending.clone());
            }
            Event::Spent(_) => self.spending = Some(state.spending.clone()),
            Event::Deadline { .. }
            | Event::Taken(_)
            | Event::Turns { .. }
            | Event::Started(_)
            | Event::Failed { .. }
            | Event::Observed { .. }
            | Event::Ran { .. }
            | Event::Person(_)
            | Event::LedgerAccepted(_)
            | Event::SentDiffers(_)
            | Event::Host(_) => {}
        }
        self.daemon_ids(state, &happened.messages);
        for step in &happened.steps {
            self.step(state, step);
        }
        for task in happened.handoff.iter().flat_map(|handoff| &handoff.tasks) {
            save(&mut self.tasks, &state.tasks, &task.id);
        }
    }

    fn step(&mut self, state: &State, step: &ReviewStep) {
        let before = state.reviews.get(&step.review).cloned();
        self.reviews.push((step.review.clone(), before));
    }

    fn daemon_ids(&mut self, state: &State, messages: &[DaemonMessage]) {
        messages
            .iter()
            .for_each(|message| self.daemon_id(state, &message.id));
    }

    fn daemon_id(&mut self, state: &State, id: &MessageId) {
        let row = row_of_daemon_id(id);
        save_row(&mut self.daemon_ids, &state.admission.daemon_ids, row);
    }

    fn order(&mut self, state: &State, order: Option<&MessageId>) {
        if let Some(id) = order {
            save_row(&mut self.orders, &state.orders, row_of_order(id));
        }
    }
}

fn save<K: Ord + Clone, V: Clone>(slots: &mut Slots<K, V>, map: &BTreeMap<K, V>, key: &K) {
    slots.push((key.clone(), map.get(key).cloned()));
}

fn save_row<const KIND: u8>(rows: &mut Rows, table: &Table<KIND>, row: RowKey) {
    rows.push((row, table.put_before(&row)));
}

fn restore_rows<const KIND: u8>(table: &mut Table<KIND>, rows: Rows) {
    for (row, before) in rows.into_iter().rev() {
        table.put_back(row, before);
    }
}

fn restore<K: Ord, V>(map: &mut BTreeMap<K, V>, slots: Slots<K, V>) {
    for (key, before) in slots.into_iter().rev() {
        match before {
            Some(value) => {
                map.insert(key, value);
            }
            None => {
                map.remove(&key);
            }
        }
    }
}
