//! The whole daemon fuzzed: whatever comes to a few writers' minds dropped into their outboxes, the daemon killed at any
//! change of the disk and started again, time moved; and a naive model of what must have arrived in the end.
//!
//! A case is made from one number. Its time is moved by the case itself, so that hours pass in milliseconds and the same
//! number gives the same case again.
//!
//! - `served`: the daemon in this very process, on a disk that kills it, by a clock of ours;
//! - `tree`: the files of the writers, with times of that clock;
//! - `case`, its `outboxes`, `reviews`: what the writers do;
//! - `model`: what must come of it, without a line of the daemon's code.

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
    /// No case is begun after this.
    pub length: Duration,
    /// The most cases.
    pub cases: u64,
    /// The folder that keeps the trees of failed cases.
    pub keep: PathBuf,
}

/// The results of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Cases that were run.
    pub cases: u64,
    /// The counts of all of them.
    pub counts: Counts,
    /// The errors, each with the number of its case.
    pub wrong: Vec<String>,
    /// The time it took.
    pub took: Duration,
}

/// The counts of what happened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Files and other entries that writers made in outboxes.
    pub files: u64,
    /// Records of the ledger.
    pub records: u64,
    /// Messages accepted.
    pub accepted: u64,
    /// Files refused.
    pub refused: u64,
    /// Reviews that were opened.
    pub reviews: u64,
    /// Kills of the daemon.
    pub kills: u64,
    /// Kills while it recovered from a kill.
    pub in_recovery: u64,
    /// Calls that failed, after which the daemon went on or stopped by itself.
    pub faults: u64,
    /// Hours of the moved time.
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

/// The most cases with something wrong before it ends: more of them say no more.
const WRONG_MAX: usize = 20;

/// Runs cases until the time is over; `told` gets the report so far after each.
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

/// Runs one case; the error says all that is wrong and where its tree is kept.
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
    // Of an earlier run with the same number, or never there.
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
