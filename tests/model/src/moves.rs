//! The steps from a state: every input that fits and every event, decided by the rules. `invariants` judges each step.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chrono::{DateTime, Utc};
use judgement::Judge;
use message_schema::Code;
use message_schema::id::PrNumber;
use review::{
    Costs, Decision, Event, EventRecord, Judgement, Phase, Posted, PullEvent, Record, Refusal,
    ReportedEvent, ReviewKey, State, apply,
};

use crate::bounds::Bounds;
use crate::edge::{Edge, Tally, What};
use crate::events::events;
use crate::inputs::{AUTHOR, Input, Inputs, Line as ReviewLine, agent, start};
use crate::invariants::{self, Broken, Invariant, Moved};
use crate::state::{Line, Node, TrackedReview, likeness};

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// The state from which a walk makes its steps.
pub(crate) struct Place<'a> {
    /// The bounds.
    pub(crate) bounds: &'a Bounds,
    /// The messages.
    pub(crate) inputs: &'a Inputs,
    /// The counters.
    pub(crate) tally: &'a Tally,
    /// The state.
    pub(crate) node: &'a Node,
    /// The state in the form that the rules take.
    pub(crate) state: State,
    /// The result of a refusal here, by its cost.
    costs: BTreeMap<Option<(ReviewKey, &'static str)>, Option<Node>>,
    /// The codes of refusals here.
    codes: BTreeSet<Code>,
}

impl<'a> Place<'a> {
    /// Prepares the steps from a state.
    pub(crate) fn new(
        bounds: &'a Bounds,
        inputs: &'a Inputs,
        tally: &'a Tally,
        node: &'a Node,
    ) -> Self {
        Self {
            bounds,
            inputs,
            tally,
            node,
            state: node.state(),
            costs: BTreeMap::new(),
            codes: BTreeSet::new(),
        }
    }

    /// Adds every step from here.
    pub(crate) fn edges(mut self, edges: &mut Vec<Edge>) {
        if self.node.waiting {
            return crate::crash::edges(&self, edges);
        }
        let holds = invariants::of_state(self.node, &self.state, &self.bounds.policy);
        if let Err(broken) = holds.and_then(|()| crate::advice::check(&self)) {
            let next = Box::new(Node {
                broken: Some(broken),
                ..self.node.clone()
            });
            return edges.push(Edge {
                what: What::Looked,
                next,
            });
        }
        for line in ReviewLine::all(self.bounds) {
            self.post_all(line, edges);
        }
        for (event, at) in events(self.bounds, self.node) {
            edges.extend(self.tell(event, at));
        }
        self.tally.meet(self.node, self.codes);
    }

    fn post_all(&mut self, line: ReviewLine, edges: &mut Vec<Edge>) {
        let key = line.key();
        // The review that was opened with this reviewer, or reassigned to it after another's failure.
        let mut reviews = self.node.reviews.iter();
        let tracked = reviews
            .find(|(of, tracked)| of.pr == key.pr && tracked.review.reviewer(of) == &key.reviewer)
            .map(|(_, tracked)| tracked);
        let round = tracked.map_or(1, |tracked| tracked.review.round);
        let hand = self.inputs.hand(self.bounds, line, round);
        let alike = self.alike(tracked);
        let is_open =
            tracked.is_some_and(|tracked| matches!(tracked.review.phase, Phase::Reviewing(_)));
        for input in &hand.full {
            // Without an open request the threads do not matter, so uniform responses represent all.
            let is_uniform = input.says.iter().all(|say| *say == input.says[0]);
            if (is_open || is_uniform) && self.fits(input, tracked, &alike) {
                edges.extend(self.post(input));
            }
        }
        for input in &hand.rest {
            // A stranger's request for an unknown pull request would open a review.
            let is_known = self.node.reviews.keys().any(|known| known.pr == key.pr);
            let is_authors = input.outbox == agent(AUTHOR);
            // Post odd responses and strangers' messages only if there is one pull request.
            let may_open = is_authors || (is_known && self.bounds.prs.len() == 1);
            if may_open && self.fits(input, tracked, &[]) {
                edges.extend(self.post(input));
            }
        }
    }

    /// For each slot: true if it cannot be distinguished from the one before.
    fn alike(&self, tracked: Option<&TrackedReview>) -> Vec<bool> {
        if !self.bounds.is_symmetric() {
            return Vec::new();
        }
        let threads: Vec<Option<u64>> = (0..self.bounds.slots.len())
            .map(|place| {
                let review = &tracked?.review;
                let (id, thread) = review
                    .threads
                    .iter()
                    .find(|(id, _)| is_in(id.as_str(), place))?;
                Some(likeness(review, id, thread))
            })
            .collect();
        (0..threads.len())
            .map(|place| place > 0 && threads[place] == threads[place - 1])
            .collect()
    }

