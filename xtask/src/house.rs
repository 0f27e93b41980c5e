//! `cargo xtask house`: the figures of `docs/architecture.md`, counted from the sources.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use settled_tests::house::House;
use settled_tests::repository;

/// Count lines, public names, import circles and duplicate names of each room
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Another directory of crates, such as an older commit's
    #[arg(value_name = "CRATES")]
    crates: Option<PathBuf>,
}

/// Prints the figures; returns false if there is no room at all.
pub(crate) fn run(args: &Args) -> bool {
    let crates = args.crates.clone();
    let house = House::of(&crates.unwrap_or_else(|| repository().join("crates")));
    println!("{}\n{}", house.table(), house.sums());
    !house.rooms.is_empty()
}
