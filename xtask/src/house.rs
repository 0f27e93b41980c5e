//! `cargo xtask house`: the figures of `docs/architecture.md`, counted from the sources.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use settled_tests::house::{self, House};
use settled_tests::repository;

/// Count lines, public names, import circles and duplicate names of each room
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Another directory of crates, such as an older commit's
    #[arg(value_name = "CRATES")]
    crates: Option<PathBuf>,
}

/// A longer file may be more than one thought.
const LINES_WORTH_A_LOOK: usize = 600;

/// Prints the figures, and a warning for each long file; returns false if there is no room at all.
pub(crate) fn run(args: &Args) -> bool {
    let crates = args.crates.clone();
    let crates = crates.unwrap_or_else(|| repository().join("crates"));
    let house = House::of(&crates);
    println!("{}\n{}", house.table(), house.sums());
    for (file, lines) in house::long_files(&crates, LINES_WORTH_A_LOOK) {
        let file = file.display();
        println!("warning: {file} has {lines} lines; is it one thought?");
    }
    !house.rooms.is_empty()
}
