//! Runs the real rules without a clock: plays scenarios, including our own tests of the rules (`tests/scenarios`), and
//! replays a ledger under another policy. Only `replay` touches a disk: it reads a workspace's files.
//!
//! Begin with `format` (the scenario file), then `run` (step by step), then `session` (the state they change). Every
//! message takes the daemon's own path through `judgement`.

mod compose;
mod facts;
mod findings;
mod format;
pub mod github;
mod print;
mod profiles;
mod reader;
mod rejudge;
mod replay;
mod run;
mod session;
mod settings;
pub mod states;
mod steps;
mod submit;
mod yaml;

use std::path::Path;

pub use facts::{Ended, Fact, FactKind, Keys};
pub use format::{Profile, Scenario, ScenarioError};
pub use print::{mismatches, text};
pub use rejudge::{Divergence, Rejudge, rules};
pub use replay::{Difference, Replay, ReviewDifference, replay, replay_text};
pub use run::{Mismatch, Played, Transcript};

/// The JSON Schema of a scenario, for editors and for authors.
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
