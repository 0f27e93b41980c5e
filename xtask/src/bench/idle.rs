//! An idle daemon: processor time and resident memory, for workspaces of any size.

use std::path::Path;
use std::time::{Duration, Instant};

use super::ground::Ground;
use super::{Result, room};

/// The number of reviews whose request nobody has taken.
const UNTAKEN: usize = 2_000;

/// The number of messages left in an inbox.
const UNREAD: usize = 50_000;

/// The time the daemon may take to become idle before the measurement.
const REST_MAX: Duration = Duration::from_secs(120);

pub(crate) fn run(ground: &Ground, seconds: u64) -> Result<()> {
    println!("idle daemon, two agents, {seconds} s        processor      resident memory");
    let root = ground.fresh("idle")?;
    room::init(&root)?;
    line("nothing lies about", &root, seconds, "   to reach: 15 MiB")?;
    for number in 1..=UNTAKEN {
        let path = root.join(format!("agents/claude/outbox/{number:06}.yaml"));
        std::fs::write(path, room::request(number))?;
    }
    room::once(&root)?;
    line(&format!("{UNTAKEN} untaken reviews"), &root, seconds, "")?;

    let root = ground.fresh("idle")?;
    room::init(&root)?;
    for number in 1..=UNREAD {
        // As many questions as one agent may send another within an hour.
        let from = format!("asks-{}", number / room::QUESTIONS_MAX);
        let outbox = root.join(format!("agents/{from}/outbox"));
        std::fs::create_dir_all(&outbox)?;
        let question = room::Kind::Question.message(number);
        let question = question.replace("from: claude", &format!("from: {from}"));
        std::fs::write(outbox.join(format!("{number:06}.yaml")), question)?;
    }
    room::once(&root)?;
    let unread = std::fs::read_dir(root.join("agents/codex/inbox"))?.count();
    if unread != UNREAD {
        return Err(format!("{unread} messages were delivered, expected {UNREAD}").into());
    }
    line(&format!("{UNREAD} unread messages"), &root, seconds, "")?;
    println!("  to reach                                  0.100 %\n");
    Ok(())
}

/// Measures a daemon once it is idle.
fn line(what: &str, root: &Path, seconds: u64, reach: &str) -> Result<()> {
    let served = room::Served::start(root)?;
    let began = Instant::now();
    loop {
        let before = ticks(served.pid())?;
        std::thread::sleep(Duration::from_secs(4));
        // Two sweeps that cost less than a hundredth of the processor.
        if ticks(served.pid())? - before <= 4 || began.elapsed() > REST_MAX {
            break;
        }
    }
    let before = ticks(served.pid())?;
    std::thread::sleep(Duration::from_secs(seconds));
    let used = ticks(served.pid())? - before;
    let per_s = rustix::param::clock_ticks_per_second();
    println!(
        "  {what:<38} {:>9.3} % {:>14.1} MiB{reach}",
        100.0 * used as f64 / per_s as f64 / seconds as f64,
        resident_kib(served.pid())? / 1024.0
    );
    Ok(())
}

/// Returns the processor time of a process in clock ticks, user and system (proc(5), fields 14 and 15).
pub(crate) fn ticks(pid: u32) -> Result<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let after_name = stat.rsplit(')').next().ok_or("no process name")?;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    Ok(fields[11].parse::<u64>()? + fields[12].parse::<u64>()?)
}

/// Returns the current memory of a process.
pub(crate) fn resident_kib(pid: u32) -> Result<f64> {
    of_status(pid, "VmRSS:")
}

/// Returns the peak memory of a process.
pub(crate) fn peak_kib(pid: u32) -> Result<f64> {
    of_status(pid, "VmHWM:")
}

fn of_status(pid: u32, name: &str) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .ok_or_else(|| format!("no {name}"))?;
    Ok(line.trim().trim_end_matches(" kB").trim().parse()?)
}
