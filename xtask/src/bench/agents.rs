//! A workspace with many agents: the time it takes to start, and the time two of them wait for each other's mail while
//! it sweeps and while as many more are added. Before or after each message the same bytes take the least calls of a
//! delivery: a stall that these have as well is the disk's.

use std::path::Path;
use std::time::{Duration, Instant};

use super::figures::{Result, quantile};
use super::ground::Ground;
use super::{idle, raw, room};

/// The number of agents at first, and the number added later.
const AGENTS: usize = 10_000;
const LATE: usize = 4_000;

/// The pause between two messages.
const PAUSE: Duration = Duration::from_millis(4);

/// The time for which latencies are measured.
const QUIET_FOR: Duration = Duration::from_secs(20);

pub(crate) fn run(ground: &Ground) -> Result<()> {
    let root = ground.fresh("agents")?;
    room::init(&root)?;
    for number in 0..AGENTS {
        std::fs::create_dir_all(root.join(format!("agents/crowd-{number:05}/outbox")))?;
    }
    println!("{AGENTS} agents, of whom two write to each other");
    let mut number = 0;
    let began = Instant::now();
    let (served, first_s, mut starting) = first_start(&root, &mut number)?;
    println!(
        "  first start, all mailboxes made       {:>9.2} s",
        began.elapsed().as_secs_f64()
    );
    println!("  its first message                     {first_s:>9.2} s");
    line("while it makes them", &mut starting);
    drop(served);
    let mut limit = raw::Delivery::new(&ground.fresh("agents-raw")?)?;
    let began = Instant::now();
    let served = room::Served::start(&root)?;
    println!(
        "  next start                            {:>9.2} s",
        began.elapsed().as_secs_f64()
    );
    let (mut quiet, mut raw) = latencies(&served, &mut number, &mut limit, &|| Ok(()))?;
    line("while it sweeps", &mut quiet);
    line("  the raw calls", &mut raw);
    let (mut late, mut raw) = latencies(&served, &mut number, &mut limit, &|| come(&root))?;
    line(&format!("while {LATE} more come"), &mut late);
    line("  the raw calls", &mut raw);
    println!(
        "  processor without mail                {:>9.3} %",
        idle::used(served.pid(), QUIET_FOR)?
    );
    println!(
        "  resident memory                       {:>9.1} MiB\n",
        idle::resident_kib(served.pid())? / 1024.0
    );
    Ok(())
}

fn come(root: &Path) -> Result<()> {
    for number in 0..LATE {
        std::fs::create_dir_all(root.join(format!("agents/late-{number:05}/outbox")))?;
    }
    Ok(())
}

/// Starts the daemon, and sends one message after the other until it says that it serves. Returns it, the seconds until the
/// first message arrived, and the milliseconds that each of the others took.
fn first_start(root: &Path, number: &mut usize) -> Result<(room::Served, f64, Vec<f64>)> {
    std::thread::scope(|scope| {
        let start = || room::Served::start(root).map_err(|error| error.to_string());
        let starting = scope.spawn(start);
        let first_s = arrival(root, number)? / 1e3;
        let mut times = Vec::new();
        while !starting.is_finished() {
            times.push(arrival(root, number)?);
            std::thread::sleep(PAUSE);
        }
        let served = starting.join().expect("it does not panic")?;
        Ok((served, first_s, times))
    })
}

/// Sends the next message, and returns the milliseconds from its rename into the outbox to its recipient's inbox.
fn arrival(root: &Path, number: &mut usize) -> Result<f64> {
    *number += 1;
    let name = format!("{number:06}.yaml");
    let outbox = root.join("agents/claude/outbox");
    let hidden = outbox.join(format!(".{name}.tmp"));
    std::fs::write(&hidden, room::Kind::Question.message(*number))?;
    let there = root.join("agents/codex/inbox").join(&name);
    let sent = Instant::now();
    std::fs::rename(&hidden, outbox.join(&name))?;
    while !there.exists() {
        if sent.elapsed() > QUIET_FOR {
            return Err(format!("{name} did not arrive").into());
        }
        std::thread::sleep(room::GLANCE);
    }
    Ok(sent.elapsed().as_secs_f64() * 1e3)
}

/// The milliseconds that each message took that was sent while `meanwhile` ran and until the time was over, and those that
/// the raw calls took for its bytes.
fn latencies(
    served: &room::Served,
    number: &mut usize,
    limit: &mut raw::Delivery,
    meanwhile: &(dyn Fn() -> Result<()> + Sync),
) -> Result<(Vec<f64>, Vec<f64>)> {
    std::thread::scope(|scope| {
        let busy = scope.spawn(move || meanwhile().map_err(|error| error.to_string()));
        let began = Instant::now();
        let (mut times, mut raw) = (Vec::new(), Vec::new());
        while began.elapsed() < QUIET_FOR && *number < room::QUESTIONS_MAX {
            // Whichever comes first waits for all that others have left to write, so they take turns.
            let is_raw_first = number.is_multiple_of(2);
            let text = room::Kind::Question.message(*number);
            let mut deliver = || -> Result<()> {
                raw.push(limit.deliver(text.as_bytes())?.as_secs_f64() * 1e3);
                Ok(())
            };
            if is_raw_first {
                deliver()?;
            }
            times.push(arrival(&served.root, number)?);
            if !is_raw_first {
                deliver()?;
            }
            std::thread::sleep(PAUSE);
        }
        busy.join().expect("it does not panic")?;
        Ok((times, raw))
    })
}

fn line(what: &str, times: &mut [f64]) {
    println!(
        "  latency {what:<29} {:>9.2} ms   p99 {:.2} ms   slowest {:.2} ms   to reach: 50 ms",
        quantile(times, 0.5),
        quantile(times, 0.99),
        quantile(times, 1.0)
    );
}
