//! The only code that changes the state: one record after the other, the same at start and while running.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use message_schema::envelope::{MessageType, Priority, ReviewKind};
use message_schema::id::MessageId;
use message_schema::spend::Spend;
use pair_machine::{PairReport, PairStatus, PairStep};
use review_words::event::Event;
use review_words::failure::FailedStart;
use review_words::key::ReviewKey;
use review_words::phase::{Closer, Invocation, Phase};
use review_words::reading::ReadingState;
use review_words::record::{
    Accepted, DaemonMessage, EventRecord, Generation, Happened, Judgement, Record, RefusedMessage,
    ReviewStep,
};

use crate::parts::open_pair::OpenPair;
use crate::parts::review::Review;
use crate::parts::state::{State, row_of_order};

/// Adds one record to the state. It cannot fail, because the rules have decided every record of the ledger.
pub fn apply(state: &mut State, record: &Record, at: DateTime<Utc>) {
    match record {
        Record::Judged(Judgement::Accepted(accepted)) => apply_accepted(state, accepted, at),
        Record::Judged(Judgement::Duplicate(_)) => {}
        Record::Judged(Judgement::Refused(refused)) => apply_refused(state, refused, at),
        Record::Event(EventRecord::Happened(happened)) => apply_event(state, happened, at),
        Record::Event(EventRecord::Declined(declined)) => {
            note_order(state, declined.order.as_ref());
        }
    }
}

fn apply_accepted(state: &mut State, accepted: &Accepted, at: DateTime<Utc>) {
    let Accepted {
        from,
        id,
        digest,
        to,
        kind,
        conversation,
        step,
        ..
    } = accepted;
    if let Some(step) = step {
        apply_step(state, step, closer(*kind), at);
    }
    let review = step.as_ref().map(|step| step.review.clone());
    if let (Some(conversation), Some(key)) = (conversation, &review) {
        state.conversations.note(conversation, key);
    }
    state.admission.rate.count(from, at);
    state.admission.accept(from, id, *digest, review);
    if !kind.is_review() {
        to.iter().for_each(|to| state.admission.count(from, to, at));
    }
    if let Some(key) = requested(accepted) {
        let pairs = state.pairs.values_mut().filter(|pair| pair.is_theirs(key));
        pairs.for_each(|pair| {
            pair.asked_for.insert(key.clone());
        });
    }
}

/// Returns the review that an accepted message requests.
pub(super) fn requested(accepted: &Accepted) -> Option<&ReviewKey> {
    let is_request = accepted.kind == MessageType::Review(ReviewKind::Request);
    accepted
        .step
        .as_ref()
        .filter(|_| is_request)
        .map(|step| &step.review)
}

fn apply_refused(state: &mut State, refused: &RefusedMessage, at: DateTime<Utc>) {
    state.admission.rate.count(&refused.from, at);
    state
        .admission
        .record_notice(&refused.from, &refused.notice, at);
    if let Some(cost) = &refused.cost {
        remember_ids(state, &cost.messages);
        apply_step(state, &cost.step, Closer::Daemon, at);
    }
}

/// Returns the side that ends an invocation with a message of this type.
fn closer(kind: MessageType) -> Closer {
    if kind.is_terminal_response() {
        Closer::Reviewer
    } else {
        Closer::Daemon
    }
}

fn apply_event(state: &mut State, happened: &Happened, at: DateTime<Utc>) {
    note_order(state, happened.order.as_ref());
    if let Event::Pull(event) = &happened.event {
        state.pulls.note(event);
    }
    if let Event::Spent(report) = &happened.event {
        state.spending.note(report, at);
    }
    if let (Event::Pair(news), Some(status)) = (&happened.event, happened.pair) {
        // Before its status changes, which says whose run it was.
        if let Some((agent, spend)) = state.spent_in_pair(news) {
            state.spending.add(&agent, spend, at);
        }
        apply_pair(state, news, status, at);
    }
    remember_ids(state, &happened.messages);
    for step in &happened.steps {
        let reviewer = state
            .review(&step.review)
            .map(|review| review.reviewer(&step.review).clone());
        apply_step(state, step, Closer::Daemon, at);
        if let (Event::Failed { failure, .. }, Some(reviewer)) = (&happened.event, reviewer) {
            let note = |review: &mut Review| {
                review.failed = Some(FailedStart {
                    reviewer,
                    at,
                    failure: failure.clone(),
                });
            };
            state.reviews.change(&step.review, None, note);
        }
    }
    for task in happened.handoff.iter().flat_map(|handoff| &handoff.tasks) {
        state.tasks.insert(task.id.clone(), task.clone());
    }
}

