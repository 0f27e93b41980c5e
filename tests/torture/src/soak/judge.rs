//! Judges a series of samples of a daemon's memory and handles: does anything grow without a cause? Pure arithmetic;
//! `samples` measures.
//!
//! Leaves out the first third of a run, in which buffers, allocator and caches reach their size. Compares the median of
//! the third sixth with the median of the last one. A daemon keeps reviews and messages in its snapshots, so its memory
//! may grow only as allocators and caches do: in an hour or more by a twentieth, in a shorter run by a number of MiB,
//! because the times of messages within the last hour are in memory and caches still fill. Its handles and threads may
//! not grow, except by those of running commands.

use std::fmt;

/// One sample of a daemon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Milliseconds since the traffic began.
    pub at_ms: u64,
    /// Resident memory in KiB.
    pub rss_kib: u64,
    /// Open files, pipes and sockets.
    pub handles: u64,
    /// Threads.
    pub threads: u64,
    /// Running children, which are keepers of commands.
    pub keepers: u64,
    /// Children that ended and were not waited for yet.
    pub zombies: u64,
    /// The age of the oldest of these in milliseconds, from its first sample.
    pub unwaited_ms: u64,
    /// Files below `.settled`, except those of runs.
    pub own_files: u64,
    /// Folders of runs; the daemon keeps 200.
    pub runs: u64,
    /// Reviews that the daemon knows.
    pub reviews: u64,
    /// Messages that it accepted or refused.
    pub messages: u64,
    /// Pull requests with events: each has a directory of events with a cursor.
    pub pulls: u64,
}

/// The limits on growth.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Growth of memory in a run of less than an hour, in KiB.
    pub memory_kib: u64,
    /// Growth of handles and of threads.
    pub handles: u64,
    /// Growth of the files below `.settled`.
    pub own_files: u64,
    /// The most folders of runs, including running ones.
    pub runs: u64,
}

/// The longest time that an ended child may be seen, in milliseconds. The daemon waits for it within a tenth of a
/// second, or after the end of everything its command left behind, which blocks the loop: 3.6 s were seen beside fifty
/// other tests on two cores.
const UNWAITED_MS: u64 = 10_000;

/// The time of the last sample from which a run counts as an hour or more, in milliseconds: that sample comes a little
/// before the end.
const LONG_MS: u64 = 59 * 60_000;

/// The growth of memory in such a run, as a part of the memory in the third sixth.
const GROWTH_OF_LONG: u64 = 20;

impl Bounds {
    /// Each keeper costs two pipes and a thread.
    const HANDLES_PER_KEEPER: u64 = 2;

    /// Mailboxes of an agent with a cursor, from their first use on.
    const CURSORS_PER_AGENT: u64 = 3;

    /// Returns the limits for a daemon with this many parallel commands and agents.
    pub const fn of(concurrent: u64, agents: u64) -> Self {
        Self {
            memory_kib: 8 * 1024,
            handles: 8,
            own_files: 8 + agents * Self::CURSORS_PER_AGENT,
            runs: 200 + concurrent,
        }
    }

    /// Returns how much memory may grow in these samples, in KiB.
    fn memory_of(&self, samples: &[Sample], before: &Level) -> u64 {
        let is_long = samples.last().is_some_and(|last| last.at_ms >= LONG_MS);
        if is_long {
            before.rss_kib / GROWTH_OF_LONG
        } else {
            self.memory_kib
        }
    }
}

/// The medians of one part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// Resident memory in KiB.
    pub rss_kib: u64,
    /// Handles, without those of keepers.
    pub handles: u64,
    /// Threads, without those of keepers.
    pub threads: u64,
    /// Files below `.settled`.
    pub own_files: u64,
    /// Reviews.
    pub reviews: u64,
    /// Messages.
    pub messages: u64,
    /// Pull requests with events.
    pub pulls: u64,
}

/// The judgement on the samples.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// The third sixth.
    pub before: Level,
    /// The last sixth.
    pub after: Level,
    /// The growth of memory that is allowed, in KiB.
    pub memory_kib: u64,
    /// The maximum of each in one sample: memory in KiB, handles, keepers, zombies, folders of runs.
    pub most: [u64; 5],
    /// The errors.
    pub wrong: Vec<String>,
}

