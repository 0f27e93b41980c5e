//! `settled explain`: explains what a code means and what to do about it.

use message_schema::Code;
use validate_message::explain;

use super::answer::{CommandOutput, print};
use super::context::Context;
use super::failure::Failure;
use crate::exit::Exit;

/// Explains codes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled explain action_missing    its meaning, its cause, a corrected example
  settled explain action_missing --json | jq -r .data.fixed
  settled explain --list            every code with its sentence")]
pub(super) struct Args {
    /// The code, as in a report
    #[arg(value_name = "CODE", required_unless_present = "list")]
    code: Option<String>,
    /// Every code with its sentence
    #[arg(long, conflicts_with = "code")]
    list: bool,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<Exit, Failure> {
    print(&match (&args.code, context.json) {
        (Some(word), true) => CommandOutput::new(explain::explain(known(word)?)).json(),
        (Some(word), false) => explain::explain(known(word)?).text(),
        (None, true) => Code::ALL
            .iter()
            .map(|code| CommandOutput::new(explain::explain(*code)).line())
            .collect(),
        (None, false) => list(),
    })?;
    Ok(Exit::Ok)
}

fn known(word: &str) -> Result<Code, Failure> {
    explain::find(word).map_err(|near| {
        let next = near.map_or("--list", Code::as_str);
        Failure::plain(Exit::NotFound, format!("there is no code {word:?}"))
            .next(format!("settled explain {next}"))
    })
}

fn list() -> String {
    let width = Code::ALL
        .iter()
        .map(|code| code.as_str().len())
        .max()
        .unwrap_or(0);
    Code::ALL
        .iter()
        .map(|code| format!("{:width$}  {}\n", code.as_str(), code.sentence()))
        .collect()
}
