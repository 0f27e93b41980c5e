//! A daemon with nothing to do: processor time and resident memory.

use std::time::Duration;

use super::ground::Ground;
use super::{Result, room};

pub(crate) fn run(ground: &Ground, seconds: u64) -> Result<()> {
    let root = ground.fresh("idle")?;
    room::init(&root)?;
    let served = room::Served::start(&root)?;
    std::thread::sleep(Duration::from_secs(1));
    let before = ticks(served.pid())?;
    std::thread::sleep(Duration::from_secs(seconds));
    let used = ticks(served.pid())? - before;
    let per_s = rustix::param::clock_ticks_per_second();
    println!("idle daemon, two agents, {seconds} s");
    println!(
        "  processor                             {:>9.3} %    to reach: 0.1 %",
        100.0 * used as f64 / per_s as f64 / seconds as f64
    );
    println!(
        "  resident memory                       {:>9.1} MiB  to reach: 15 MiB\n",
        resident_kib(served.pid())? / 1024.0
    );
    Ok(())
}

/// Processor time of a process in clock ticks, user and system (proc(5), fields 14 and 15).
fn ticks(pid: u32) -> Result<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let after_name = stat.rsplit(')').next().ok_or("no process name")?;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    Ok(fields[11].parse::<u64>()? + fields[12].parse::<u64>()?)
}

pub(crate) fn resident_kib(pid: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").trim().parse()?)
}