/// Judges the samples of a run, in the order in which they were taken.
pub fn judge(samples: &[Sample], bounds: Bounds) -> Judgement {
    let sixth = samples.len() / 6;
    let before = level(&samples[2 * sixth..3 * sixth]);
    let after = level(&samples[samples.len() - sixth..]);
    let top = |of: fn(&Sample) -> u64| samples.iter().map(of).max().unwrap_or(0);
    let most = [
        top(|sample| sample.rss_kib),
        top(|sample| sample.handles),
        top(|sample| sample.keepers),
        top(|sample| sample.zombies),
        top(|sample| sample.runs),
    ];
    let pulls = after.pulls.saturating_sub(before.pulls);
    let memory_kib = bounds.memory_of(samples, &before);
    let mut wrong = Vec::new();
    let mut rises = |what: &str, from: u64, to: u64, by: u64| {
        if to > from + by {
            wrong.push(format!(
                "{what} rose from {from} to {to}, at most {by} more are accounted for"
            ));
        }
    };
    rises(
        "resident memory in KiB",
        before.rss_kib,
        after.rss_kib,
        memory_kib,
    );
    rises("handles", before.handles, after.handles, bounds.handles);
    rises("threads", before.threads, after.threads, bounds.handles);
    rises(
        "files below .settled",
        before.own_files,
        after.own_files,
        bounds.own_files + pulls,
    );
    if most[4] > bounds.runs {
        wrong.push(format!(
            "{} folders of runs, at most {} are kept",
            most[4], bounds.runs
        ));
    }
    let unwaited_ms = top(|sample| sample.unwaited_ms);
    if unwaited_ms > UNWAITED_MS {
        wrong.push(format!(
            "a child that ended was not waited for within {unwaited_ms} ms"
        ));
    }
    Judgement {
        before,
        after,
        memory_kib,
        most,
        wrong,
    }
}

/// Adds an even leak over the run to the samples, to check that it is noticed.
pub fn with_leak(samples: &[Sample], kib: u64, handles: u64) -> Vec<Sample> {
    let count = samples.len().max(1) as u64;
    let rise = |n: usize, whole: u64| whole * n as u64 / count;
    let leaking = |(n, sample): (usize, &Sample)| Sample {
        rss_kib: sample.rss_kib + rise(n, kib),
        handles: sample.handles + rise(n, handles),
        ..*sample
    };
    samples.iter().enumerate().map(leaking).collect()
}

/// Returns the smallest even leak that is noticed: of memory in KiB, in steps of 256, and of handles.
pub fn noticed(samples: &[Sample], bounds: Bounds) -> (u64, u64) {
    let is_noticed = |kib, handles| {
        !judge(&with_leak(samples, kib, handles), bounds)
            .wrong
            .is_empty()
    };
    let first = |found: Option<u64>| found.expect("a large enough loss is noticed");
    let kib = (0..).map(|step| step * 256).find(|kib| is_noticed(*kib, 0));
    (
        first(kib),
        first((0..).find(|handles| is_noticed(0, *handles))),
    )
}

fn level(samples: &[Sample]) -> Level {
    let middle = |of: &dyn Fn(&Sample) -> u64| {
        let mut all: Vec<u64> = samples.iter().map(of).collect();
        all.sort_unstable();
        all.get(all.len() / 2).copied().unwrap_or(0)
    };
    let held = |sample: &Sample| sample.keepers * Bounds::HANDLES_PER_KEEPER;
    Level {
        rss_kib: middle(&|sample| sample.rss_kib),
        handles: middle(&|sample| sample.handles.saturating_sub(held(sample))),
        threads: middle(&|sample| sample.threads.saturating_sub(sample.keepers)),
        own_files: middle(&|sample| sample.own_files),
        reviews: middle(&|sample| sample.reviews),
        messages: middle(&|sample| sample.messages),
        pulls: middle(&|sample| sample.pulls),
    }
}

impl fmt::Display for Judgement {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, after) = (&self.before, &self.after);
        let [rss, handles, keepers, zombies, runs] = self.most;
        writeln!(
            to,
            "| | third sixth | last sixth | may rise by | most in one look |"
        )?;
        writeln!(to, "|---|---:|---:|---:|---:|")?;
        let (from, until) = (before.rss_kib, after.rss_kib);
        writeln!(
            to,
            "| resident memory, KiB | {from} | {until} | {} | {rss} |",
            self.memory_kib
        )?;
        writeln!(
            to,
            "| handles beside keepers' | {} | {} | 8 | {handles} with them |",
            before.handles, after.handles
        )?;
        writeln!(
            to,
            "| threads beside keepers' | {} | {} | 8 | |",
            before.threads, after.threads
        )?;
        writeln!(
            to,
            "| files below `.settled` beside runs | {} | {} | 8 | |",
            before.own_files, after.own_files
        )?;
        writeln!(
            to,
            "| pull requests reported | {} | {} | | |",
            before.pulls, after.pulls
        )?;
        writeln!(
            to,
            "| reviews known | {} | {} | | |",
            before.reviews, after.reviews
        )?;
        writeln!(
            to,
            "| messages judged | {} | {} | | |",
            before.messages, after.messages
        )?;
        write!(
            to,
            "\nAt most {keepers} keepers, {zombies} zombies and {runs} folders of runs in one look."
        )
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            at_ms,
            rss_kib,
            handles,
            threads,
            keepers,
            reviews,
            messages,
            ..
        } = self;
        write!(
            to,
            "{:.0} s: {rss_kib} KiB, {handles} handles, {threads} threads, {keepers} keepers, {reviews} reviews, {messages} messages",
            *at_ms as f64 / 1000.0
        )
    }
}
