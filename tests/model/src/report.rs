//! Runs walks from the first state to the last and reports on them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use message_schema::Code;
use stateright::{Checker, HasDiscoveries, Model};

use crate::bounds::Bounds;
use crate::walk::Walk;

/// The results of a walk.
#[derive(Debug)]
pub struct Report {
    /// The walk's name.
    pub name: &'static str,
    /// Its bounds in a line.
    pub bounds: String,
    /// The number of distinct states.
    pub states: usize,
    /// The largest number of steps from the first state.
    pub depth: usize,
    /// The number of accepted messages.
    pub accepted: u64,
    /// The number of refused messages.
    pub refused: u64,
    /// The number of events that happened.
    pub happened: u64,
    /// The number of declined events.
    pub declined: u64,
    /// The number of steps cut off at the bound on generations or decisions.
    pub cut: u64,
    /// The time it took.
    pub took: Duration,
    /// The most messages one generation has accepted.
    pub most: u32,
    /// The number of states with each end of a review.
    pub ends: BTreeMap<String, u64>,
    /// The codes of refused messages.
    pub codes: BTreeSet<Code>,
    /// The broken invariants, each with the path to the breach.
    pub broken: Vec<String>,
}

/// Runs several walks, `at_a_time` in parallel, each on its own thread: states differ too much in cost to share one
/// walk evenly. Returns the reports in the order of the walks; calls `begun` with the name of each as it begins.
pub fn run_all(walks: Vec<Bounds>, at_a_time: usize, begun: &(dyn Fn(&str) + Sync)) -> Vec<Report> {
    let count = walks.len();
    let waiting = Mutex::new(walks.into_iter().enumerate());
    let done = Mutex::new(Vec::with_capacity(count));
    std::thread::scope(|scope| {
        for _ in 0..at_a_time {
            scope.spawn(|| {
                loop {
                    let next = waiting.lock().expect("taking a walk does not panic").next();
                    let Some((place, bounds)) = next else { break };
                    begun(bounds.name());
                    let report = run(bounds);
                    done.lock()
                        .expect("keeping a report does not panic")
                        .push((place, report));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("every walk is over");
    done.sort_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, report)| report).collect()
}

/// Walks every state within the bounds.
fn run(bounds: Bounds) -> Report {
    let began = Instant::now();
    let (name, line) = (bounds.name, bounds.line());
    let checker = Walk::new(bounds)
        .checker()
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    let took = began.elapsed();
    let mut broken: Vec<String> = Vec::new();
    for (invariant, path) in checker.discoveries() {
        let mut text = format!("broken: {invariant}\n");
        let mut why = String::new();
        for (node, edge) in path.into_vec() {
            why = node.broken.map_or(why, |broken| broken.why);
            if let Some(edge) = edge {
                text += &format!("  {}\n", edge.what);
            }
        }
        broken.push(format!("{text}  -> {why}"));
    }
    let tally = &checker.model().tally;
    let seen = tally.seen.lock().expect("the walk is over").clone();
    let read = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    Report {
        name,
        bounds: line,
        states: checker.unique_state_count(),
        depth: checker.max_depth(),
        accepted: read(&tally.accepted),
        refused: read(&tally.refused),
        happened: read(&tally.happened),
        declined: read(&tally.declined),
        cut: read(&tally.cut),
        took,
        most: seen.most,
        ends: seen.ends,
        codes: seen.codes,
        broken,
    }
}

impl Report {
    /// Returns the number of judged messages and events.
    pub fn steps(&self) -> u64 {
        self.accepted + self.refused + self.happened + self.declined
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            bounds,
            states,
            depth,
            accepted,
            refused,
            happened,
            declined,
            cut,
            took,
            most,
            broken,
            ..
        } = self;
        writeln!(f, "{name}: {bounds}")?;
        write!(
            f,
            "    {states} states, {} steps ({accepted} accepted, {refused} refused, {happened} events, {declined} \
             untimely), at most {most} messages a generation, depth {depth}, {cut} cut off, {:.2} s",
            self.steps(),
            took.as_secs_f64()
        )?;
        broken.iter().try_for_each(|broken| write!(f, "\n{broken}"))
    }
}
