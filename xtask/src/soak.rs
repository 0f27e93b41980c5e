//! `cargo xtask soak`: hours of mixed traffic in minutes, sampled all the time. The long form of
//! `tests/it/endurance.rs`.

use std::time::Duration;

use clap::Args as ClapArgs;
use settled_torture::soak::judge::Sample;
use settled_torture::soak::{self, Plan};

/// Let agents of every kind write to a daemon for a while, and look whether anything grows or never ends
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// How many minutes new reviews are opened
    #[arg(long, value_name = "N", default_value_t = 4)]
    minutes: u64,
    /// What all chance is made from
    #[arg(long, value_name = "S", default_value_t = 20_261_122)]
    seed: u64,
    /// The milliseconds between two looks at the daemon
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
