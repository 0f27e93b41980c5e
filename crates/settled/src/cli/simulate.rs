//! `settled simulate`: runs scenarios, or judges a ledger again under another policy.

use std::path::{Path, PathBuf};

use simulate;
use workspace::config::{self, Config};
use workspace::{directory, regular_file};

use super::answer::{self, CommandOutput, print};
use super::context::Context;
use super::failure::Failure;
use super::input;
use crate::exit::Exit;
use screen::ProgressLine;

/// Runs scenarios.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled simulate round.yaml                    run a scenario, print its end
  settled simulate tests/scenarios/gate/*.yaml   run many; exit 1 if one differs
  settled simulate round.yaml --json | jq '.data.steps[].outcomes[].line'
  settled simulate --ledger ./mailroom --config other.toml
                                                 the decisions that would differ")]
pub(super) struct Args {
    /// The scenario files
    #[arg(
        value_name = "SCENARIO",
        required_unless_present = "ledger",
        conflicts_with = "ledger"
    )]
    scenarios: Vec<PathBuf>,
    /// Judge the ledger of this workspace again
    #[arg(long, value_name = "DIR", requires = "config")]
    ledger: Option<PathBuf>,
    /// The settled.toml for that
    #[arg(long, value_name = "FILE", requires = "ledger")]
    config: Option<PathBuf>,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<Exit, Failure> {
    match (&args.ledger, &args.config) {
        (Some(root), Some(config)) => replay(root, config, context),
        (Some(_), None) | (None, _) => scenarios(&args.scenarios, context),
    }
}

fn scenarios(files: &[PathBuf], context: &Context) -> Result<Exit, Failure> {
    let mut exit = Exit::Ok;
    for file in files {
        let played = read(file).and_then(|bytes| {
            simulate::simulate(&bytes, file).map_err(|error| Failure::new(Exit::Usage, &error))
        });
        let transcript = match played {
            Ok(transcript) => transcript,
            // A scenario that cannot be read does not keep the others from running.
            Err(failure) => {
                let is_worse = exit == Exit::Ok || exit == Exit::Failed;
                exit = if is_worse { failure.exit } else { exit };
                if context.json {
                    print(&answer::failure_line(&failure))?;
                }
                answer::complain(&failure);
                continue;
            }
        };
        if exit == Exit::Ok && !transcript.mismatches.is_empty() {
            exit = Exit::Failed;
        }
        let text = if context.json {
            CommandOutput::new(transcript).line()
        } else {
            simulate::text(&transcript, file)
        };
        print(&text)?;
    }
    Ok(exit)
}

fn replay(root: &Path, config: &Path, context: &Context) -> Result<Exit, Failure> {
    super::context::existing(root)?;
    let unusable = |error| Failure::new(Exit::Usage, &error);
    let absent = || input::unreadable(config, &rustix::io::Errno::NOENT.into());
    let text = config::text(config).map_err(unusable)?;
    let text = text.ok_or_else(absent)?;
    let config = Config::parse(&text, config).map_err(unusable)?;
    let failed = |error: &(dyn std::error::Error + 'static)| Failure::new(Exit::Failed, error);
    let agents = directory::agents(root).map_err(|error| failed(&error))?;
    let mut progress = ProgressLine::begin("judging the ledger again");
    let replay = simulate::replay(root, config.policy(agents), &mut |seq| {
        progress.step(format_args!("{seq} records"));
    });
    drop(progress);
    let replay = replay.map_err(|error| failed(&error))?;
    context.say(&CommandOutput::new(replay), simulate::replay_text)?;
    Ok(Exit::Ok)
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    regular_file::read_given(file, u64::MAX).map_err(|error| input::unreadable(file, &error))
}
