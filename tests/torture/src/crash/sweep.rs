//! Goes through the points of a scene: each kill with a kill in its recovery and one in the recovery of
//! that, so that the second and third kills meet every place of a recovery as well.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::call::Calls;
use super::scene::Scene;
use super::tracer::Aim;
use super::trial::{self, Outcome};

/// The selection of points that a sweep tries.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// Every n-th of the calls that change the disk.
    pub writing: usize,
    /// Every n-th of the others.
    pub others: usize,
    /// The number of points to one that is tried again with a second kill, in the recovery, and a third, in the
    /// recovery of that.
    pub again: usize,
    /// The number of trials that run at a time.
    pub threads: usize,
}

/// The results of a sweep.
#[derive(Debug, Default)]
pub struct Tally {
    /// The number of times the daemon was killed, left to finish and looked at.
    pub trials: usize,
    /// Points at which a run was killed, by call.
    pub points: BTreeMap<&'static str, usize>,
    /// Points that were not reached: the run was shorter this time.
    pub missed: usize,
    /// Runs killed once more at the same point, for a kill in the recovery.
    pub again: usize,
    /// Kills in recoveries.
    pub second: usize,
    /// Kills in recoveries of recoveries.
    pub third: usize,
    /// The errors, each with its scene and points.
    pub wrong: Vec<String>,
}

impl Tally {
    /// The number of points that were hit.
    pub fn hit(&self) -> usize {
        self.points.values().sum()
    }

    /// Kills of all kinds.
    pub fn kills(&self) -> usize {
        self.hit() + self.again + self.second + self.third
    }

    /// Takes in another scene's.
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

/// Tries the points of a scene; `told` hears after each trial how many of how many are done.
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

/// The aims of every trial. How many calls a run makes is seen once without a kill; threads make it
/// vary a little, and those beyond the end are counted as missed.
fn plans(scene: &Scene, form: Form) -> Vec<Vec<Aim>> {
    let counted = trial::run(scene, &[Aim::NOWHERE, Aim::NOWHERE]);
    // All the work, and a start that finds everything done.
    let (whole, idle) = (counted.calls[0], counted.calls[1]);
    let mut plans = Vec::new();
    for (calls, step) in [(Calls::Writing, form.writing), (Calls::Others, form.others)] {
        let count = trial::run(scene, &[Aim { calls, nth: 0 }]).calls[0];
        for nth in (1..=count).step_by(step) {
            let first = Aim { calls, nth };
            let is_again = (plans.len() + 1).is_multiple_of(form.again);
            // What follows upon the others is a recovery, too, and the last one of a row is not killed.
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

/// The second and the third kill of the n-th trial, in recoveries that have about `left` calls of the
/// work still to make. The strides are primes, so that one trial after the other they meet every place.
fn later(n: usize, idle: usize, left: usize) -> [Aim; 2] {
    let second = 1 + n * 7919 % (idle + left);
    let third = 1 + n * 104_729 % (idle + left.saturating_sub(second));
    [second, third].map(|nth| Aim {
        calls: Calls::All,
        nth,
    })
}
