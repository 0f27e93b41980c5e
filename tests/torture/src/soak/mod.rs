//! Two hours of an office's traffic in minutes: a real daemon under agents of every kind, looked at all along, and
//! at the end every review has ended, everything accepted is there once, and nothing has grown that need not.
//!
//! What is compressed: agents answer at once instead of after minutes, so a review passes in seconds; a reviewer's
//! budget is 1 to 30 s instead of 600. What is not: the daemon's own times (the sweep, 5 s to end a command, the
//! patience with half a file), and the authors' deadlines of hours, which no soak waits for: there the pull request
//! ends the review, and the scenarios move the clock.
//!
//! - `cast`: who takes part, and the config;
//! - `desk`, `authors`, `reviewers`, `bystanders`: what they do, `run`: in which order;
//! - `samples`: what is looked at, `judge`: what it says;
//! - `verdict`: what is left after it all, `report`: all of it in words.

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
    /// The time during which new reviews are opened.
    pub length: Duration,
    /// The seed of all chance.
    pub seed: u64,
    /// The time between two looks at the daemon.
    pub look: Duration,
}

/// The results of a soak.
#[derive(Clone, Debug)]
pub struct Report {
    /// The daemon before the first message.
    pub before: Sample,
    /// The daemon at rest after the last one.
    pub after: Sample,
    /// A daemon that was started again on what it left.
    pub restarted: Sample,
    /// All samples in between.
    pub samples: Vec<Sample>,
    /// The judgement on them.
    pub judgement: Judgement,
    /// The ends of the reviews, and the counts of what was sent.
    pub ended: Ended,
    /// The time the last reviews took to end once no more were opened; `None` if one never did.
    pub drained_in: Option<Duration>,
    /// All that is wrong.
    pub wrong: Vec<String>,
    /// The directory with the workspace, left for somebody to look at if anything is wrong.
    pub kept: Option<PathBuf>,
}

/// Looks at a daemon at rest, a tenth of a second apart, before it counts as not at rest.
const REST_LOOKS: usize = 100;

/// The extra memory that the daemon that served all along may hold at rest, compared with one that is started again, in
/// KiB: what it needed at its busiest and the allocator keeps, mostly in the arenas of threads that have ended.
const KEPT_KIB: u64 = 40 * 1024;

/// Goes through with it; `told` hears of each minute.
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
    // The last one that was reloaded may be one that no start takes.
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

/// The smallest even loss of memory and of handles over a run with these samples that is noticed.
pub fn noticed(samples: &[Sample]) -> (u64, u64) {
    judge::noticed(samples, bounds())
}

fn bounds() -> Bounds {
    Bounds::of(cast::CONCURRENT, cast::names().len() as u64)
}

/// Starts a daemon on the same workspace and takes a sample of it before it does anything.
fn restart(mailroom: &Mailroom) -> Sample {
    let daemon = mailroom.serve();
    let looker = Looker::new(mailroom.root(), daemon.pid().as_raw_nonzero().get());
    wait::for_some("the counts of a daemon started again", || looker.look())
}

/// Waits until nothing of a command is held any more; what it looks like if that never comes.
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
