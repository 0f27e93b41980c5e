//! `settled status`: shows every review, whose move it is, and what needs action.

use std::path::Path;

use chrono::{DateTime, Utc};
use daemon::gc;
use inspect::status::overview::{ListedReviews, Removable, Status};
use inspect::status::problems::{self, Problem};
use message_schema::line::escaped;
use serde::Serialize;
use spool::Removal;
use workspace::clock;
use workspace::config::Config;

use super::answer::CommandOutput;
use super::context::{Context, Root};
use super::failure::Failure;
use crate::exit::Exit;
use screen::Screen;

/// The most commands named here; `settled problems` names them all.
const NAMED_MAX: usize = 3;

/// Shows every review.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled status ./mailroom
  settled status ./mailroom --all
  settled status ./mailroom --json
  settled status ./mailroom --json | jq -r '.data.reviews[].review'")]
pub(super) struct Args {
    #[command(flatten)]
    root: Root,
    /// List every review there ever was, not only the current ones
    #[arg(long)]
    all: bool,
    /// List at most this many [default: 100, with --all every one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    limit: Option<u16>,
}

/// The most reviews listed unless the command says otherwise: thousands may wait for a person.
const LISTED_MAX: u16 = 100;

pub(super) fn run(args: &Args, context: Context) -> Result<Exit, Failure> {
    let context = context.at(&args.root);
    let root = context.workspace()?;
    let now = clock::now();
    let listed = if args.all {
        ListedReviews::All
    } else {
        ListedReviews::Current
    };
    let mut answer = read_status(root, now, listed, &context)?;
    if let Some(most) = args.limit.or((!args.all).then_some(LISTED_MAX)) {
        answer.data.limit(most.into());
    }
    context.say(&answer, |status| {
        views::board::text(status, now, Screen::of_output())
    })?;
    Ok(Exit::Ok)
}

/// Reads the status, with its problems and the next commands.
fn read_status(
    root: &Path,
    now: DateTime<Utc>,
    listed: ListedReviews,
    context: &Context,
) -> Result<CommandOutput<Status>, Failure> {
    let status = context.status()?;
    let answer = CommandOutput::new(Status::of(&status, removable(root, now), listed));
    let policy = context.policy(&status);
    let spell = |agent: Option<&_>, words: &str| context.command_of(agent, words);
    let problems = status.problems(&policy, now, &spell);
    Ok(with_problems(answer, &problems, context))
}

/// Adds an alert for each kind of problem and the commands that fix them.
pub(super) fn with_problems<T: Serialize>(
    mut answer: CommandOutput<T>,
    problems: &[Problem],
    context: &Context,
) -> CommandOutput<T> {
    let kinds = problems::by_kind(problems);
    for (kind, (count, first)) in &kinds {
        let more = if *count > 1 {
            format!(" (and {} more)", count - 1)
        } else {
            String::new()
        };
        answer.alert(kind.word(), format!("{}{more}", escaped(&first.what)));
    }
    let mut named: Vec<&str> = Vec::new();
    for (_, problem) in kinds.values() {
        let fix = &problem.fix;
        if fix.fill.is_empty() && !named.contains(&fix.run.as_str()) && named.len() < NAMED_MAX {
            answer.next(fix.run.clone(), format!("{}: {}", fix.actor, fix.effect));
            named.push(&fix.run);
        }
    }
    if problems.len() > named.len() {
        let all = match problems.len() {
            1 => "the problem and its fix".to_owned(),
            count => format!("all {count} problems"),
        };
        answer.next(context.command("problems"), all);
    }
    answer
}

/// The files that `settled gc` would remove, if the config limits any age. Other commands report a config that cannot
/// be read.
pub(super) fn removable(root: &Path, now: DateTime<Utc>) -> Option<Removable> {
    let keep = Config::load(root).ok()?.retention;
    keep.sent_days
        .or(keep.archive_days)
        .or(keep.dead_letter_days)?;
    let report = gc::tidy(root, &keep, now, Removal::Pretended).ok()?;
    let sum = report.sum(|folder| folder.gone);
    Some(Removable {
        files: sum.files,
        bytes: sum.bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::problems::tests::problem;

    fn said(problems: &[Problem]) -> serde_json::Value {
        let context = Context::of("room".as_ref(), "codex");
        let answer = with_problems(CommandOutput::new(()), problems, &context);
        let answer: serde_json::Value = serde_json::from_str(&answer.json()).expect("JSON");
        let runs = answer["next"].as_array().expect("a list").iter();
        let runs: Vec<_> = runs.map(|next| next["run"].clone()).collect();
        serde_json::json!([answer["alerts"][0]["message"], runs])
    }

    #[test]
    fn the_first_problem_of_a_kind_stands_for_all_and_says_how_many_more_there_are() {
        let problem = |what| problem(what, "settled retry", Vec::new());
        let all = Context::of("room".as_ref(), "codex").command("problems");
        assert_eq!(
            said(&[problem("one is refused")]),
            serde_json::json!(["one is refused", ["settled retry"]])
        );
        assert_eq!(
            said(&[problem("one is refused"), problem("two is refused")]),
            serde_json::json!(["one is refused (and 1 more)", ["settled retry", all]])
        );
    }

    #[test]
    fn a_command_that_has_to_be_filled_in_is_left_to_the_list_of_all() {
        let all = Context::of("room".as_ref(), "codex").command("problems");
        assert_eq!(
            said(&[problem(
                "one is refused",
                "settled retry FILE",
                vec!["FILE"]
            )]),
            serde_json::json!(["one is refused", [all]])
        );
    }
}
