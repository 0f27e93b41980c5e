//! `settled why PR`: shows what a review waits for, and the command that provides it.

use inspect::status::WorkspaceStatus;
use inspect::status::fix::FixCommand;
use inspect::status::why::Why;
use message_schema::line::escaped;
use review::Which;
use serde::Serialize;
use workspace::clock;

use super::answer::CommandOutput;
use super::context::Context;
use super::failure::Failure;
use super::order::Target;
use crate::exit::Exit;
use screen::Screen;
use views::why::text;

/// Says what a review waits for.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled why 86
  settled why 86 --reviewer codex --json | jq -r '.next[0].run'")]
pub(super) struct Args {
    #[command(flatten)]
    target: Target,
}

/// The JSON form. Fields are added, never changed.
#[derive(Debug, Serialize)]
struct Whys {
    /// True if a daemon serves the workspace; null if that cannot be determined.
    serving: Option<bool>,
    reviews: Vec<Why>,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<Exit, Failure> {
    let now = clock::now();
    let status = context.status()?;
    let selected = status.selected(&args.target.which());
    if selected.is_empty() {
        return Err(unknown(&status, &args.target.which(), context));
    }
    let policy = context.policy(&status);
    let spell = |agent: Option<&_>, words: &str| context.command_of(agent, words);
    let why = |(key, review)| status.why(key, review, &policy, now, &spell);
    let whys = Whys {
        serving: status.serving,
        reviews: selected.into_iter().map(why).collect(),
    };
    let next: Vec<FixCommand> = whys
        .reviews
        .iter()
        .flat_map(|why| runnable(&why.fixes))
        .cloned()
        .collect();
    let mut answer = CommandOutput::new(whys);
    if context.json {
        next.into_iter()
            .for_each(|fix| answer.next(fix.run, fix.effect));
    }
    context.say(&answer, |whys| {
        let screen = Screen::of_output();
        whys.reviews
            .iter()
            .map(|why| text(why, whys.serving, now, screen))
            .collect::<Vec<_>>()
            .join("\n")
    })?;
    Ok(Exit::Ok)
}

/// The commands that run unchanged.
fn runnable(fixes: &[FixCommand]) -> impl Iterator<Item = &FixCommand> {
    fixes.iter().filter(|fix| fix.fill.is_empty())
}

/// The failure for an unknown review, possibly because its request is not judged yet.
pub(super) fn unknown(status: &WorkspaceStatus, which: &Which, context: &Context) -> Failure {
    let pr = &which.pr;
    let waiting = status
        .unjudged
        .files
        .iter()
        .find(|file| file.about.pr.as_ref().is_some_and(|of| of.same_pr(pr)));
    let dead = status
        .dead
        .iter()
        .rfind(|open| open.pr.as_ref().is_some_and(|of| of.same_pr(pr)));
    let no = |why: String| {
        Failure::plain(
            Exit::NotFound,
            format!("no review of pull request {pr} is known{why}"),
        )
    };
    match (waiting, dead) {
        (Some(waiting), _) if status.is_unserved() => {
            let why = format!(
                ": {}/outbox/{} waits to be judged and no daemon serves",
                waiting.agent,
                escaped(&waiting.file.to_string())
            );
            no(why).next(context.command("serve"))
        }
        (_, Some(dead)) => {
            let why = format!(
                ": {} of {} was refused ({})",
                escaped(&dead.file()),
                dead.agent(),
                dead.refusal.code
            );
            no(why).next(context.command(&format!("explain {}", dead.refusal.code)))
        }
        (Some(_) | None, None) => no(String::new()).next(context.command("status")),
    }
}

#[cfg(test)]
mod tests {
    use inspect::status::fix::Actor;

    use super::*;

    #[test]
    fn a_command_that_has_to_be_filled_in_does_not_run_as_it_stands() {
        let fix = |run: &str, fill| FixCommand {
            actor: Actor::Person,
            run: run.to_owned(),
            effect: String::new(),
            fill,
        };
        let fixes = [
            fix("settled take q-1", Vec::new()),
            fix("settled pr head 7 SHA", vec!["SHA"]),
        ];
        let runs: Vec<&str> = runnable(&fixes).map(|fix| fix.run.as_str()).collect();
        assert_eq!(runs, ["settled take q-1"]);
    }
}
