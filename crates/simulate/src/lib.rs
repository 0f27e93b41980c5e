//! A run of the real rules without a disk and without a clock: scenarios, which are also our own
//! tests of the rules (`tests/scenarios`), and a ledger under another policy.
//!
//! Begin with `format` (what a scenario says), then `run` (step after step), then `table` (where it
//! happens). Every message goes through the calls that the desk makes for a file.

mod again;
mod alone;
mod compose;
mod deeds;
mod findings;
mod format;
pub mod github;
mod outcome;
mod print;
mod reader;
mod replay;
mod run;
mod settings;
pub mod states;
mod submit;
mod table;
mod yaml;

use std::path::Path;

pub use again::{Again, Unlike};
pub use format::{Profile, Scenario, ScenarioError};
pub use outcome::{Outcome, Weight};
pub use print::{mismatches, text};
pub use replay::{Difference, Replay, Standing, replay, told};
pub use run::{Mismatch, Played, Transcript};

/// The JSON Schema of a scenario, for editors and for whoever writes them.
pub const SCHEMA: &str = include_str!("../../../schemas/scenario.schema.json");

/// Reads a scenario and runs it; `file` is for errors only.
pub fn simulate(bytes: &[u8], file: &Path) -> Result<Transcript, ScenarioError> {
    let scenario = Scenario::parse(bytes, file)?;
    run::run(&scenario).map_err(|wrong| ScenarioError {
        file: file.to_owned(),
        line: wrong.place.line,
        column: wrong.place.column,
        message: wrong.message,
    })
}
