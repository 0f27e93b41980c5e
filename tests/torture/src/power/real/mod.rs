//! A real file system on a disk that records every write and flush: builds what the kernel would have left at any
//! instant, mounts it, and recovers it.

mod cuts;
mod ground;
mod image;
mod recorder;
mod trial;
mod workload;

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

pub use ground::FileSystem;

use self::cuts::Cut;
use self::ground::{Boots, part_mounts};
use self::image::Image;
use self::recorder::Event;
use self::trial::{Bench, Outcome};
use self::workload::Workload;
use super::history::History;
use super::{Options, Report, scratch};
use crate::dice::Dice;

/// One in this many states has its recovery cut too, at this many positions.
const SECOND_EVERY: usize = 12;
const SECOND_CUTS: usize = 3;

/// Returns what is missing for this, if anything.
pub(crate) fn lacks(file_system: FileSystem) -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("only root may mount".to_owned());
    }
    for device in ["/dev/fuse", "/dev/loop-control"] {
        if let Err(error) = std::fs::File::options().read(true).write(true).open(device) {
            return Some(format!("{device}: {error}"));
        }
    }
    file_system.lacks()
}

/// Records a run on this file system and tries crash states of it.
pub(crate) fn run(file_system: FileSystem, options: &Options<'_>) -> io::Result<Report> {
    // The mount namespace belongs to one thread and ends with it, even after a panic.
    std::thread::scope(|scope| {
        let running = scope.spawn(|| run_parted(file_system, options));
        running
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn run_parted(file_system: FileSystem, options: &Options<'_>) -> io::Result<Report> {
    part_mounts()?;
    let scratch = scratch()?;
    let fresh = file_system.fresh(scratch.path())?;
    let (history, events) = record(file_system, options, scratch.path(), &fresh)?;
    let mut dice = Dice::new(options.seed);
    let cuts = cuts::choose(
        &events,
        history.ready,
        history.end,
        options.states,
        &mut dice,
    );
    let flushes = events[..history.end]
        .iter()
        .filter(|event| matches!(event, Event::Flush))
        .count();
    let mut report = Report::new(file_system.name());
    report.writes = history.end - flushes;
    report.flushes = flushes;
    report.records = history.ledger.len();
    report.taken = history.takes.len();
    options.tell(&format!(
        "{}: recorded {} writes and {flushes} flushes, {} records; {} states to try",
        file_system.name(),
        report.writes,
        report.records,
        cuts.len()
    ));
    let queue = Queue::new(fresh, &events, &cuts);
    let report = Mutex::new(report);
    let threads = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(file_system.at_a_time());
    std::thread::scope(|scope| {
        let bench = |n: usize| {
            let (queue, report, history) = (&queue, &report, &history);
            let scratch = scratch.path().join(n.to_string());
            move || -> io::Result<()> {
                part_mounts()?;
                std::fs::create_dir_all(&scratch)?;
                let boots = Boots::begin(scratch.join("boot_id"))?;
                let bench = Bench {
                    settled: options.settled,
                    file_system,
                    boots,
                    scratch,
                };
                work(&bench, queue, history, report, options)
            }
        };
        let working: Vec<_> = (0..threads).map(|n| scope.spawn(bench(n))).collect();
        let mut ended = Ok(());
        for thread in working {
            ended = ended.and(
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            );
        }
        ended
    })?;
    Ok(report.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Runs the workload on a recorded disk.
fn record(
    file_system: FileSystem,
    options: &Options<'_>,
    scratch: &Path,
    fresh: &Image,
) -> io::Result<(History, Vec<Event>)> {
    let (under, mount) = (scratch.join("recorder"), scratch.join("mount"));
    std::fs::create_dir_all(&under)?;
    let (journal, session) = recorder::mount(fresh.clone(), &under)?;
    let history = Arc::new(Mutex::new(History::default()));
    let mounted = file_system.mount(&under.join("disk"), &mount)?;
    let workload = Workload {
        settled: options.settled,
        root: mount.join("room"),
        journal: Arc::clone(&journal),
        history: Arc::clone(&history),
    };
    let ran = workload.run(options.rounds);
    drop(mounted);
    session.umount_and_join()?;
    ran?;
    let history = history
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    let mut events = journal.events();
    events.truncate(history.end);
    Ok((history, events))
}

/// The cuts sorted by position, each with its disk.
struct Queue<'a> {
    events: &'a [Event],
    cuts: &'a [Cut],
    next: Mutex<(usize, Image, usize)>,
}

impl<'a> Queue<'a> {
    fn new(fresh: Image, events: &'a [Event], cuts: &'a [Cut]) -> Queue<'a> {
        Queue {
            events,
            cuts,
            next: Mutex::new((0, fresh, 0)),
        }
    }

    /// Returns the next cut, its number, and the disk that it leaves.
    fn next(&self, superblock: u64) -> Option<(usize, Cut, Image)> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let (number, flushed, so_far) = &mut *next;
        let cut = *self.cuts.get(*number)?;
        let to = cuts::flushed(self.events, cut.at);
        cuts::advance(flushed, self.events, *so_far, to);
        let mut image = flushed.clone();
        (*number, *so_far) = (*number + 1, to);
        let number = *number;
        drop(next);
        cuts::strike(&mut image, self.events, &cut, superblock);
        Some((number, cut, image))
    }
}

fn work(
    bench: &Bench<'_>,
    queue: &Queue<'_>,
    history: &History,
    report: &Mutex<Report>,
    options: &Options<'_>,
) -> io::Result<()> {
    while let Some((number, cut, image)) = queue.next(bench.file_system.superblock()) {
        let outcome = bench.trial(&image, history, cut.at)?;
        let mut outcomes = vec![(false, outcome)];
        if number % SECOND_EVERY == 0 && outcomes[0].1.unmountable.is_none() {
            let mut dice = Dice::new(options.seed ^ number as u64);
            let second =
                bench.trial_of_recovery(&image, history, cut.at, SECOND_CUTS, &mut dice)?;
            // The first outcome repeats the recovery that was just judged.
            outcomes.extend(second.into_iter().skip(1).map(|outcome| (true, outcome)));
        }
        let mut report = report.lock().unwrap_or_else(PoisonError::into_inner);
        for (is_second, outcome) in outcomes {
            add(&mut report, &cut, is_second, outcome);
        }
        if report.is_hopeless() {
            return Ok(());
        }
        if number % 200 == 0 {
            options.tell(&format!(
                "{number} of {} places, {} states",
                queue.cuts.len(),
                report.states
            ));
        }
    }
    Ok(())
}

fn add(report: &mut Report, cut: &Cut, is_second: bool, outcome: Outcome) {
    report.states += 1;
    report.second += usize::from(is_second);
    report.again += outcome.again;
    report.mended += outcome.mended;
    report.torn += usize::from(outcome.torn);
    report
        .unmountable
        .extend(outcome.unmountable.map(|why| format!("{cut:?}: {why}")));
    report.wrong.extend(
        outcome
            .wrong
            .into_iter()
            .map(|what| format!("{cut:?}: {what}")),
    );
}
