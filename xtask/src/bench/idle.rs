//! An idle daemon: processor time and resident memory, for workspaces of any size.

use std::path::Path;
use std::time::{Duration, Instant};

use nix::time::ClockId;
use nix::unistd::Pid;

use super::figures::Result;
use super::ground::Ground;
use super::room;

/// The number of reviews whose request nobody has taken.
const UNTAKEN: usize = 2_000;

/// The number of messages left in an inbox.
const UNREAD: usize = 50_000;

/// The most that an idle daemon may use, in percent of a core.
const PERCENT_MAX: f64 = 0.1;

/// A daemon's start counts as over once the daemon has been idle for `REST`, or after `REST_MAX`: for minutes it looks now
/// and then at the originals that it put away last.
const REST: Duration = Duration::from_secs(10);
const REST_MAX: Duration = Duration::from_secs(180);

pub(crate) fn run(ground: &Ground, seconds: u64) -> Result<()> {
    println!("idle daemon, two agents, {seconds} s        processor      resident memory");
    let root = ground.fresh("idle")?;
    room::init(&root)?;
    let nothing = line("empty workspace", &root, seconds)?;
    for number in 1..=UNTAKEN {
        let path = root.join(format!("agents/claude/outbox/{number:06}.yaml"));
        std::fs::write(path, room::request(number))?;
    }
    room::once(&root)?;
    let untaken = line(&format!("{UNTAKEN} untaken reviews"), &root, seconds)?;

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
    let unread = line(&format!("{UNREAD} unread messages"), &root, seconds)?;
    println!(
        "  to reach                               {PERCENT_MAX:>9.4} %        15.0 MiB, if the workspace is empty\n"
    );
    if [nothing, untaken, unread]
        .iter()
        .all(|percent| *percent <= PERCENT_MAX)
    {
        Ok(())
    } else {
        Err(format!("idle: more than {PERCENT_MAX} % of a core").into())
    }
}

/// Measures a daemon once it is idle; returns the share of a core that it uses, in percent.
fn line(what: &str, root: &Path, seconds: u64) -> Result<f64> {
    let served = room::Served::start(root)?;
    let began = Instant::now();
    loop {
        let percent = used(served.pid(), REST)?;
        if percent <= PERCENT_MAX || began.elapsed() > REST_MAX {
            break;
        }
    }
    let percent = used(served.pid(), Duration::from_secs(seconds))?;
    println!(
        "  {what:<38} {percent:>9.4} % {:>14.1} MiB{}",
        resident_kib(served.pid())? / 1024.0,
        if percent > PERCENT_MAX { "  OVER" } else { "" }
    );
    Ok(percent)
}

/// Returns the share of a core that a process uses from now on for so long, in percent.
pub(crate) fn used(pid: u32, time: Duration) -> Result<f64> {
    let before = processor_s(pid)?;
    std::thread::sleep(time);
    Ok(100.0 * (processor_s(pid)? - before) / time.as_secs_f64())
}

/// Returns the processor time of a process in seconds, by the clock of the kernel's scheduler: `/proc/PID/stat` counts in
/// steps of 10 ms, a third of what an idle daemon may use in 30 s.
pub(crate) fn processor_s(pid: u32) -> Result<f64> {
    let pid = Pid::from_raw(i32::try_from(pid)?);
    let time = ClockId::pid_cpu_clock_id(pid)?.now()?;
    Ok(Duration::from(time).as_secs_f64())
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
