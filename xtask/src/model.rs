//! `cargo xtask model`: every walk of the rules with its figures, and the path to each breach.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::thread::available_parallelism;
use std::time::Instant;

use clap::Args as ClapArgs;
use settled_model::{Invariant, all, run_all};

/// Walk every reachable state of a review; check every law at every step
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Walk only those whose name begins with this
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
}

#[expect(clippy::print_stderr, reason = "progress is not the result")]
fn begin(name: &str) {
    eprintln!("walking: {name}");
}

/// Runs the walks; returns true if every law held.
pub(crate) fn run(args: &Args) -> bool {
    let threads = available_parallelism().map_or(1, NonZeroUsize::get);
    let began = Instant::now();
    let (mut ends, mut codes) = (BTreeMap::<String, u64>::new(), BTreeSet::new());
    let (mut states, mut steps, mut broken) = (0, 0, 0);
    let is_asked = |name: &str| {
        args.only
            .as_ref()
            .is_none_or(|only| name.starts_with(only.as_str()))
    };
    let walks = all()
        .into_iter()
        .filter(|bounds| is_asked(bounds.name()))
        .collect();
    for report in run_all(walks, threads, &begin) {
        println!("{report}");
        states += report.states;
        steps += report.steps();
        broken += report.broken.len();
        codes.extend(report.codes);
        for (end, count) in report.ends {
            *ends.entry(end).or_default() += count;
        }
    }
    println!("\nends met, in so many states:");
    ends.iter()
        .for_each(|(end, count)| println!("    {end}: {count}"));
    let codes: Vec<&str> = codes.iter().map(|code| code.as_str()).collect();
    println!("\nrefused with: {}", codes.join(", "));
    println!("\non every step of every walk:");
    for sentence in Invariant::ALL.iter().map(|invariant| invariant.sentence()) {
        println!("    {sentence}");
    }
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "\n{states} states, {steps} steps, {threads} threads, {seconds:.1} s: {broken} laws broken"
    );
    broken == 0
}
