//! `cargo xtask powerloss`: cuts the power at any instant of a run, on a real file system with a recorded disk, or on a
//! simulated disk where that is unavailable. The output says which.

#![expect(clippy::print_stderr, reason = "progress is not part of the result")]

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args as ClapArgs;
use settled_tests::binaries;
use settled_torture::power::{Ground, Options, Report};

/// Cut the power at any instant of a run; check every promise on the disk that is left
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Number of crash states to try
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    states: usize,
    /// File system: ext4, xfs, btrfs or simulated
    #[arg(long = "fs", value_name = "NAME", default_value = "ext4")]
    ground: Ground,
    /// Rounds of messages in the recorded run
    #[arg(long, value_name = "N", default_value_t = 9)]
    rounds: usize,
    /// Seed of the random choices
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
}

/// Runs it; returns true if every promise was kept.
pub(crate) fn run(args: &Args) -> Result<bool, String> {
    let settled = settled()?;
    let mut ground = args.ground;
    if let Some(missing) = ground.lacks() {
        println!("no real file system here: {missing}; the simulated disk runs instead");
        ground = Ground::Simulated;
    }
    let told = |what: &str| eprintln!("{what}");
    let Args {
        states,
        rounds,
        seed,
        ..
    } = *args;
    let began = Instant::now();
    let options = Options {
        settled: &settled,
        states,
        rounds,
        seed,
        told: &told,
    };
    let report = ground.run(&options).map_err(|error| error.to_string())?;
    print(&report, seed, began.elapsed().as_secs_f64());
    // A state that could not be mounted proves nothing.
    Ok(report.wrong.is_empty() && report.unmountable.is_empty())
}

fn print(report: &Report, seed: u64, seconds: f64) {
    let rows = [
        ("crash states", report.states),
        ("of them cut a second time, in the recovery", report.second),
        ("recorded writes", report.writes),
        ("recorded flushes", report.flushes),
        ("records of the run", report.records),
        ("files taken while it ran", report.taken),
        ("files delivered again, each named", report.again),
        ("files found torn and made whole", report.mended),
        ("torn tails cut off the ledger, each kept", report.torn),
        (
            "states the kernel could not mount",
            report.unmountable.len(),
        ),
        ("promises broken", report.wrong.len()),
    ];
    println!(
        "| power loss on {}, seed {seed}, {seconds:.0} s | |\n|---|---:|",
        report.ground
    );
    rows.iter()
        .for_each(|(what, count)| println!("| {what} | {count} |"));
    report
        .unmountable
        .iter()
        .take(5)
        .for_each(|what| println!("not mounted: {what}"));
    report
        .wrong
        .iter()
        .take(50)
        .for_each(|what| println!("broken: {what}"));
}

/// The tested program, built like this one.
fn settled() -> Result<PathBuf, String> {
    let tool = std::env::current_exe().map_err(|error| error.to_string())?;
    let directory = tool
        .parent()
        .ok_or("cannot find this program's directory")?;
    let target = directory
        .parent()
        .ok_or("cannot find the target directory of this program")?;
    let profile = match directory.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(profile) => profile,
    };
    let built = binaries::cargo()
        .args([
            "build",
            "--quiet",
            "--package",
            "settled",
            "--bin",
            "settled",
            "--profile",
            profile,
        ])
        .arg("--target-dir")
        .arg(target)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
        .status()
        .map_err(|error| error.to_string())?;
    if built.success() {
        Ok(directory.join("settled"))
    } else {
        Err("settled does not build".to_owned())
    }
}
