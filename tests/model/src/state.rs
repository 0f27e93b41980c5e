//! One state of a walk: the reviews as the rules keep them, and the little history that the invariants need. States
//! that differ only in what the rules ignore are equal.

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

/// A review and the part of its past that invariants need.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TrackedReview {
    /// The review.
    pub(crate) review: Review,
    /// The number of messages accepted in its generation.
    pub(crate) accepted: u32,
    /// The round of its last terminal response; 0 before the first.
    pub(crate) answered: u32,
}

/// A state of the walk.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// The reviews.
    pub(crate) reviews: BTreeMap<ReviewKey, TrackedReview>,
    /// The last event of each pull request.
    pub(crate) pulls: BTreeMap<PrNumber, PullEvent>,
    /// The tasks that were handed off.
    pub(crate) tasks: Vec<Task>,
    /// The number of times each finding was handed off.
    pub(crate) dispatched: BTreeMap<(PrNumber, FindingId), u8>,
    /// The number of people's decisions so far.
    pub(crate) decisions: u8,
    /// True if the last record is in the ledger and its mail is not delivered.
    pub(crate) waiting: bool,
    /// The invariant broken by the step to this state.
    pub(crate) broken: Option<Broken>,
    /// The ledger on one path to this state. Only walks with crashes keep it, and equality ignores it.
    pub(crate) ledger: Option<Arc<Line>>,
}

/// A line of the ledger, linked to those before it.
#[derive(Debug)]
pub(crate) struct Line {
    /// The record.
    pub(crate) record: Record,
    /// The time of its commit.
    pub(crate) at: DateTime<Utc>,
    /// The line before it.
    pub(crate) before: Option<Arc<Line>>,
}

impl Node {
    /// Returns the state before anything happened.
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

    /// Returns the state in the form that the rules take.
    pub(crate) fn state(&self) -> State {
        let reviews = self
            .reviews
            .iter()
            .map(|(key, tracked)| (key, &tracked.review));
        State::of(reviews, self.pulls.values(), &self.tasks)
    }

    /// Returns the most generations that one pull request has used, over all reviewers.
    pub(crate) fn generations(&self) -> u32 {
        let mut used = BTreeMap::<&PrNumber, u32>::new();
        for (key, tracked) in &self.reviews {
            *used.entry(&key.pr).or_default() += u32::from(tracked.review.generation);
        }
        used.into_values().max().unwrap_or_default()
    }

    /// Makes states equal that the rules do not distinguish. The start of a phase, the outcome of a failed start, the
    /// round that opened a finding and what resolved it are only for people; no response of a walk names a past request.
    /// If all slots are alike, sorts the threads.
    pub(crate) fn settle(&mut self, bounds: &Bounds) {
        for tracked in self.reviews.values_mut() {
            tracked.review.since = start();
            tracked.review.failed = None;
            tracked.review.past_requests.clear();
            tracked.review.threads.values_mut().for_each(settle_thread);
            if bounds.is_symmetric() {
                sort_threads(&mut tracked.review);
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

/// Clears what a thread keeps only for people. A report names the walk's threads by their own ids, so their aliases
/// decide nothing here either.
pub(crate) fn settle_thread(thread: &mut Thread) {
    thread.opened_in = 1;
    thread.resolution = Resolution::Explicit;
    thread.aliases.clear();
}

/// Renames the threads to the first slots, sorted by everything but their names. The rules treat names alike, and the
/// inputs have every packet under every permutation of names.
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

/// Returns a number that is equal for threads that differ only in their names.
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
