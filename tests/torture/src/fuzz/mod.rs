//! Fuzzes the whole daemon: a few writers drop anything into their outboxes, the daemon is killed at any change of the
//! disk and started again, time is moved, and a naive model says what must have arrived in the end.
//!
//! A case is made from one number. It moves its own time, so hours pass in milliseconds and the same number repeats the
//! same case.
//!
//! - `served`: the daemon in this process, on a disk that can kill it, with a simulated clock;
//! - `tree`: the writers' files, with times of that clock;
//! - `case`, its `outboxes`, `reviews`: the acts of the writers;
//! - `model`: the required outcome, without a line of the daemon's code.

mod case;
mod model;
mod reviews;
mod served;
mod tree;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The cases to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The number of the first case; the next case has the next number.
    pub seed: u64,
    /// No case begins after this time.
    pub length: Duration,
    /// The most cases to run.
    pub cases: u64,
    /// The folder for the trees of failed cases.
    pub keep: PathBuf,
}

/// The results of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The number of cases run.
    pub cases: u64,
    /// The sum of their counts.
    pub counts: Counts,
    /// The errors, each with the number of its case.
    pub wrong: Vec<String>,
    /// The time it took.
    pub took: Duration,
}

/// Counts of events.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// The number of files and other entries that writers made in outboxes.
    pub files: u64,
    /// The number of records in the ledger.
    pub records: u64,
    /// The number of accepted messages.
    pub accepted: u64,
    /// The number of refused files.
    pub refused: u64,
    /// The number of reviews opened.
    pub reviews: u64,
    /// The number of kills.
    pub kills: u64,
    /// The number of kills during a recovery.
    pub in_recovery: u64,
    /// The number of failed calls after which the daemon continued or stopped by itself.
    pub faults: u64,
    /// The hours of simulated time.
    pub hours: u64,
}

impl Counts {
    fn add(&mut self, other: Counts) {
        self.files += other.files;
        self.records += other.records;
        self.accepted += other.accepted;
        self.refused += other.refused;
        self.reviews += other.reviews;
        self.kills += other.kills;
        self.in_recovery += other.in_recovery;
        self.faults += other.faults;
        self.hours += other.hours;
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts {
            files,
            records,
            accepted,
            refused,
            reviews,
            kills,
            in_recovery,
            faults,
            hours,
        } = self.counts;
        write!(
            f,
            "{} cases, {} s: {files} files, {records} records ({accepted} accepted, {refused} refused), {reviews} reviews, \
             {kills} kills ({in_recovery} in a recovery), {faults} failed calls, {} days of moved time, {} wrong",
            self.cases,
            self.took.as_secs(),
            hours / 24,
            self.wrong.len()
        )
    }
}

/// The run ends after this many failed cases; more would teach nothing.
const WRONG_MAX: usize = 20;

/// Runs cases until the time is over; calls `told` with the report so far after each.
pub fn fuzz(plan: &Plan, told: &dyn Fn(&Report)) -> Report {
    let began = Instant::now();
    let mut report = Report::default();
    while report.cases < plan.cases
        && began.elapsed() < plan.length
        && report.wrong.len() < WRONG_MAX
    {
        let seed = plan.seed.wrapping_add(report.cases);
        match run_case(seed, plan) {
            Ok(counts) => report.counts.add(counts),
            Err(what) => report.wrong.push(format!("seed {seed}: {what}")),
        }
        report.cases += 1;
        report.took = began.elapsed();
        told(&report);
    }
    report
}

/// Runs one case; the error lists what is wrong and where its tree is.
fn run_case(seed: u64, plan: &Plan) -> Result<Counts, String> {
    let mailroom = settled_tests::mailroom::Mailroom::at(settled_tests::scratch(), "mailroom");
    let mut log = Vec::new();
    let ran = catch_unwind(AssertUnwindSafe(|| case::run(seed, &mailroom, &mut log)));
    let wrong = match ran {
        Ok((counts, wrong)) if wrong.is_empty() => return Ok(counts),
        Ok((_, wrong)) => wrong.join("\n  "),
        Err(panic) => format!("it panicked: {}", panic_text(&*panic)),
    };
    let kept = plan.keep.join(format!("seed-{seed}"));
    // Left by an earlier run of the same case, if at all.
    let _ = std::fs::remove_dir_all(&kept);
    tree::copy(mailroom.root(), &kept);
    settled_tests::write(kept.join("steps.txt"), &(log.join("\n") + "\n"));
    settled_tests::write(kept.join("wrong.txt"), &(wrong.clone() + "\n"));
    Err(format!("{wrong}\n  kept in {}", kept.display()))
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_default()
}