/// Applies a step of a pair; removes a pair that is over and cannot be resumed.
fn apply_pair(state: &mut State, news: &PairReport, status: PairStatus, at: DateTime<Utc>) {
    let is_over = status.pair.run().is_terminal() && !status.pair.can_resume();
    if let PairStep::Opened(setup) = &news.what {
        let open = OpenPair {
            setup: (**setup).clone(),
            opened_at: at,
            status,
            asked_for: BTreeSet::new(),
        };
        state.pairs.insert(news.pair.clone(), open);
    } else if is_over {
        state.pairs.remove(&news.pair);
    } else if let Some(open) = state.pairs.get_mut(&news.pair) {
        open.status = status;
    }
}

fn note_order(state: &mut State, order: Option<&MessageId>) {
    if let Some(id) = order {
        state.orders.put(row_of_order(id), []);
    }
}

fn remember_ids(state: &mut State, messages: &[DaemonMessage]) {
    messages
        .iter()
        .for_each(|message| state.admission.add_daemon_id(&message.id));
}

/// A step of an unknown review that opens nothing cannot come from `decide` and is skipped.
fn apply_step(state: &mut State, step: &ReviewStep, closer: Closer, at: DateTime<Utc>) {
    let make = step
        .opens
        .map(|generation| first_review(generation, step, at));
    state.reviews.change(&step.review, make, |review| {
        review.apply_step(step, closer, at);
    });
}

impl Review {
    /// Returns the review after a daemon's step, so that a message about the step can state its result before the step
    /// is in the ledger.
    pub fn after(&self, step: &ReviewStep, at: DateTime<Utc>) -> Self {
        let mut review = self.clone();
        review.apply_step(step, Closer::Daemon, at);
        review
    }

    fn apply_step(&mut self, step: &ReviewStep, closer: Closer, at: DateTime<Utc>) {
        if let Some(generation) = step.opens {
            // A person who reopens a review opens the generation, and its first request fixes the rounds.
            if generation.number != self.generation {
                self.generation = generation.number;
                self.granted = 0;
                self.spent = Spend::default();
                self.first_round = step.round;
                // A review that a person gives back keeps its commit: it is the same work.
                if !step.given_back {
                    self.commit = None;
                }
            }
            self.rounds = generation.rounds;
        }
        self.granted += step.granted;
        if step.given_back {
            self.given_back.push(at);
        }
        if let Some(reviewer) = &step.reassigned_to {
            self.reassigned_to = (*reviewer != step.review.reviewer).then(|| reviewer.clone());
            self.reading.forget_reader();
        }
        self.spent = self.spent.plus(step.spent.unwrap_or_default());
        if let Some(reading) = &step.reading {
            self.reading.add(reading);
        }
        if step.fixes.is_some() {
            self.fixes.clone_from(&step.fixes);
        }
        if step.gives_up_task {
            self.fixes = None;
        }
        let is_asked = |it: &&Invocation| {
            step.phase
                .invocation()
                .is_none_or(|new| new.request != it.request)
        };
        let past = self
            .phase
            .invocation()
            .filter(is_asked)
            .map(|before| before.request.clone());
        self.past_requests.extend(past);
        if let Phase::Reviewing(open) = &step.phase {
            self.priority = open.priority;
            self.closed_by = None;
            // A declared head is newer than any commit reported before it.
            if open.head != self.commit {
                self.commit = None;
            }
            // Replacing an open request, or counting its turns, is no new review.
            self.asked += u32::from(self.phase.invocation().is_none());
        } else if self.phase.invocation().is_some() {
            self.closed_by = Some(closer);
        }
        if self.phase.word() != step.phase.word() || self.round != step.round {
            self.since = at;
            // An escalation keeps the failure before it: the person who decides needs to know it.
            if !matches!(step.phase, Phase::Escalated(_)) {
                self.failed = None;
            }
        }
        self.round = step.round;
        self.phase = step.phase.clone();
        self.threads.extend(
            step.threads
                .iter()
                .map(|(id, thread)| (id.clone(), thread.clone())),
        );
        if step.commit.is_some() {
            self.commit.clone_from(&step.commit);
        }
    }
}

/// Makes a review from its first step.
fn first_review(generation: Generation, step: &ReviewStep, at: DateTime<Utc>) -> Review {
    Review {
        generation: generation.number,
        rounds: generation.rounds,
        granted: 0,
        first_round: step.round,
        round: step.round,
        phase: step.phase.clone(),
        since: at,
        closed_by: None,
        threads: BTreeMap::new(),
        commit: None,
        priority: Priority::P2,
        asked: u32::from(step.phase.invocation().is_some()),
        given_back: Vec::new(),
        fixes: None,
        reassigned_to: None,
        failed: None,
        spent: Spend::default(),
        past_requests: Vec::new(),
        reading: ReadingState::default(),
    }
}
