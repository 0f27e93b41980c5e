//! All faults of some scenes, several in parallel, and their outcomes.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::scene::Scene;
use super::trial::{self, Ending, Trial};

/// The extent of a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Every sync, and one in this many of the other points, each with one of its errors in turn.
    OneIn(usize),
    /// Every point with every error, once and permanently.
    Long,
}

/// The faults of one call, by the daemon's reaction.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// The number of faults that the daemon met.
    pub faults: usize,
    /// The number of faults after which it continued.
    pub went_on: usize,
    /// The number of faults after which it stopped, by exit code.
    pub stopped: BTreeMap<i32, usize>,
    /// The number of faults whose call this run did not make.
    pub not_met: usize,
    /// The number of faults with an error.
    pub wrong: usize,
}

/// The results of all trials.
#[derive(Debug, Default)]
pub struct Campaign {
    /// One row per call.
    pub rows: BTreeMap<&'static str, Row>,
    /// All errors, one text per fault.
    pub wrong: Vec<String>,
}

impl Campaign {
    /// Tries the faults of these scenes, of one call if named, `threads` in parallel; reports each when done.
    pub fn run(
        scenes: &[Scene],
        extent: Extent,
        only: Option<&str>,
        threads: usize,
        told: &(dyn Fn(usize, usize) + Sync),
    ) -> Campaign {
        let trials: Vec<Trial> = scenes
            .iter()
            .flat_map(|scene| trials(*scene, extent, only))
            .collect();
        let next = AtomicUsize::new(0);
        let campaign = Mutex::new(Campaign::default());
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some(trial) = trials.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let result = trial.run();
                        let mut campaign =
                            campaign.lock().expect("no other thread panicked with it");
                        campaign.add(trial, result);
                        told(
                            campaign
                                .rows
                                .values()
                                .map(|row| row.faults + row.not_met)
                                .sum(),
                            trials.len(),
                        );
                    }
                });
            }
        });
        campaign.into_inner().expect("no thread panicked with it")
    }

    fn add(&mut self, trial: &Trial, result: Result<Ending, Vec<String>>) {
        let row = self.rows.entry(trial.point.call.name).or_default();
        match result {
            Ok(Ending::NotMet) => row.not_met += 1,
            Ok(Ending::WentOn) => (row.faults, row.went_on) = (row.faults + 1, row.went_on + 1),
            Ok(Ending::Stopped(code)) => {
                row.faults += 1;
                *row.stopped.entry(code).or_default() += 1;
            }
            Err(wrong) => {
                (row.faults, row.wrong) = (row.faults + 1, row.wrong + 1);
                self.wrong.push(wrong.join("\n    "));
            }
        }
    }

    /// Returns the number of faults met, over all calls.
    pub fn faults(&self) -> usize {
        self.rows.values().map(|row| row.faults).sum()
    }
}

impl fmt::Display for Campaign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<12} {:>7} {:>8} {:>8} {:>8} {:>8} {:>8} {:>6}",
            "call", "faults", "went on", "exit 1", "exit 5", "exit 9", "not met", "wrong"
        )?;
        let mut total = Row::default();
        for (call, row) in &self.rows {
            line(f, call, row)?;
            total.faults += row.faults;
            total.went_on += row.went_on;
            total.not_met += row.not_met;
            total.wrong += row.wrong;
            for (code, count) in &row.stopped {
                *total.stopped.entry(*code).or_default() += count;
            }
        }
        line(f, "all", &total)
    }
}

fn line(f: &mut fmt::Formatter<'_>, call: &str, row: &Row) -> fmt::Result {
    let stopped = |code: i32| row.stopped.get(&code).copied().unwrap_or_default();
    let (one, five, nine) = (stopped(1), stopped(5), stopped(9));
    let Row {
        faults,
        went_on,
        not_met,
        wrong,
        ..
    } = row;
    writeln!(
        f,
        "{call:<12} {faults:>7} {went_on:>8} {one:>8} {five:>8} {nine:>8} {not_met:>8} {wrong:>6}"
    )
}

/// The faults of a scene.
fn trials(scene: Scene, extent: Extent, only: Option<&str>) -> Vec<Trial> {
    let points = trial::points(scene).into_iter();
    let points = points.filter(|point| only.is_none_or(|only| point.call.name == only));
    let mut trials = Vec::new();
    for (turn, point) in points.enumerate() {
        let errnos = point.errnos();
        let trial = |errno, is_for_good| Trial {
            scene,
            point: point.clone(),
            errno,
            is_for_good,
        };
        match extent {
            Extent::OneIn(steps) => {
                if point.call.is_sync || turn.is_multiple_of(steps) {
                    trials.push(trial(errnos[turn / steps % errnos.len()], false));
                }
            }
            Extent::Long => {
                trials.extend(errnos.iter().map(|errno| trial(*errno, false)));
                // A signal that interrupts every call forever does not exist.
                let lasting = errnos
                    .iter()
                    .filter(|errno| **errno != super::call::Errno::Interrupted);
                trials.extend(lasting.map(|errno| trial(*errno, true)));
            }
        }
    }
    trials
}