    /// True if the message is to be posted here. Of messages that only swap indistinguishable threads, one is enough.
    fn fits(&self, input: &Input, tracked: Option<&TrackedReview>, alike: &[bool]) -> bool {
        let is_there = |place: usize| {
            tracked.is_some_and(|tracked| {
                tracked
                    .review
                    .threads
                    .keys()
                    .any(|id| is_in(id.as_str(), place))
            })
        };
        let is_within = input
            .says
            .iter()
            .enumerate()
            .all(|(place, say)| !say.needs_thread() || is_there(place));
        let is_first = alike.iter().enumerate().all(|(place, is_alike)| {
            !is_alike || input.says.is_empty() || input.says[place - 1] <= input.says[place]
        });
        is_within && is_first
    }

    fn post(&mut self, input: &Arc<Input>) -> Option<Edge> {
        let posted = Posted {
            outbox: &input.outbox,
            digest: input.digest,
            valid: &input.valid,
        };
        let what = || What::Posted(Arc::clone(input));
        match self.judge(&self.state, input.at).checked(posted) {
            Ok(Decision::Accept(accepted)) => {
                count(&self.tally.accepted);
                let key = accepted.step.as_ref()?.review.clone();
                let mut next = self.after(Judgement::Accepted(accepted), input.at);
                let answers = input.valid.envelope().kind.is_terminal_response();
                let before = self.node.reviews.get(&key);
                if let Some(tracked) = next.node.reviews.get_mut(&key) {
                    let is_same =
                        before.is_some_and(|b| b.review.generation == tracked.review.generation);
                    tracked.accepted = if is_same { tracked.accepted + 1 } else { 1 };
                }
                let moved = Moved::Accepted(input, &key);
                let judged = invariants::step(self.bounds, self.node, moved, &next.node);
                let judged = judged.and_then(|()| self.again(input, &next.state));
                if answers && let Some(tracked) = next.node.reviews.get_mut(&key) {
                    tracked.answered = tracked.review.round;
                }
                self.edge(what(), next.node, judged)
            }
            Ok(Decision::Duplicate(record)) => {
                let broken = Broken::new(
                    Invariant::DuplicatesAreInert,
                    format!("nothing was sent before {record:?}"),
                );
                self.edge(what(), self.node.clone(), Err(broken))
            }
            Err(refusal) => {
                count(&self.tally.refused);
                self.codes.insert(refusal.code());
                self.refuse(input, &refusal)
            }
        }
    }

    /// Returns the daemon's judge, which makes every step of the walk.
    pub(crate) fn judge<'s>(&'s self, state: &'s State, now: DateTime<Utc>) -> Judge<'s> {
        Judge {
            state,
            policy: &self.bounds.policy,
            now,
        }
    }

    /// The step of a refusal. The review does not see code and sentence, only the cost, so each cost is tried once per
    /// state.
    fn refuse(&mut self, input: &Arc<Input>, refusal: &Refusal) -> Option<Edge> {
        let costs = refusal.review.as_deref().map(|key| (key, refusal.costs));
        let place = costs.map(|(key, costs)| (key.clone(), word(costs)));
        let what = || What::Posted(Arc::clone(input));
        if let Some(known) = self.costs.get(&place) {
            return known.as_ref().map(|known| Edge {
                what: what(),
                next: Box::new(known.clone()),
            });
        }
        let judge = self.judge(&self.state, input.at);
        let ids = &mut crate::ids();
        let record = judge.refuse_checked(&input.outbox, refusal.code(), costs, ids);
        let next = self.after(Judgement::Refused(record), input.at).node;
        let costly = costs
            .filter(|(_, costs)| *costs != Costs::Nothing)
            .map(|(key, _)| key);
        let judged = invariants::step(self.bounds, self.node, Moved::Refused(costly), &next);
        let is_inert = costly.is_none() && judged.is_ok();
        let edge = if is_inert {
            None
        } else {
            self.edge(what(), next, judged)
        };
        self.costs
            .insert(place, edge.as_ref().map(|edge| (*edge.next).clone()));
        edge
    }

    /// Posts the same message again.
    fn again(&self, input: &Input, state: &State) -> Result<(), Broken> {
        let posted = Posted {
            outbox: &input.outbox,
            digest: input.digest,
            valid: &input.valid,
        };
        let broken = |why: String| Broken::new(Invariant::DuplicatesAreInert, why);
        match self.judge(state, input.at).checked(posted) {
            Ok(Decision::Duplicate(record)) => {
                let mut same = state.clone();
                apply(&mut same, &Judgement::Duplicate(record).into(), input.at);
                if same == *state {
                    Ok(())
                } else {
                    Err(broken("a duplicate changed the state".to_owned()))
                }
            }
            Ok(Decision::Accept(_)) => Err(broken("accepted a second time".to_owned())),
            Err(refusal) => Err(broken(format!(
                "the same bytes are refused: {}",
                refusal.code()
            ))),
        }
    }

