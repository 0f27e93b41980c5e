//! `cargo xtask fuzz`: each reader under libFuzzer for a while, starting from the corpus of the tests;
//! `settled_tests::readers` has the readers' promises. And `cargo xtask fuzz daemon`: the whole daemon, the long form
//! of `tests/it/fuzz.rs`.
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use settled_tests::{binaries, hostile, readers, repository};
use settled_torture::fuzz::{self, Plan, Report};

/// The targets, and the directories of the repository with their seeds.
const TARGETS: [(&str, &[&str]); 5] = [
    ("message", &["packets/valid", "packets/invalid"]),
    (
        "packet",
        &[
            "packets/findings",
            "packets/findings/invalid",
            "packets/handoff",
        ],
    ),
    ("ledger", &[]),
    ("cursor", &[]),
    ("config", &[]),
];

/// The largest file that a reader accepts, plus one byte.
const BYTES_MAX: usize = 256 * 1024 + 1;

const INSTALL: &str = "cargo-fuzz is not installed. It needs no nightly toolchain here:\n\n    \
    cargo install cargo-fuzz --locked\n\nand a C++ compiler (Debian: apt install g++).";

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// What to fuzz, and for how long.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Fuzz only these: message, packet, ledger, cursor, config; `daemon` runs only if named
    #[arg(value_name = "TARGET")]
    only: Vec<String>,
    /// Seconds for each parser
    #[arg(long, default_value_t = 120)]
    seconds: u32,
    /// Minutes for the daemon
    #[arg(long, value_name = "N", default_value_t = 2)]
    minutes: u64,
    /// Number of the daemon's first case; later cases count up from it
    #[arg(long, value_name = "S", default_value_t = 20_261_123)]
    seed: u64,
    /// Maximum number of daemon cases; 1 with `--seed` repeats a failed one
    #[arg(long, value_name = "N", default_value_t = u64::MAX)]
    cases: u64,
}

/// The target that is not a reader.
const DAEMON: &str = "daemon";

/// The cases between two lines of progress.
const PROGRESS: u64 = 50;

/// Runs the targets one after the other; returns false if one failed.
pub(crate) fn run(args: &Args) -> Result<bool> {
    let is_target =
        |only: &String| only == DAEMON || TARGETS.iter().any(|(target, _)| target == only);
    if let Some(stranger) = args.only.iter().find(|only| !is_target(only)) {
        return Err(format!("`{stranger}` is no target").into());
    }
    let mut is_good = true;
    if args.only.iter().any(|only| only == DAEMON) {
        is_good = run_daemon(args);
        if args.only.len() == 1 {
            return Ok(is_good);
        }
    }
    if !cargo_fuzz().arg("--version").output()?.status.success() {
        return Err(INSTALL.into());
    }
    println!(
        "{:<8} {:>12} {:>8} {:>10} {:>9}",
        "target", "executions", "/s", "new inputs", "coverage"
    );
    for (target, seeds) in TARGETS {
        if args.only.is_empty() || args.only.iter().any(|only| only == target) {
            is_good &= run_one(target, seeds, args.seconds)?;
        }
    }
    Ok(is_good)
}

/// Fuzzes the whole daemon; returns true if nothing was wrong.
fn run_daemon(args: &Args) -> bool {
    let plan = Plan {
        seed: args.seed,
        length: Duration::from_secs(60 * args.minutes),
        cases: args.cases,
        keep: binaries::target().join("fuzz-daemon"),
    };
    let report = fuzz::fuzz(&plan, &tell);
    for wrong in &report.wrong {
        println!("{wrong}\n");
    }
    println!("{report}");
    report.wrong.is_empty()
}

#[expect(clippy::print_stderr, reason = "progress is not the result")]
fn tell(report: &Report) {
    if report.cases.is_multiple_of(PROGRESS) {
        eprintln!("{report}");
    }
}

fn run_one(target: &str, seeds: &[&str], seconds: u32) -> Result<bool> {
    let corpus = fuzz().join("corpus").join(target);
    std::fs::create_dir_all(&corpus)?;
    for (name, bytes) in more_seeds(target) {
        std::fs::write(corpus.join(name), bytes)?;
    }
    let output = cargo_fuzz()
        .args(["run", target])
        .arg(&corpus)
        .args(seeds.iter().map(|seed| repository().join(seed)))
        .arg("--")
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-max_len={BYTES_MAX}"))
        .args(["-print_final_stats=1", "-timeout=10", "-rss_limit_mb=2048"])
        .stdin(Stdio::null())
        .output()?;
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let stat =
        |name: &str| last(&told, &format!("stat::{name}:")).unwrap_or_else(|| "?".to_owned());
    println!(
        "{target:<8} {:>12} {:>8} {:>10} {:>9}{}",
        stat("number_of_executed_units"),
        stat("average_exec_per_sec"),
        stat("new_units_added"),
        last(&told, " cov:").unwrap_or_else(|| "?".to_owned()),
        if output.status.success() {
            ""
        } else {
            "   FAILED"
        },
    );
    if !output.status.success() {
        println!("{}", failure(&output));
    }
    Ok(output.status.success())
}

/// The first word after the last occurrence of `name`.
fn last(told: &str, name: &str) -> Option<String> {
    let (_, behind) = told.rsplit_once(name)?;
    behind.split_whitespace().next().map(str::to_owned)
}

/// The end of a failed run's output: the panic, and the path of the input.
fn failure(output: &Output) -> String {
    let told = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = told.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}

/// Seeds that are generated rather than stored.
fn more_seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let (ledger, cursor) = readers::seeds();
    let named = |name: &str, bytes: Vec<u8>| (format!("seed-{name}"), bytes);
    match target {
        "message" | "packet" => {
            let of = |document: &hostile::Hostile| match &document.packet {
                Some(packet) => ("packet", packet.clone()),
                None => ("message", document.message.clone()),
            };
            let all: Vec<_> = hostile::documents().iter().map(of).collect();
            let fit = all
                .into_iter()
                .enumerate()
                .filter(|(_, (kind, _))| *kind == target);
            fit.map(|(number, (_, bytes))| named(&format!("hostile-{number}"), bytes))
                .collect()
        }
        "ledger" => [0, 1]
            .map(|mode| named(&mode.to_string(), [&[mode], ledger.as_slice()].concat()))
            .to_vec(),
        "cursor" => vec![named("whole", cursor)],
        _ => vec![named(
            "template",
            workspace::config::TEMPLATE
                .replace("\n#: ", "\n")
                .into_bytes(),
        )],
    }
}

/// The stable compiler accepts the sanitizer's flags only with this variable.
fn cargo_fuzz() -> Command {
    let mut command = Command::new("cargo");
    command
        .arg("fuzz")
        .current_dir(fuzz())
        .env("RUSTC_BOOTSTRAP", "1");
    command
}

fn fuzz() -> PathBuf {
    Path::new(repository()).join("tests/fuzz")
}
