//! Two hours of an office's traffic in minutes: a real daemon with agents of every kind, sampled all the time. At the
//! end every review has ended, every accepted message has arrived once, and nothing has grown without a cause.
//!
//! Compressed: agents answer at once instead of after minutes, so a review passes in seconds; a reviewer's budget is 1
//! to 30 s instead of 600. Not compressed: the daemon's own times (the sweep, 5 s to end a command, the patience with
//! half a file), and the authors' deadlines of hours, for which no soak waits: there the pull request ends the review,
//! and the scenarios move the clock.
//!
//! - `cast`: the agents and the config;
//! - `desk`, `authors`, `reviewers`, `bystanders`: their acts; `run`: the order;
//! - `samples`: the measurements; `judge`: the conclusions;
//! - `verdict`: the state at the end; `report`: all of it in words.

mod authors;
mod bystanders;
mod cast;
mod desk;
pub mod judge;
mod report;
mod reviewers;
mod run;
mod samples;
mod verdict;

use std::path::PathBuf;
use std::time::Duration;

use settled_tests::mailroom::Mailroom;
use settled_tests::wait;

use self::bystanders::Errands;
use self::judge::{Bounds, Judgement, Sample};
use self::run::Run;
use self::samples::Looker;
pub use self::verdict::Ended;

/// The length of a soak, its seed and its pace.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The time in which new reviews are opened.
    pub length: Duration,
    /// The random seed.
    pub seed: u64,
    /// The time between two samples.
    pub look: Duration,
}

/// The results of a soak.
#[derive(Clone, Debug)]
pub struct Report {
    /// The daemon before the first message.
    pub before: Sample,
    /// The idle daemon after the last one.
    pub after: Sample,
    /// A new daemon on the same workspace.
    pub restarted: Sample,
    /// All samples in between.
    pub samples: Vec<Sample>,
    /// The judgement on them.
    pub judgement: Judgement,
    /// The ends of the reviews, and counts of the messages.
    pub ended: Ended,
    /// The time until the last reviews ended, after no more were opened; `None` if one never did.
    pub drained_in: Option<Duration>,
    /// All errors.
    pub wrong: Vec<String>,
    /// The directory with the workspace, kept if there are errors.
    pub kept: Option<PathBuf>,
}

/// The number of samples, a tenth of a second apart, before the daemon counts as not idle.
const REST_LOOKS: usize = 100;

/// The memory that the idle daemon may hold beyond a new one, in KiB: its peak use, which the allocator keeps, mostly
/// in the arenas of ended threads.
const KEPT_KIB: u64 = 40 * 1024;

/// Runs a soak; calls `told` every minute.
pub fn soak(plan: &Plan, told: &dyn Fn(&Sample)) -> Report {
    let directory = tempfile::Builder::new()
        .prefix("settled-soak-")
        .tempdir()
        .expect("a temporary directory");
    let beside = directory.path().to_owned();
    let mailroom = Mailroom::at(directory, "mailroom");
    let made = mailroom.run(&["init", "--agents", &cast::names().join(",")]);
    assert!(made.status.success(), "a workspace can be made");
    cast::lay_out(&beside);
    mailroom.put("settled.toml", &cast::config(&beside, 30));
    let daemon = mailroom.serve();
    let looker = Looker::new(mailroom.root(), daemon.pid().as_raw_nonzero().get());
    let before = wait::for_some("the daemon's counts", || looker.look());
    let mut wrong = Vec::new();
    let mut run = Run::new(*plan, &mailroom, &daemon, &looker, &beside);
    let drained = std::thread::scope(|scope| {
        let errands = Errands::start(scope, &mailroom);
        run.go_on(&errands, told);
        let drained = run.drain(&mailroom, &errands);
        wrong.extend(errands.finish());
        drained
    });
    let drained_in = drained
        .map_err(|left| wrong.push(format!("what never ended: {left}")))
        .ok();
    let after = at_rest(&looker, before).unwrap_or_else(|look| {
        wrong.push(format!(
            "at rest it was {before:?} before and is {look:?} after"
        ));
        look
    });
    wrong.extend(verdict::differs_from_its_fold(&mailroom));
    for agent in cast::AUTHORS.into_iter().chain(cast::PLAYED) {
        run.desk.take(agent);
    }
    if !daemon.terminate().success() {
        wrong.push("the daemon did not end well".to_owned());
    }
    wrong.extend(verdict::processes(mailroom.root(), &beside));
    // The last reload may have left a config that no start accepts.
    mailroom.put("settled.toml", &cast::config(&beside, 30));
    let restarted = restart(&mailroom);
    if after.rss_kib > restarted.rss_kib + KEPT_KIB {
        wrong.push(format!(
            "at rest it held {} KiB, one started again holds {}",
            after.rss_kib, restarted.rss_kib
        ));
    }
    let (ended, faults) = verdict::look(&mailroom, &run.desk.takes);
    wrong.extend(faults);
    let judgement = judge::judge(&run.samples, bounds());
    wrong.extend(judgement.wrong.iter().cloned());
    let samples = std::mem::take(&mut run.samples);
    drop(run);
    let kept = (!wrong.is_empty()).then(|| mailroom.keep());
    Report {
        before,
        after,
        restarted,
        samples,
        judgement,
        ended,
        drained_in,
        wrong,
        kept,
    }
}

/// Returns the smallest even leak of memory and of handles that a run with these samples would notice.
pub fn noticed(samples: &[Sample]) -> (u64, u64) {
    judge::noticed(samples, bounds())
}

fn bounds() -> Bounds {
    Bounds::of(cast::CONCURRENT, cast::names().len() as u64)
}

/// Starts a daemon on the same workspace and samples it before it does anything.
fn restart(mailroom: &Mailroom) -> Sample {
    let daemon = mailroom.serve();
    let looker = Looker::new(mailroom.root(), daemon.pid().as_raw_nonzero().get());
    wait::for_some("the counts of a daemon started again", || looker.look())
}

/// Waits until nothing of a command is left; the error is the last sample.
fn at_rest(looker: &Looker, before: Sample) -> Result<Sample, Sample> {
    // The rows of a snapshot are in up to eight files, which stay open.
    let handles = before.handles + 2 + 8;
    let mut last = before;
    for _ in 0..REST_LOOKS {
        last = looker.look().unwrap_or(last);
        let has_more = last.handles > handles || last.threads > before.threads + 1;
        if last.keepers + last.zombies == 0 && !has_more && last.at_ms > before.at_ms {
            return Ok(last);
        }
        wait::a_moment(Duration::from_millis(100));
    }
    Err(last)
}