    fn tell(&mut self, event: Event, at: DateTime<Utc>) -> Option<Edge> {
        let told = ReportedEvent {
            order: None,
            event: &event,
        };
        let record = self.judge(&self.state, at).event(told, &mut crate::ids());
        let is_person = matches!(event, Event::Person(_));
        match record {
            EventRecord::Happened(happened) => {
                let record = EventRecord::Happened(happened.clone());
                let mut next = self.after(record, at).node;
                if is_person {
                    next.decisions += 1;
                    for (key, tracked) in &mut next.reviews {
                        let before = self.node.reviews.get(key);
                        if before.is_some_and(|before| {
                            before.review.generation != tracked.review.generation
                        }) {
                            tracked.accepted = 0;
                        }
                    }
                }
                for finding in happened
                    .handoff
                    .iter()
                    .flat_map(|h| &h.tasks)
                    .flat_map(|task| &task.findings)
                {
                    let of = (finding.review.pr.clone(), finding.id.clone());
                    *next.dispatched.entry(of).or_default() += 1;
                }
                let judged =
                    invariants::step(self.bounds, self.node, Moved::Happened(&happened), &next);
                count(&self.tally.happened);
                self.edge(What::Heard(event), next, judged)
            }
            record @ EventRecord::Declined(_) => {
                count(&self.tally.declined);
                let next = self.after(record, at).node;
                let judged = invariants::step(self.bounds, self.node, Moved::Declined, &next);
                judged
                    .is_err()
                    .then(|| self.edge(What::Heard(event), next, judged))
                    .flatten()
            }
        }
    }

    /// The state after a record, and its node before it is normalized or counted.
    fn after(&self, record: impl Into<Record>, at: DateTime<Utc>) -> After {
        let record = record.into();
        let mut state = self.state.clone();
        apply(&mut state, &record, at);
        let past = |key: &ReviewKey| {
            self.node
                .reviews
                .get(key)
                .map_or((0, 0), |of| (of.accepted, of.answered))
        };
        let reviews = state.reviews().map(|(key, review)| {
            let (accepted, answered) = past(key);
            (
                key.clone(),
                TrackedReview {
                    review: review.clone(),
                    accepted,
                    answered,
                },
            )
        });
        let mut node = Node {
            reviews: reviews.collect(),
            pulls: BTreeMap::new(),
            tasks: state.tasks().cloned().collect(),
            dispatched: self.node.dispatched.clone(),
            decisions: self.node.decisions,
            waiting: self.bounds.crashes,
            broken: None,
            ledger: None,
        };
        if self.bounds.pulls {
            let prs = self.bounds.prs.iter();
            let prs = prs.map(|pr| PrNumber::new(*pr).expect("a number"));
            // The rest of a pull request's state is for people; the rules compare only the head in an event.
            node.pulls.extend(prs.filter_map(|pr| {
                let pull = state.pull(None, &pr)?;
                let event = PullEvent {
                    repo: None,
                    pr: pr.clone(),
                    action: pull.last,
                    author: pull.author,
                    head: None,
                };
                Some((pr, event))
            }));
        }
        // Normalize before the invariants compare, so that an untouched review equals itself.
        for tracked in node.reviews.values_mut() {
            tracked.review.since = start();
            tracked.review.failed = None;
            tracked
                .review
                .threads
                .values_mut()
                .for_each(|thread| thread.opened_in = 1);
        }
        if self.bounds.crashes {
            node.ledger = Some(Arc::new(Line {
                record,
                at,
                before: self.node.ledger.clone(),
            }));
        }
        After { state, node }
    }

    fn edge(&self, what: What, mut next: Node, judged: Result<(), Broken>) -> Option<Edge> {
        next.broken = judged.err();
        let is_beyond =
            next.generations() > self.bounds.generations || next.decisions > self.bounds.decisions;
        if is_beyond && next.broken.is_none() {
            count(&self.tally.cut);
            return None;
        }
        next.settle(self.bounds);
        Some(Edge {
            what,
            next: Box::new(next),
        })
    }
}

struct After {
    state: State,
    node: Node,
}

fn word(costs: Costs) -> &'static str {
    match costs {
        Costs::Nothing => "nothing",
        Costs::Attempt => "an attempt",
        Costs::Invocation => "the invocation",
    }
}

fn is_in(id: &str, place: usize) -> bool {
    crate::describe::NAMES[place].0 == id
}
