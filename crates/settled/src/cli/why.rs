//! `settled why PR`: the one thing a review waits for, and the command that brings it.

use chrono::{DateTime, Utc};
use inspect::status::WorkspaceStatus;
use inspect::status::fix::FixCommand;
use inspect::status::why::Why;
use message_schema::line::escaped;
use review::{Policy, Which};
use serde::Serialize;
use workspace::clock;
use workspace::config::Config;

use super::answer::CommandOutput;
use super::context::Context;
use super::failure::Failure;
use super::order::Target;
use super::screen::{Screen, ago, ahead, cut};
use crate::exit::Exit;

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
    /// Whether a daemon serves the workspace.
    serving: Option<bool>,
    reviews: Vec<Why>,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<Exit, Failure> {
    let root = context.workspace()?;
    let now = clock::now();
    let standing = context.status()?;
    let selected = standing.selected(&args.target.which());
    if selected.is_empty() {
        return Err(unknown(&standing, &args.target.which(), context));
    }
    // A config that cannot be read is for others to complain about.
    let agents = || standing.agents.iter().cloned();
    let policy =
        Config::load(root).map_or_else(|_| Policy::default(), |config| config.policy(agents()));
    let spell = |agent: Option<&_>, words: &str| context.command_of(agent, words);
    let why = |(key, review)| standing.why(key, review, &policy, now, &spell);
    let whys = Whys {
        serving: standing.serving,
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

/// The commands that can be run as they stand.
fn runnable(fixes: &[FixCommand]) -> impl Iterator<Item = &FixCommand> {
    fixes.iter().filter(|fix| fix.fill.is_empty())
}

/// No review, which may be because nobody has judged its request.
pub(super) fn unknown(standing: &WorkspaceStatus, which: &Which, context: &Context) -> Failure {
    let pr = &which.pr;
    let letter = standing
        .unjudged
        .letters
        .iter()
        .find(|letter| letter.about.pr.as_ref().is_some_and(|of| of.same_pr(pr)));
    let dead = standing
        .dead
        .iter()
        .rfind(|letter| letter.pr.as_ref().is_some_and(|of| of.same_pr(pr)));
    let no = |why: String| {
        Failure::plain(
            Exit::NotFound,
            format!("there is no such review of pull request {pr}{why}"),
        )
    };
    match (letter, dead) {
        (Some(letter), _) if standing.is_unserved() => {
            let why = format!(
                ": {}/outbox/{} waits to be judged and no daemon serves",
                letter.agent,
                escaped(&letter.file.to_string())
            );
            no(why).next(context.command("serve"))
        }
        (_, Some(letter)) => {
            let why = format!(
                ": {} of {} was refused ({})",
                escaped(&letter.file),
                letter.agent,
                letter.code
            );
            no(why).next(context.command(&format!("explain {}", letter.code)))
        }
        (Some(_) | None, None) => no(String::new()).next(context.command("status")),
    }
}

fn text(why: &Why, serving: Option<bool>, now: DateTime<Utc>, screen: Screen) -> String {
    let reason = why
        .reason
        .as_ref()
        .map_or_else(String::new, |reason| format!(" ({})", escaped(reason)));
    let mut text = format!(
        "{}: {}{reason}, round {} of {}, {}\n",
        why.review,
        why.phase,
        why.round_of_generation,
        why.rounds,
        ago(now - why.since)
    );
    match &why.missing {
        Some(missing) => text += &format!("missing:   {}\n", escaped(missing)),
        None => text += "missing:   nothing\n",
    }
    for fix in &why.fixes {
        text += &format!(
            "{:<10} {}\n             {}{}\n",
            fix.actor.clone() + ":",
            fix.run,
            fix.effect,
            blanks(fix)
        );
    }
    for condition in &why.gate {
        text += &(cut(&format!("gate:      {}", escaped(condition)), screen.width) + "\n");
    }
    text += &match why.otherwise_at {
        Some(at) => {
            let instant = at.format("%Y-%m-%dT%H:%M:%SZ");
            format!(
                "otherwise: {}, at {instant}, the daemon\n           {}\n",
                ahead(at - now),
                why.otherwise
            )
        }
        None => format!("otherwise: the daemon {}\n", why.otherwise),
    };
    if why.otherwise_at.is_some() && serving == Some(false) {
        text += "           none serves now; what has come by then is done at its start\n";
    }
    text
}

fn blanks(fix: &FixCommand) -> String {
    if fix.fill.is_empty() {
        String::new()
    } else {
        format!("; {} to be filled in", fix.fill.join(" and "))
    }
}
