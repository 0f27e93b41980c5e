//! `cargo xtask soak`: hours of mixed traffic in minutes, sampled all the time. The long form of
//! `tests/it/endurance.rs`.

use std::time::Duration;

use clap::Args as ClapArgs;
use settled_torture::soak::judge::Sample;
use settled_torture::soak::{self, Plan};

/// Load a daemon with agents of every kind; check that every review ends and nothing grows
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Minutes in which new reviews are opened
    #[arg(long, value_name = "N", default_value_t = 4)]
    minutes: u64,
    /// Seed of the random choices
    #[arg(long, value_name = "S", default_value_t = 20_261_122)]
    seed: u64,
    /// Milliseconds between two samples of the daemon
    #[arg(long, value_name = "MS", default_value_t = 250)]
    look: u64,
}

/// Runs it; returns true if nothing was wrong.
pub(crate) fn run(args: &Args) -> bool {
    let length = Duration::from_secs(60 * args.minutes);
    let report = soak::soak(
        &Plan {
            length,
            seed: args.seed,
            look: Duration::from_millis(args.look),
        },
        &tell,
    );
    println!("{report}");
    report.wrong.is_empty()
}

#[expect(clippy::print_stderr, reason = "progress is not the result")]
fn tell(sample: &Sample) {
    eprintln!("{sample}");
}
