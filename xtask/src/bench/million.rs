//! A ledger of a million records: the start with and without a snapshot, and the times of commands, each beside reading
//! the same bytes.

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use super::figures::{Result, quantile};
use super::ground::Ground;
use super::{idle, long_ledger, room};

/// The number of times each command runs.
const TIMES: usize = 50;

/// The most records after the newest snapshot, before the next one is made.
const BEHIND: usize = 999;

pub(crate) fn run(ground: &Ground, records: usize) -> Result<()> {
    let root = ground.fresh("million")?;
    long_ledger::make(&root, records)?;
    // A real ledger grows for months: a start must not wait for the flush of its creation.
    rustix::fs::sync();
    let (bytes, read) = reading(&root.join(".settled/ledger"))?;
    println!(
        "a ledger of {records} records, {bytes:.0} MiB: finished reviews, each a request and an approval"
    );
    println!("  reading its bytes                     {read:>9.2} s");
    let (took, most) = start(&root)?;
    println!(
        "  the first start, without a snapshot   {took:>9.2} s   {:>6.1} times   {most:>7.1} MiB at most   to reach: 10 s, 200 MiB",
        took / read
    );
    let (bytes, read) = reading(&root.join(".settled/snapshots"))?;
    println!("  reading the {bytes:.0} MiB of its snapshots {read:>10.2} s");
    let (took, most) = start(&root)?;
    println!(
        "  the next start, from them             {took:>9.2} s   {:>6.1} times   {most:>7.1} MiB at most   to reach: 1.5 s, 200 MiB",
        took / read
    );
    let served = room::Served::start(&root)?;
    println!(
        "  resident memory while serving         {:>9.1} MiB",
        idle::resident_kib(served.pid())? / 1024.0
    );
    commands(&root, records, "right behind a snapshot")?;
    drop(served);
    for number in 0..BEHIND {
        std::fs::write(
            root.join(format!("agents/claude/outbox/{number:06}.yaml")),
            room::request(number + 1),
        )?;
    }
    room::once(&root)?;
    let served = room::Served::start(&root)?;
    commands(&root, records, &format!("{BEHIND} open reviews later"))?;
    drop(served);
    std::fs::write(root.join("agents/claude/outbox/none.yaml"), "no message")?;
    room::refusing(&root)?;
    let served = room::Served::start(&root)?;
    commands(&root, records, "and beside a refused file")?;
    drop(served);
    println!();
    Ok(())
}

fn commands(root: &Path, records: usize, when: &str) -> Result<()> {
    println!("  {TIMES} runs of each, {when}         median        p99   to reach: 20 ms");
    let middle = (4_200_000 + records / 4).to_string();
    let asked: [(&str, &[&str]); 5] = [
        ("settled log -n 5", &["log", "-n", "5"]),
        ("settled why PR", &["why", &middle]),
        ("settled status", &["status"]),
        ("settled status --json", &["status", "--json"]),
        ("settled inbox", &["inbox"]),
    ];
    for (name, args) in asked {
        let mut times = Vec::new();
        for _ in 0..TIMES {
            let begin = Instant::now();
            let done = Command::new(room::settled())
                .args(args)
                .env("SETTLED_ROOT", root)
                .env("SETTLED_AGENT", "claude")
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .status()?;
            times.push(begin.elapsed().as_secs_f64() * 1e3);
            if !done.success() {
                return Err(format!("{name}: {done}").into());
            }
        }
        let (median, most) = (quantile(&mut times, 0.5), quantile(&mut times, 0.99));
        println!("    {name:<36} {median:>9.1} ms {most:>7.1} ms");
    }
    Ok(())
}

/// The MiB of a directory's files, and the seconds to read them, from memory as far as they fit.
fn reading(directory: &Path) -> Result<(f64, f64)> {
    let mut buffer = vec![0; 1 << 20];
    let (mut bytes, begin) = (0, Instant::now());
    for file in std::fs::read_dir(directory)? {
        let mut file = std::fs::File::open(file?.path())?;
        loop {
            match file.read(&mut buffer)? {
                0 => break,
                taken => bytes += taken,
            }
        }
    }
    Ok((bytes as f64 / 1_048_576.0, begin.elapsed().as_secs_f64()))
}

/// Runs `serve --once`; returns its seconds, and its peak memory in MiB.
fn start(root: &Path) -> Result<(f64, f64)> {
    let begin = Instant::now();
    let mut child = Command::new(room::settled())
        .args(["serve", "--once"])
        .arg(root)
        .env("SETTLED_LOG", "warn")
        .stdout(Stdio::null())
        .spawn()?;
    let mut most: f64 = 0.0;
    loop {
        if let Some(status) = child.try_wait()? {
            let took = begin.elapsed().as_secs_f64();
            return if status.success() {
                Ok((took, most))
            } else {
                Err(format!("serve --once: {status}").into())
            };
        }
        // A process that has just ended has no memory left.
        most = most.max(idle::peak_kib(child.id()).unwrap_or(0.0) / 1024.0);
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}
