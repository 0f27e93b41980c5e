//! `settled validate-run`: runs the validation commands of an open request and has the daemon record the results.

use std::path::PathBuf;
use std::time::Duration;

use daemon::validation::observe;
use inspect::status::validation_of;
use message_schema::line::escaped;
use review::{Event, ObservedRun};
use serde_json::json;

use super::answer::CommandOutput;
use super::context::Context;
use super::failure::Failure;
use super::order::{self, Target};
use crate::exit::Exit;

/// Runs the validation commands of an open request.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled validate-run 86
  settled validate-run 86 --command \"cargo test\" --repo-dir /srv/project

The request's own commands come from its author: read them first, or name those
to run with --command.

Exit codes: 0 all passed, 8 one failed, 3 there is no command to run.")]
pub(super) struct Args {
    #[command(flatten)]
    target: Target,
    /// Only this command; repeatable
    #[arg(long, value_name = "COMMAND")]
    command: Vec<String>,
    /// The checkout to run the commands in
    #[arg(long, value_name = "DIR", default_value = ".")]
    repo_dir: PathBuf,
    /// The time limit of each command
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<Exit, Failure> {
    let root = context.workspace()?;
    let which = args.target.which();
    let asked = validation_of(root, &which).map_err(|why| Failure::plain(Exit::NotFound, why))?;
    if let Some(other) = args
        .command
        .iter()
        .find(|command| !asked.contains(*command))
    {
        let message = format!(
            "`{}` is not a validation command of this request; it has {}",
            escaped(other),
            escaped(&asked.join(", "))
        );
        return Err(Failure::plain(Exit::NotFound, message));
    }
    let commands = if args.command.is_empty() {
        &asked
    } else {
        &args.command
    };
    if commands.is_empty() {
        let message = "neither the request nor this project names a validation command".to_owned();
        return Err(Failure::plain(Exit::NotFound, message));
    }
    let limit = Duration::from_secs(args.timeout);
    let runs = observe(commands, &args.repo_dir, limit)?;
    for run in &runs {
        let (which, run) = (which.clone(), run.clone());
        order::submit(Event::Ran { which, run }, context)?;
    }
    let passed = runs.iter().all(ObservedRun::passed);
    let mut answer = CommandOutput::new(json!({ "runs": runs, "passed": passed }));
    if runs.iter().any(|run| run.head.is_none()) {
        answer.alert(
            "head_unknown",
            "the checkout is not at a commit, or a tracked file is not as the commit has it, even if git was told to overlook \
             that: the gate does not count these runs",
        );
    }
    context.say(&answer, |_| {
        runs.iter()
            .map(|run| escaped(&run.to_string()) + "\n")
            .collect()
    })?;
    Ok(if passed { Exit::Ok } else { Exit::GateRefused })
}
