//! `settled problems`: lists everything that needs action, worst first.

use chrono::{DateTime, Utc};
use inspect::status::problems::Problem;
use message_schema::line::escaped;
use serde::Serialize;
use workspace::clock;

use super::answer::CommandOutput;
use super::context::{Context, Root};
use super::failure::Failure;
use crate::exit::Exit;
use screen::{Screen, Tone, ago};

/// Shows everything that needs action.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled problems ./mailroom
  settled problems ./mailroom || echo \"action required\"
  settled problems ./mailroom --json | jq -r '.next[].run'

Exit codes: 0 no problems, 6 at least one problem.")]
pub(super) struct Args {
    #[command(flatten)]
    root: Root,
}

/// The JSON form. Fields are added, never changed.
#[derive(Debug, Serialize)]
struct Problems {
    problems: Vec<Problem>,
}

pub(super) fn run(args: &Args, context: Context) -> Result<Exit, Failure> {
    let context = context.at(&args.root);
    let now = clock::now();
    let standing = context.status()?;
    let policy = context.policy(&standing);
    let spell = |agent: Option<&_>, words: &str| context.command_of(agent, words);
    let problems = standing.problems(&policy, now, &spell);
    let exit = if problems.is_empty() {
        Exit::Ok
    } else {
        Exit::ActionRequired
    };
    let mut answer = CommandOutput::new(Problems { problems });
    // The text shows each fix below its problem.
    if context.json {
        let mut known: Vec<String> = Vec::new();
        for Problem { fix, .. } in answer.data.problems.clone() {
            if fix.fill.is_empty() && !known.contains(&fix.run) {
                known.push(fix.run.clone());
                answer.next(fix.run, format!("{}: {}", fix.actor, fix.effect));
            }
        }
    }
    context.say(&answer, |problems| {
        text(&problems.problems, now, Screen::of_output())
    })?;
    Ok(exit)
}

fn text(problems: &[Problem], now: DateTime<Utc>, screen: Screen) -> String {
    if problems.is_empty() {
        return "no problems\n".to_owned();
    }
    problems.iter().fold(String::new(), |text, problem| {
        let since = problem
            .since
            .map_or_else(String::new, |since| format!("  {}", ago(now - since)));
        let kind = screen.paint(Tone::Alarm, problem.kind.word());
        let fix = &problem.fix;
        text + &format!("{kind}{since}\n")
            + &screen.wrap(4, &format!("  {}", escaped(&problem.what)))
            + &format!("  {}: {}\n      {}\n", fix.actor, fix.run, fix.effect)
    })
}
