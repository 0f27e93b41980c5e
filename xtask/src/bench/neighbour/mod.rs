//! The noisy neighbour: how a third agent, whose directories are as bad as we can make them, affects two agents that write to
//! each other, for each kind of noise beside the same two agents alone; and how long an order, a take and a deadline wait
//! beside messages that are held.

mod held;
mod noise;

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use settled_tests::{hostile, seed};

use super::figures::{Result, quantile};
use super::ground::Ground;
use super::{raw, room};
use noise::{Make, NOISES, Noise};

/// The agents: two that write to each other, an author, and its reviewer, the noisy one.
const AGENTS: &str = "ada,ben,claude,codex";

/// The number of messages measured beside each noise, and the pause between two of them.
const MESSAGES: usize = 400;
const PAUSE: Duration = Duration::from_millis(5);

/// The head start of the noise before the measurement.
const HEAD_START: Duration = Duration::from_millis(1_500);

/// A slower message counts as this long, and the next one is written.
const GIVE_UP: Duration = Duration::from_secs(30);

/// The targets: the others' median as a multiple of their quiet median, and their 99th percentile in milliseconds.
const RATIO_MAX: f64 = 3.0;
const P99_MS_MAX: f64 = 50.0;

/// How the daemon took the noise out of its outbox.
#[derive(Debug, Clone, Copy)]
struct Taking {
    files_per_second: f64,
    /// The time in which two agents wrote beside it.
    measured: Duration,
}

struct Latency {
    median_ms: f64,
    p99_ms: f64,
    max_ms: f64,
    /// The time that the disk and the scheduler take for the same bytes at the same time (append, sync, create,
    /// rename): the median and the 99th percentile.
    raw_ms: f64,
    raw_p99_ms: f64,
}

/// Measures what contains these words; fails if nothing does, or if a figure is over its limit.
pub(crate) fn run(ground: &Ground, only: &str) -> Result<()> {
    let noises: Vec<_> = NOISES
        .into_iter()
        .filter(|(name, _)| name.contains(only))
        .collect();
    let crowds = held::named(only);
    if noises.is_empty() && crowds.is_empty() {
        let names = NOISES.map(|(name, _)| name).into_iter();
        let names: Vec<String> = names.map(str::to_owned).chain(held::named("")).collect();
        let names = names.join("\n  ");
        return Err(format!("no noise contains {only:?}; there are\n  {names}").into());
    }
    println!("beside a noisy neighbour; load of the machine: {}", load());
    let mut over = of_noises(ground, &noises)?;
    over += held::run(ground, &crowds)?;
    let measured = noises.len() + crowds.len();
    println!("\n  {measured} measured, {over} over a limit\n");
    if over == 0 {
        Ok(())
    } else {
        Err(format!("neighbour: {over} of {measured} are over a limit").into())
    }
}

/// Measures messages beside each noise; returns the number of those over a limit.
fn of_noises(ground: &Ground, noises: &[(&str, Make)]) -> Result<usize> {
    if noises.is_empty() {
        return Ok(0);
    }
    println!("from close to visible in the inbox ({MESSAGES} messages each)");
    println!(
        "  to reach: {RATIO_MAX} times the quiet median of its own run, and {P99_MS_MAX} ms at the 99th percentile"
    );
    println!("  raw: append, sync, create and rename the same bytes at the same time");
    println!("  alone: the same calls beside the same noise for as long, and no daemon\n");
    println!(
        "  {:<36} {:>9} {:>9} {:>7} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "",
        "quiet ms",
        "median",
        "times",
        "quiet p99",
        "p99",
        "max",
        "raw quiet",
        "raw",
        "raw p99",
        "alone",
        "alone p99"
    );
    let mut over = 0;
    for (name, make) in noises {
        ground.clear()?;
        let (quiet, noisy, taking) = beside(ground, *make)?;
        ground.clear()?;
        let mut alone = without_daemon(ground, *make, taking)?;
        let times = noisy.median_ms / quiet.median_ms;
        let is_over = times > RATIO_MAX || noisy.p99_ms > P99_MS_MAX;
        over += usize::from(is_over);
        println!(
            "  {name:<36} {:>9.2} {:>9.2} {times:>7.1} {:>9.1} {:>9.1} {:>9.1} {:>9.2} {:>9.2} {:>9.1} {:>9.2} {:>9.1}{}",
            quiet.median_ms,
            noisy.median_ms,
            quiet.p99_ms,
            noisy.p99_ms,
            noisy.max_ms,
            quiet.raw_ms,
            noisy.raw_ms,
            noisy.raw_p99_ms,
            quantile(&mut alone, 0.5),
            quantile(&mut alone, 0.99),
            if is_over { "  OVER" } else { "" }
        );
    }
    Ok(over)
}

fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace()
        .next()
        .unwrap_or("unknown")
        .to_owned()
}

/// Measures the two agents alone, and then beside the noise, in one workspace with one daemon.
fn beside(ground: &Ground, make: Make) -> Result<(Latency, Latency, Taking)> {
    let root = &ground.fresh("neighbour")?;
    let mut limit = raw::Delivery::new(&ground.fresh("neighbour-raw")?)?;
    lay(root)?;
    let served = room::Served::start(root)?;
    let quiet = measure(root, "quiet", &mut limit)?;
    let (noisy, taking) = during(root, make, || measure(root, "noisy", &mut limit));
    // The backlog is not worth waiting for.
    served.kill();
    Ok((quiet, noisy?, taking))
}

