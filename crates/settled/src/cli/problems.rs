//! `settled problems`: lists everything that needs action, worst first.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use inspect::status::fix::FixCommand;
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
    /// List at most this many; the count covers all
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..))]
    limit: u16,
}

/// The JSON form. Fields are added, never changed.
#[derive(Debug, Serialize)]
struct Problems {
    /// The number of problems, listed or not.
    count: usize,
    /// The first of them.
    problems: Vec<Problem>,
}

pub(super) fn run(args: &Args, context: Context) -> Result<Exit, Failure> {
    let context = context.at(&args.root);
    let now = clock::now();
    let status = context.status()?;
    let policy = context.policy(&status);
    let spell = |agent: Option<&_>, words: &str| context.command_of(agent, words);
    let mut problems = status.problems(&policy, now, &spell);
    let exit = if problems.is_empty() {
        Exit::Ok
    } else {
        Exit::ActionRequired
    };
    let count = problems.len();
    problems.truncate(args.limit.into());
    let mut answer = CommandOutput::new(Problems { count, problems });
    // The text shows each fix below its problem.
    if context.json {
        for fix in fixes(&answer.data.problems.clone()) {
            answer.next(fix.run.clone(), format!("{}: {}", fix.actor, fix.effect));
        }
    }
    context.say(&answer, |problems| text(problems, now, Screen::of_output()))?;
    Ok(exit)
}

/// The commands that run unchanged, each once.
fn fixes(problems: &[Problem]) -> Vec<&FixCommand> {
    let mut known = HashSet::new();
    let fixes = problems.iter().map(|problem| &problem.fix);
    fixes
        .filter(|fix| fix.fill.is_empty() && known.insert(fix.run.as_str()))
        .collect()
}

fn text(Problems { count, problems }: &Problems, now: DateTime<Utc>, screen: Screen) -> String {
    if problems.is_empty() {
        return "no problems\n".to_owned();
    }
    let text = problems.iter().fold(String::new(), |text, problem| {
        let since = problem
            .since
            .map_or_else(String::new, |since| format!("  {}", ago(now - since)));
        let kind = screen.paint(Tone::Alarm, problem.kind.word());
        let fix = &problem.fix;
        text + &format!("{kind}{since}\n")
            + &screen.wrap(4, &format!("  {}", escaped(&problem.what)))
            + &format!("  {}: {}\n      {}\n", fix.actor, fix.run, fix.effect)
    });
    match count - problems.len() {
        0 => text,
        more => text + &format!("{more} more; see --limit\n"),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use inspect::status::fix::Actor;
    use inspect::status::problems::ProblemKind;

    use super::*;

    const WHAT: &str = "one\u{1b} is refused";

    pub(crate) fn problem(what: &str, run: &str, fill: Vec<&'static str>) -> Problem {
        Problem {
            kind: ProblemKind::DeadLetter,
            what: what.to_owned(),
            since: None,
            review: None,
            path: None,
            fix: FixCommand {
                actor: Actor::Person,
                run: run.to_owned(),
                effect: "sends it again".to_owned(),
                fill,
            },
        }
    }

    #[test]
    fn a_command_is_named_once_and_only_if_it_runs_as_it_stands() {
        let problems = [
            problem(WHAT, "settled serve", Vec::new()),
            problem(WHAT, "settled retry FILE", vec!["FILE"]),
            problem(WHAT, "settled serve", Vec::new()),
            problem(WHAT, "settled gc", Vec::new()),
        ];
        let runs: Vec<&str> = fixes(&problems)
            .iter()
            .map(|fix| fix.run.as_str())
            .collect();
        assert_eq!(runs, ["settled serve", "settled gc"]);
    }

    #[test]
    fn the_list_says_how_many_it_leaves_out() {
        let listed = |count| {
            let problems = vec![problem(WHAT, "settled retry FILE", vec!["FILE"])];
            text(
                &Problems { count, problems },
                clock::now(),
                Screen::plain(80),
            )
        };
        let one = "dead_letter\n  one\\u{1b} is refused\n  person: settled retry FILE\n      sends it again\n";
        assert_eq!(listed(1), one);
        assert_eq!(listed(3), format!("{one}2 more; see --limit\n"));
    }
}
