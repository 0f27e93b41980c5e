//! A walk from the first state to the last, and what is said about it.

use std::fmt;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use stateright::{Checker, HasDiscoveries, Model};

use crate::bounds::Bounds;
use crate::walk::Walk;

/// What a walk found.
#[derive(Debug)]
pub struct Report {
    /// The walk's name.
    pub name: &'static str,
    /// Its bounds in a line.
    pub bounds: String,
    /// Distinct states.
    pub states: usize,
    /// The most steps from the first state.
    pub depth: usize,
    /// Messages accepted.
    pub accepted: u64,
    /// Messages refused.
    pub refused: u64,
    /// Events that moved something.
    pub happened: u64,
    /// Events that came at the wrong time.
    pub declined: u64,
    /// Steps cut off at the bound on generations or decisions.
    pub cut: u64,
    /// How long it took.
    pub took: Duration,
    /// The laws that were broken, each with the way to the breach.
    pub broken: Vec<String>,
}

/// Walks every state within the bounds, with so many threads of the machine.
pub fn run(bounds: Bounds, threads: usize) -> Report {
    let began = Instant::now();
    let (name, line) = (bounds.name, bounds.line());
    let checker = Walk::new(bounds)
        .checker()
        .threads(threads)
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    let took = began.elapsed();
    let mut broken: Vec<String> = Vec::new();
    for (law, path) in checker.discoveries() {
        let mut text = format!("broken: {law}\n");
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
        broken,
    }
}

impl Report {
    /// Every message that was judged and every event that was heard.
    pub fn steps(&self) -> u64 {
        self.accepted + self.refused + self.happened + self.declined
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, bounds, states, depth, accepted, refused, happened, declined, cut, took, broken } =
            self;
        writeln!(f, "{name}: {bounds}")?;
        write!(
            f,
            "    {states} states, {} steps ({accepted} accepted, {refused} refused, {happened} events, {declined} \
             untimely), depth {depth}, {cut} cut off, {:.2} s",
            self.steps(),
            took.as_secs_f64()
        )?;
        broken.iter().try_for_each(|broken| write!(f, "\n{broken}"))
    }
}
