//! `validate-message` beside other tools that check such files: one cold file, many files, memory, and the findings in
//! a hundred broken messages. `measure` runs each tool in a process without other children, so that the memory is that
//! of one tool.
//!
//! The peers check only the envelope, because they cannot check a body. If a peer is not in the registries, its row
//! says so.

mod messages;
mod peers;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::resource::{UsageWho, getrusage};

use settled_tests::hostile::Hostile;

use super::figures::{Result, quantile};
use super::{ground, room};
use peers::{FASTEST, Peer};

/// The number of checks of one file, and of many by the two tools that are compared; the median counts.
const COLD_ROUNDS: usize = 20;
const MANY_ROUNDS: usize = 9;

/// The targets: our processor time as a multiple of that of [`FASTEST`], for one cold file and for 10 000.
const COLD_MAX: f64 = 1.0;
const MANY_MAX: f64 = 0.9;

/// The cost of one run of a program.
pub(super) struct Cost {
    pub(super) wall_s: f64,
    pub(super) cpu_s: f64,
    peak_mib: f64,
    is_success: bool,
}

/// Runs a program and prints its cost, as the measuring process.
pub(crate) fn measure(command: &[String]) -> Result<()> {
    let (program, args) = command.split_first().ok_or("a program to measure")?;
    let start = std::time::Instant::now();
    let output = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .output()?;
    let wall = start.elapsed().as_secs_f64();
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let seconds =
        |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    let cpu = seconds(usage.user_time()) + seconds(usage.system_time());
    println!(
        "{wall} {cpu} {} {}",
        usage.max_rss() as f64 / 1024.0,
        output.status.success()
    );
    std::io::Write::write_all(&mut std::io::stderr(), &output.stderr)?;
    Ok(())
}

/// The cost of a run that finds nothing wrong.
pub(super) fn cost(command: Vec<String>) -> Result<Cost> {
    let program = command[0].clone();
    let cost = cost_of_any(command)?;
    if cost.is_success {
        Ok(cost)
    } else {
        Err(format!("{program} finds a fault in what is correct").into())
    }
}

fn cost_of_any(command: Vec<String>) -> Result<Cost> {
    let output = Command::new(std::env::current_exe()?)
        .arg("measure")
        .arg("--")
        .args(command)
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stdout).into());
    }
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let figures = said.lines().next().ok_or("nothing was measured")?;
    let mut figures = figures.split(' ');
    let mut next = || {
        figures
            .next()
            .ok_or("four figures")?
            .parse::<f64>()
            .map_err(|_| "a figure")
    };
    let (wall_s, cpu_s, peak_mib) = (next()?, next()?, next()?);
    Ok(Cost {
        wall_s,
        cpu_s,
        peak_mib,
        is_success: figures.next() == Some("true"),
    })
}

pub(crate) fn run(files_max: usize) -> Result<()> {
    let place = ground::target().join("bench-validate");
    std::fs::create_dir_all(&place)?;
    let messages = messages::lay(&place, files_max)?;
    let peers = peers::all(&place)?;
    println!("one file cold ({COLD_ROUNDS} rounds, medians)");
    let mut of = BTreeMap::new();
    for peer in &peers {
        let (mut wall, mut cpu, mut peak) = (Vec::new(), Vec::new(), 0.0_f64);
        for _ in 0..COLD_ROUNDS {
            let cost = cost(peer.command(&messages[..1]))?;
            wall.push(cost.wall_s * 1e3);
            cpu.push(cost.cpu_s * 1e3);
            peak = peak.max(cost.peak_mib);
        }
        let (wall, cpu) = (quantile(&mut wall, 0.5), quantile(&mut cpu, 0.5));
        of.insert(peer.name, cpu);
        println!(
            "  {:<34} {wall:>9.1} ms wall {cpu:>9.1} ms CPU {peak:>7.1} MiB",
            peer.name
        );
    }
    ratio(&of, COLD_MAX);
    for count in [1_000, files_max] {
        println!("\n{count} files");
        let mut ours: Option<f64> = None;
        for peer in &peers {
            let count = count.min(peer.files_max);
            let is_compared = ours.is_none() || peer.name == FASTEST;
            let rounds = if is_compared { MANY_ROUNDS } else { 1 };
            let costs = (0..rounds).map(|_| cost(peer.command(&messages[..count])));
            let mut costs = costs.collect::<Result<Vec<Cost>>>()?;
            costs.sort_by(|a, b| a.cpu_s.total_cmp(&b.cpu_s));
            let cost = &costs[rounds / 2];
            of.insert(peer.name, cost.cpu_s);
            let each = cost.wall_s / count as f64;
            let ratio = each / *ours.get_or_insert(each);
            println!(
                "  {:<34} {count:>6} files {:>8.2} s wall {:>8.2} s CPU {:>7.1} MiB   wall a file x {ratio:.1}",
                peer.name, cost.wall_s, cost.cpu_s, cost.peak_mib
            );
        }
    }
    ratio(&of, MANY_MAX);
    found(&peers, &place)
}

