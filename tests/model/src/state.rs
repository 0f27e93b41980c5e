//! One state of a walk: the reviews as the rules keep them, and the little history that the invariants
//! speak of. Two states that differ only in what the rules never look at are one.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use message_schema::id::{FindingId, PrNumber, RepoPath};
use review::{PullEvent, Record, Resolution, Review, ReviewKey, State, Task, Thread};

use crate::bounds::Bounds;
use crate::describe::NAMES;
use crate::inputs::start;
use crate::invariants::Broken;

/// A review and what is remembered of its past.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Standing {
    /// The review.
    pub(crate) review: Review,
    /// Messages accepted in its generation.
    pub(crate) accepted: u32,
    /// The round of its last terminal response; 0 before the first.
    pub(crate) answered: u32,
}

/// A state of the walk.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// The reviews.
    pub(crate) reviews: BTreeMap<ReviewKey, Standing>,
    /// The last event of each pull request.
    pub(crate) pulls: BTreeMap<PrNumber, PullEvent>,
    /// The tasks handed off.
    pub(crate) tasks: Vec<Task>,
    /// How often each finding was handed off.
    pub(crate) dispatched: BTreeMap<(PrNumber, FindingId), u8>,
    /// Decisions of people so far.
    pub(crate) decisions: u8,
    /// Whether the last record is in the ledger and its mail is not delivered.
    pub(crate) waiting: bool,
    /// The invariant that the step to here broke.
    pub(crate) broken: Option<Broken>,
    /// The ledger on one way to here; only walks with crashes keep it, and it is no part of what
    /// makes two states the same.
    pub(crate) ledger: Option<Arc<Line>>,
}

/// A line of the ledger, and those before it.
#[derive(Debug)]
pub(crate) struct Line {
    /// The record.
    pub(crate) record: Record,
    /// When it was committed.
    pub(crate) at: DateTime<Utc>,
    /// The line before it.
    pub(crate) before: Option<Arc<Line>>,
}

impl Node {
    /// The state before anything happened.
    pub(crate) fn first(tasks: Vec<Task>) -> Self {
        Self {
            reviews: BTreeMap::new(),
            pulls: BTreeMap::new(),
            tasks,
            dispatched: BTreeMap::new(),
            decisions: 0,
            waiting: false,
            broken: None,
            ledger: None,
        }
    }

    /// What the rules are handed.
    pub(crate) fn state(&self) -> State {
        let reviews = self
            .reviews
            .iter()
            .map(|(key, standing)| (key, &standing.review));
        State::of(reviews, self.pulls.values(), &self.tasks)
    }

    /// The generations used of the pull request that has used the most, over all reviewers.
    pub(crate) fn generations(&self) -> u32 {
        let mut used = BTreeMap::<&PrNumber, u32>::new();
        for (key, standing) in &self.reviews {
            *used.entry(&key.pr).or_default() += u32::from(standing.review.generation);
        }
        used.into_values().max().unwrap_or_default()
    }

    /// Makes the state the same as every other that the rules cannot tell from it. People see the instant a phase
    /// began, what became of a start that failed, the round a finding was opened in and what resolved it, but these
    /// decide nothing. Where all slots are alike, the threads come in one order.
    pub(crate) fn settle(&mut self, bounds: &Bounds) {
        for standing in self.reviews.values_mut() {
            standing.review.since = start();
            standing.review.failed = None;
            standing.review.threads.values_mut().for_each(settle_thread);
            if bounds.is_symmetric() {
                sort_threads(&mut standing.review);
            }
        }
    }

    fn identity(&self) -> impl Eq + Hash {
        let Self {
            reviews,
            pulls,
            tasks,
            dispatched,
            decisions,
            waiting,
            broken,
            ledger: _,
        } = self;
        (
            reviews, pulls, tasks, dispatched, decisions, waiting, broken,
        )
    }
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Node {}

impl Hash for Node {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.identity().hash(hasher);
    }
}

/// Forgets what of a thread is shown to people and decides nothing. A report names the walk's threads by
/// their own ids, so the others they were raised under decide nothing here either.
pub(crate) fn settle_thread(thread: &mut Thread) {
    thread.opened_in = 1;
    thread.resolution = Resolution::Word;
    thread.aliases.clear();
}

/// Gives the threads the names of the first slots, in the order of all that is not their name. The
/// rules treat names alike, and every packet of the inputs exists under every exchange of names.
fn sort_threads(review: &mut Review) {
    let mut threads: Vec<_> = std::mem::take(&mut review.threads)
        .into_iter()
        .map(|(id, thread)| (likeness(review, &id, &thread), id, thread))
        .collect();
    threads.sort_by_key(|(likeness, ..)| *likeness);
    let mut renamed = BTreeMap::new();
    for ((_, old, thread), (id, file, title)) in threads.into_iter().zip(NAMES) {
        let id = FindingId::new(id).expect("a finding's id");
        let thread = Thread {
            title: Some(title.to_owned()),
            words: Some(title.to_owned()),
            file: Some(file.parse::<RepoPath>().expect("a path")),
            ..thread
        };
        review.threads.insert(id.clone(), thread);
        renamed.insert(old, id);
    }
    let rename = |id: &FindingId| renamed.get(id).unwrap_or(id).clone();
    if let Some(report) = crate::invariants::report_mut(&mut review.phase) {
        report.findings = report.findings.iter().map(rename).collect();
        report.findings.sort();
    }
}

/// A number that is equal for threads which differ in their names alone.
pub(crate) fn likeness(review: &Review, id: &FindingId, thread: &Thread) -> u64 {
    let Thread {
        severity,
        blocking,
        title: _,
        file: _,
        lines,
        words: _,
        fingerprint,
        opened_in: _,
        dialogue,
        state,
        resolution: _,
        aliases: _,
        reopening,
        routing,
        origin,
        handoff,
    } = thread;
    let is_reported =
        crate::invariants::report(&review.phase).is_some_and(|report| report.findings.contains(id));
    let mut hasher = DefaultHasher::new();
    (
        severity,
        blocking,
        lines,
        fingerprint,
        dialogue,
        state,
        reopening,
        routing,
        origin,
        handoff,
        is_reported,
    )
        .hash(&mut hasher);
    hasher.finish()
}
