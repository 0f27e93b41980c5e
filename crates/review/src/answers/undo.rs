//! What a record is about to change, as it was before: so that a batch can be judged one message after
//! the other, each on the state the one before it leaves, and be taken back whole if the ledger does
//! not take it. Costs a copy of what one record touches, never of the state.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use message_schema::id::{AgentName, ConversationId, MessageId, PrNumber};

use crate::answers::apply::requested;
use crate::parts::admission::{AcceptedMessage, Notices};
use crate::parts::open_pair::OpenPair;
use crate::parts::pulls::PullsOfNumber;
use crate::parts::rate::MinuteCounts;
use crate::parts::review::Review;
use crate::parts::spending::Spending;
use crate::parts::state::State;
use crate::words::event::Event;
use crate::words::key::{ReviewKey, TaskId};
use crate::words::record::{
    Accepted, DaemonMessage, EventRecord, Happened, Judgement, Notice, Record, RefusedMessage,
    ReviewStep,
};
use crate::words::task::Task;
use pair_machine::PairId;

/// The touched parts of a state, each by its key; `None` where there was nothing.
#[derive(Debug, Default)]
pub struct Undo {
    accepted: u64,
    reviews: Vec<(ReviewKey, Option<Review>)>,
    messages: Vec<((AgentName, MessageId), Option<AcceptedMessage>)>,
    conversations: Slots<ConversationId, BTreeSet<Arc<ReviewKey>>>,
    exchanged: Slots<(AgentName, AgentName), VecDeque<DateTime<Utc>>>,
    notices: Slots<AgentName, Notices>,
    rate: Slots<AgentName, MinuteCounts>,
    pulls: Slots<PrNumber, PullsOfNumber>,
    pairs: Slots<PairId, OpenPair>,
    tasks: Slots<TaskId, Task>,
    /// Ids that were not known.
    daemon_ids: Vec<MessageId>,
    orders: Vec<MessageId>,
    spending: Option<Spending>,
}

type Slots<K, V> = Vec<(K, Option<V>)>;

impl Undo {
    /// What `record` will change in the state, as it is now. To be taken before the record is applied.
    pub fn of(state: &State, record: &Record) -> Self {
        let mut undo = Self {
            accepted: state.admission.accepted,
            ..Self::default()
        };
        match record {
            Record::Judged(Judgement::Accepted(accepted)) => undo.accepted(state, accepted),
            Record::Judged(Judgement::Duplicate(_)) => {}
            Record::Judged(Judgement::Refused(refused)) => undo.refused(state, refused),
            Record::Event(EventRecord::Happened(happened)) => undo.happened(state, happened),
            Record::Event(EventRecord::Declined(declined)) => {
                undo.order(state, declined.order.as_ref());
            }
        }
        undo
    }

    /// Makes the state what it was. Undone in the reverse of the order in which records were applied.
    pub fn revert(self, state: &mut State) {
        let admission = &mut state.admission;
        admission.accepted = self.accepted;
        for ((sender, id), before) in self.messages {
            let of_sender = admission.known.entry(sender.clone()).or_default();
            restore(of_sender, vec![(id, before)]);
            if of_sender.is_empty() {
                admission.known.remove(&sender);
            }
        }
        restore(&mut admission.pairs, self.exchanged);
        restore(&mut admission.notices, self.notices);
        restore(&mut admission.rate.0, self.rate);
        for id in &self.daemon_ids {
            admission.daemon_ids.remove(id);
        }
        for id in &self.orders {
            state.orders.remove(id);
        }
        restore(&mut state.conversations, self.conversations);
        restore(&mut state.pulls.0, self.pulls);
        restore(&mut state.pairs, self.pairs);
        restore(&mut state.tasks, self.tasks);
        if let Some(spending) = self.spending {
            state.spending = spending;
        }
        for (key, before) in self.reviews {
            state.reviews.put_back(&key, before);
        }
    }

    fn accepted(&mut self, state: &State, accepted: &Accepted) {
        let Accepted {
            from,
            id,
            to,
            conversation,
            step,
            ..
        } = accepted;
        let admission = &state.admission;
        let known = admission.known.get(from).and_then(|ids| ids.get(id));
        self.messages
            .push(((from.clone(), id.clone()), known.cloned()));
        save(&mut self.rate, &admission.rate.0, from);
        for to in to {
            let pair = (from.clone(), to.clone());
            save(&mut self.exchanged, &admission.pairs, &pair);
        }
        if let Some(conversation) = conversation {
            save(&mut self.conversations, &state.conversations, conversation);
        }
        if let Some(step) = step {
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
            self.letters(state, &cost.letters);
            self.step(state, &cost.step);
        }
    }

    fn happened(&mut self, state: &State, happened: &Happened) {
        self.order(state, happened.order.as_ref());
        match &happened.event {
            Event::Pull(event) => {
                save(&mut self.pulls, &state.pulls.0, &event.pr.to_canonical());
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
        self.letters(state, &happened.letters);
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

    fn letters(&mut self, state: &State, letters: &[DaemonMessage]) {
        letters
            .iter()
            .for_each(|letter| self.daemon_id(state, &letter.id));
    }

    fn daemon_id(&mut self, state: &State, id: &MessageId) {
        if !state.admission.daemon_ids.contains(id) {
            self.daemon_ids.push(id.clone());
        }
    }

    fn order(&mut self, state: &State, order: Option<&MessageId>) {
        self.orders
            .extend(order.filter(|id| !state.orders.contains(*id)).cloned());
    }
}

fn save<K: Ord + Clone, V: Clone>(slots: &mut Slots<K, V>, map: &BTreeMap<K, V>, key: &K) {
    slots.push((key.clone(), map.get(key).cloned()));
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
