//! `cargo xtask bench`: the real `settled` process against the raw cost of the same bytes, in one run on one file
//! system. Absolute times differ between machines; the ratios matter.

mod agents;
mod asks;
mod figures;
mod ground;
mod hostile;
mod hosts;
mod idle;
mod latency;
mod long_ledger;
mod million;
mod neighbour;
mod oacp;
mod older;
mod one;
mod page;
mod program;
mod raw;
mod room;
mod rules;
mod start;
mod validate;
mod waiting;

use std::path::PathBuf;

use figures::Result;
use ground::Ground;
pub(crate) use validate::measure;

/// The names of the measurements.
const NAMES: [&str; 18] = [
    "one",
    "waiting",
    "latency",
    "neighbour",
    "idle",
    "agents",
    "start",
    "million",
    "program",
    "asks",
    "page",
    "hosts",
    "join",
    "rules",
    "hostile",
    "oacp",
    "older",
    "validate",
];

/// What to measure, and where.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run only these
    #[arg(value_name = "WHAT", value_parser = clap::builder::PossibleValuesParser::new(NAMES))]
    only: Vec<String>,
    /// Directory to measure in [default: a fresh journaled ext4 image if this user may mount one, else target/bench]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Messages waiting in the outbox; with oacp, messages of all four writers
    #[arg(long, default_value_t = 10_000)]
    messages: usize,
    /// Records in the ledger at the start
    #[arg(long, default_value_t = 100_000)]
    records: usize,
    /// Open reviews while the rules alone are measured
    #[arg(long, default_value_t = 10_000)]
    reviews: usize,
    /// Only the neighbour's noises whose description contains this
    #[arg(long, default_value = "")]
    noise: String,
    /// The program `settled` of an older build, for `older`
    #[arg(long, value_name = "FILE")]
    older: Option<PathBuf>,
    /// Seconds for which the idle daemon is watched
    #[arg(long, default_value_t = 30)]
    idle_s: u64,
}

#[expect(clippy::print_stderr, reason = "progress is not the result")]
fn begin(name: &str) {
    eprintln!("measuring: {name}");
}

/// Measures; fails at the end if a figure of `neighbour`, `idle` or `older` is over its limit.
pub(crate) fn run(args: &Args) -> Result<()> {
    let mut over: Vec<String> = Vec::new();
    let wants = |name: &str| {
        let wants = args.only.is_empty() || args.only.iter().any(|only| only == name);
        if wants {
            begin(name);
        }
        wants
    };
    if wants("rules") {
        rules::run(args.reviews)?;
    }
    if wants("hostile") {
        hostile::run()?;
        validate::hostile()?;
    }
    // Not part of a plain run: it installs other people's tools.
    if args.only.iter().any(|only| only == "validate") {
        validate::run(args.messages)?;
    }
    let needs_no_disk = |only: &String| ["rules", "hostile", "validate"].contains(&only.as_str());
    if args.only.iter().all(needs_no_disk) && !args.only.is_empty() {
        return Ok(());
    }
    room::build()?;
    let ground = Ground::prepare(args.dir.as_deref())?;
    println!("measured on {}\n", ground.describe());
    if wants("one") {
        ground.clear()?;
        one::run(&ground)?;
    }
    if wants("waiting") {
        ground.clear()?;
        waiting::run(&ground, args.messages)?;
    }
    // Not part of a plain run: it needs another program.
    if args.only.iter().any(|only| only == "older") {
        begin("older");
        let older = args.older.as_deref();
        let older = older.ok_or("name the older `settled` with --older FILE")?;
        ground.clear()?;
        let measured = older::run(&ground, older, args.messages);
        over.extend(measured.err().map(|error| error.to_string()));
    }
    if wants("latency") {
        ground.clear()?;
        latency::run(&ground)?;
    }
    // Not part of a plain run: it takes minutes.
    if args.only.iter().any(|only| only == "neighbour") {
        let measured = neighbour::run(&ground, &args.noise);
        over.extend(measured.err().map(|error| error.to_string()));
    }
    if wants("idle") {
        ground.clear()?;
        let measured = idle::run(&ground, args.idle_s);
        over.extend(measured.err().map(|error| error.to_string()));
    }
    if wants("agents") {
        ground.clear()?;
        agents::run(&ground)?;
    }
    if wants("start") {
        ground.clear()?;
        start::run(&ground, args.records)?;
    }
    // Not part of a plain run: it takes minutes, and 4 GB for its million.
    if args.only.iter().any(|only| only == "million") {
        ground.clear()?;
        million::run(&ground, args.records)?;
    }
    if wants("program") {
        ground.clear()?;
        program::run(&ground)?;
    }
    if wants("asks") {
        ground.clear()?;
        asks::run(&ground, args.messages)?;
    }
    if wants("page") {
        ground.clear()?;
        page::run(&ground)?;
    }
    // Not part of a plain run: it starts three brokers, and takes minutes.
    if args.only.iter().any(|only| only == "hosts") {
        begin("hosts");
        ground.clear()?;
        hosts::run(&ground, args.records, args.idle_s)?;
    }
    // The last part of it.
    if args.only.iter().any(|only| only == "join") {
        begin("join");
        ground.clear()?;
        hosts::join_long(&ground, args.records)?;
    }
    if wants("oacp") {
        ground.clear()?;
        oacp::run(&ground, args.messages)?;
    }
    if over.is_empty() {
        Ok(())
    } else {
        Err(over.join("; ").into())
    }
}