/// Prints our processor time as a multiple of the fastest peer's.
fn ratio(of: &BTreeMap<&str, f64>, to_reach: f64) {
    println!(
        "  processor time, ours by that of {FASTEST}: {:.2}   to reach: {to_reach}",
        of["validate-message"] / of[FASTEST]
    );
}

/// The calls of `validate-message`, the milliseconds allowed for the worst file, and the number of times each runs.
const ASKED: [(&str, &[&str], f64); 3] = [
    ("validate-message FILE", &[], 20.0),
    ("validate-message fmt --diff FILE", &["fmt", "--diff"], 50.0),
    (
        "validate-message --fix --diff FILE",
        &["--fix", "--diff"],
        50.0,
    ),
];
const ROUNDS: usize = 5;

/// Measures our processor time for expensive files; fails if one takes too long.
pub(crate) fn hostile() -> Result<()> {
    room::build_package("validate-message-cli")?;
    let place = ground::target().join("bench-hostile");
    std::fs::create_dir_all(&place)?;
    let documents = settled_tests::hostile::documents();
    let mut over = 0;
    for (name, words, ms_max) in ASKED {
        let mut costs = Vec::new();
        for document in &documents {
            costs.push((hostile_ms(&place, document, words)?, document.name));
        }
        costs.sort_by(|a, b| b.0.total_cmp(&a.0));
        println!(
            "{name}: the dearest of {} hostile files ({ROUNDS} rounds, medians); to reach: {ms_max} ms of processor time each",
            costs.len()
        );
        for (ms, name) in costs.iter().take(5) {
            println!("  {name:<60} {ms:>6.1} ms");
        }
        over += costs.iter().filter(|(ms, _)| *ms > ms_max).count();
        println!();
    }
    if over == 0 {
        Ok(())
    } else {
        Err(format!("{over} files take too long").into())
    }
}

fn hostile_ms(place: &Path, document: &Hostile, words: &[&str]) -> Result<f64> {
    let (file, packet) = (
        place.join("hostile.yaml"),
        place.join("hostile-packet.yaml"),
    );
    std::fs::write(&file, &document.message)?;
    let path = |path: &Path| path.display().to_string();
    let mut command = vec![path(&ground::target().join("release/validate-message"))];
    command.extend(words.iter().map(|word| (*word).to_owned()));
    command.push(path(&file));
    if let Some(bytes) = document.packet.as_ref().filter(|_| words.is_empty()) {
        std::fs::write(&packet, bytes)?;
        command.extend(["--packet".to_owned(), path(&packet)]);
    }
    let rounds = (0..ROUNDS).map(|_| cost_of_any(command.clone()).map(|cost| cost.cpu_s * 1e3));
    let mut rounds = rounds.collect::<Result<Vec<f64>>>()?;
    Ok(quantile(&mut rounds, 0.5))
}

/// Prints each tool's findings in a hundred broken messages, one process each.
fn found(peers: &[Peer], place: &Path) -> Result<()> {
    let broken = messages::broken(place)?;
    println!(
        "\n{} broken messages of six kinds, 16 of them only in the body",
        broken.len()
    );
    for peer in peers {
        let (mut seen, mut exact) = (0, 0);
        for message in &broken {
            let file: [PathBuf; 1] = [message.file.clone()];
            let command = peer.command(&file);
            let output = Command::new(&command[0])
                .args(&command[1..])
                .stdin(Stdio::null())
                .output()?;
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8_lossy(&said);
            seen += usize::from(!output.status.success());
            let place = format!(":{}:{}:", message.line, message.column);
            exact += usize::from(!output.status.success() && said.contains(&place));
        }
        println!(
            "  {:<34} {seen:>4} found {exact:>4} with file:line:column",
            peer.name
        );
    }
    Ok(())
}