/// Measures the raw calls alone beside the noise, as long as it was measured beside the daemon. Something other than a
/// daemon takes its files as fast as the daemon did, because most noises pause when their outbox is full: it renames them,
/// as the daemon does with what it refuses, and syncs nothing.
fn without_daemon(ground: &Ground, make: Make, taking: Taking) -> Result<Vec<f64>> {
    let root = &ground.fresh("neighbour")?;
    let mut limit = raw::Delivery::new(&ground.fresh("neighbour-raw")?)?;
    lay(root)?;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| put_away(root, &is_over, taking.files_per_second));
        let (measured, _) = during(root, make, || {
            let (began, mut ms) = (Instant::now(), Vec::new());
            // A disk that stalls ten times does so for one of a hundred calls or for one of a thousand: there are as many
            // calls as beside the daemon, in the same time.
            let step = taking.measured / u32::try_from(MESSAGES).expect("a few hundred");
            while ms.len() < MESSAGES && began.elapsed() < 2 * taking.measured {
                let text = text(&format!("raw-{}", ms.len()));
                // The first sync after a pause writes what the noise changed in the pause, here as in the daemon.
                ms.push(limit.deliver(text.as_bytes())?.as_secs_f64() * 1e3);
                limit.deliver(text.as_bytes())?;
                let next = step * u32::try_from(ms.len()).expect("at most as many");
                std::thread::sleep(next.saturating_sub(began.elapsed()));
            }
            Ok(ms)
        });
        is_over.store(true, Ordering::Relaxed);
        measured
    })
}

/// Moves messages out of the noisy outbox until the end, so many a second.
fn put_away(root: &Path, is_over: &AtomicBool, files_per_second: f64) {
    let agent = root.join("agents").join(hostile::AGENT);
    let (began, mut number) = (Instant::now(), 0);
    while !is_over.load(Ordering::Relaxed) {
        let due = files_per_second * began.elapsed().as_secs_f64() - f64::from(number);
        let files = std::fs::read_dir(agent.join("outbox"));
        let files = files.into_iter().flatten().filter_map(std::io::Result::ok);
        let files = files.filter(|file| file.path().extension() == Some("yaml".as_ref()));
        for file in files.take(due as usize) {
            // Its writer may have removed it.
            let _ = std::fs::rename(file.path(), agent.join(format!("dead_letter/{number}")));
            number += 1;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Makes a workspace with the four agents and an open request.
fn lay(root: &Path) -> Result<()> {
    room::init_for(root, AGENTS)?;
    std::fs::write(
        root.join("settled.toml"),
        "[limits]\nmessages_per_hour = 10000\nfiles_per_hour = 1000000\n",
    )?;
    std::fs::write(
        root.join("agents/claude/outbox/request.yaml"),
        hostile::request(),
    )?;
    Ok(())
}

/// Measures while the noise goes on, and ends it. Returns how its files were taken as well.
fn during<T>(root: &Path, make: Make, measure: impl FnOnce() -> Result<T>) -> (Result<T>, Taking) {
    let (is_over, is_laid) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let began = Instant::now();
        let noise = scope.spawn(|| {
            let mut noise = Noise::new(root, &is_over, &is_laid);
            make(&mut noise);
            noise.taken() as f64
        });
        while !is_laid.load(Ordering::Relaxed) {
            std::thread::sleep(PAUSE);
        }
        std::thread::sleep(HEAD_START);
        let (measuring, result) = (Instant::now(), measure());
        let measured = measuring.elapsed();
        is_over.store(true, Ordering::Relaxed);
        let taken = noise.join();
        let taken = taken.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let files_per_second = taken / began.elapsed().as_secs_f64();
        let taking = Taking {
            files_per_second,
            measured,
        };
        (result, taking)
    })
}

fn text(id: &str) -> String {
    let body = "What was changed, and why?\n".repeat(30);
    seed::note("question", id, "ada", "ben", &body)
}

fn measure(root: &Path, lot: &str, limit: &mut raw::Delivery) -> Result<Latency> {
    let outbox = root.join("agents/ada/outbox");
    let inbox = root.join("agents/ben/inbox");
    let (mut ms, mut raw_ms) = (Vec::new(), Vec::new());
    for number in 0..MESSAGES {
        let id = format!("{lot}-{number}");
        let text = text(&id);
        let name = format!("{id}.yaml");
        let seen = inbox.join(&name);
        let mut file = File::create_new(outbox.join(&name))?;
        file.write_all(text.as_bytes())?;
        let closed = Instant::now();
        drop(file);
        while !seen.exists() && closed.elapsed() < GIVE_UP {
            std::thread::sleep(room::GLANCE);
        }
        ms.push(closed.elapsed().as_secs_f64() * 1e3);
        raw_ms.push(limit.deliver(text.as_bytes())?.as_secs_f64() * 1e3);
        std::thread::sleep(PAUSE);
    }
    Ok(Latency {
        median_ms: quantile(&mut ms, 0.5),
        p99_ms: quantile(&mut ms, 0.99),
        max_ms: quantile(&mut ms, 1.0),
        raw_ms: quantile(&mut raw_ms, 0.5),
        raw_p99_ms: quantile(&mut raw_ms, 0.99),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_figures_has_a_row_for_every_noise_in_this_order() {
        let page = settled_tests::read(settled_tests::repository().join("docs/reliability.md"));
        let (_, table) = page
            .split_once("| the third agent writes |")
            .expect("the table of the noises");
        let rows = table
            .lines()
            .skip(2)
            .take_while(|line| line.starts_with('|'));
        let named = rows.filter_map(|row| Some(row.split('|').nth(1)?.trim().to_owned()));
        let named: Vec<String> = named.collect();
        assert_eq!(named, NOISES.map(|(name, _)| name));
    }
}
