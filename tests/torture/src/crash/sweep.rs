//! Tries the points of a scene. Some trials also kill the recovery, and the recovery of that, so that the second and
//! third kills meet every place of a recovery too.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::call::Calls;
use super::scene::Scene;
use super::tracer::Aim;
use super::trial::{self, Outcome};

/// The points that a sweep tries.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// The stride through the calls that change the disk.
    pub writing: usize,
    /// The stride through the other calls.
    pub others: usize,
    /// The stride of the points that are also tried with a second kill in the recovery and a third in the recovery of
    /// that.
    pub again: usize,
    /// The number of parallel trials.
    pub threads: usize,
}

/// The results of a sweep.
#[derive(Debug, Default)]
pub struct Tally {
    /// The number of trials: the daemon was killed, left to finish, and checked.
    pub trials: usize,
    /// The number of points at which a run was killed, by call.
    pub points: BTreeMap<&'static str, usize>,
    /// The number of points that this run, being shorter, did not reach.
    pub missed: usize,
    /// The number of runs killed again at the same point, to kill their recovery.
    pub again: usize,
    /// The number of kills in recoveries.
    pub second: usize,
    /// The number of kills in recoveries of recoveries.
    pub third: usize,
    /// The errors, each with its scene and points.
    pub wrong: Vec<String>,
}

impl Tally {
    /// Returns the number of points hit.
    pub fn hit(&self) -> usize {
        self.points.values().sum()
    }

    /// Returns the number of kills of all kinds.
    pub fn kills(&self) -> usize {
        self.hit() + self.again + self.second + self.third
    }

    /// Adds the results of another scene.
    pub fn join(&mut self, other: Tally) {
        let Tally {
            trials,
            points,
            missed,
            again,
            second,
            third,
            wrong,
        } = other;
        for (call, count) in points {
            *self.points.entry(call).or_default() += count;
        }
        self.trials += trials;
        self.missed += missed;
        self.again += again;
        self.second += second;
        self.third += third;
        self.wrong.extend(wrong);
    }

    fn add(&mut self, outcome: Outcome, is_again: bool) {
        self.trials += 1;
        match outcome.killed_at.first() {
            None => self.missed += 1,
            Some(_) if is_again => self.again += 1,
            Some(call) => *self.points.entry(call).or_default() += 1,
        }
        self.second += usize::from(outcome.killed_at.len() > 1);
        self.third += usize::from(outcome.killed_at.len() > 2);
        self.wrong.extend(outcome.wrong);
    }
}

/// Tries the points of a scene; calls `told` after each trial with the number done and the total.
pub fn sweep(scene: &Scene, form: Form, told: &(dyn Fn(usize, usize) + Sync)) -> Tally {
    let plans = plans(scene, form);
    let (next, tally) = (AtomicUsize::new(0), Mutex::new(Tally::default()));
    std::thread::scope(|scope| {
        for _ in 0..form.threads {
            scope.spawn(|| {
                while let Some(plan) = plans.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = trial::run(scene, plan);
                    let mut tally = tally.lock().expect("no trial panics with it");
                    tally.add(outcome, plan.len() > 1 && plan[0].calls == Calls::Writing);
                    told(tally.trials, plans.len());
                }
            });
        }
    });
    tally.into_inner().expect("no trial panics with it")
}

/// The aims of every trial. A run without a kill counts the calls. Threads make the count vary a little; points beyond
/// the end count as missed.
fn plans(scene: &Scene, form: Form) -> Vec<Vec<Aim>> {
    let counted = trial::run(scene, &[Aim::NOWHERE, Aim::NOWHERE]);
    // The calls of all the work, and those of a start that finds everything done.
    let (whole, idle) = (counted.calls[0], counted.calls[1]);
    let mut plans = Vec::new();
    for (calls, step) in [(Calls::Writing, form.writing), (Calls::Others, form.others)] {
        let count = trial::run(scene, &[Aim { calls, nth: 0 }]).calls[0];
        for nth in (1..=count).step_by(step) {
            let first = Aim { calls, nth };
            let is_again = (plans.len() + 1).is_multiple_of(form.again);
            // A kill after one of the others is followed by a recovery too, and the last kill of a row by a finish.
            if calls == Calls::Writing || !is_again {
                plans.push(vec![first]);
            }
            if is_again {
                let done = whole * nth / count;
                plans.push([&[first][..], &later(plans.len(), idle, whole - done)].concat());
            }
        }
    }
    plans
}

/// The second and the third kill of trial `n`, in recoveries with about `left` calls of work. The strides are primes,
/// so that successive trials meet every place.
fn later(n: usize, idle: usize, left: usize) -> [Aim; 2] {
    let second = 1 + n * 7919 % (idle + left);
    let third = 1 + n * 104_729 % (idle + left.saturating_sub(second));
    [second, third].map(|nth| Aim {
        calls: Calls::All,
        nth,
    })
}
