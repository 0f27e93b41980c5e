//! `settled simulate`: scenarios, and a ledger under another policy.

use std::path::PathBuf;

use super::{Failure, print};
use crate::exit::Exit;
use crate::simulate;

/// Runs scenarios.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled simulate round.yaml                    play a scenario and say what came of it
  settled simulate tests/scenarios/gate/*.yaml   play many; exit code 1 if one came out otherwise
  settled simulate round.yaml --json | jq '.steps[].outcomes[].line'")]
pub(super) struct Args {
    /// The scenarios
    #[arg(value_name = "SCENARIO", required = true)]
    scenarios: Vec<PathBuf>,
    /// One JSON document per scenario, each on its line
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let mut exit = Exit::Ok;
    for file in &args.scenarios {
        let bytes = std::fs::read(file).map_err(|error| {
            let is_missing = error.kind() == std::io::ErrorKind::NotFound;
            let exit = if is_missing { Exit::NotFound } else { Exit::Failed };
            Failure::plain(exit, format!("{}: {error}", file.display()))
        })?;
        let transcript =
            simulate::simulate(&bytes, file).map_err(|error| Failure::new(Exit::Usage, &error))?;
        if !transcript.mismatches.is_empty() {
            exit = Exit::Failed;
        }
        print(&if args.json { json(&transcript) } else { simulate::text(&transcript, file) })?;
    }
    Ok(exit)
}

fn json(transcript: &simulate::Transcript) -> String {
    serde_json::to_string(transcript).expect("text keys and plain values are JSON") + "\n"
}
