//! `settled threads PR`: each finding's discussion, what may be done with it now, and by what it came there.

use message_schema::line::escaped;
use serde::Serialize;
use spool::VisitError;

use super::answer::Answer;
use super::context::Context;
use super::failure::Failure;
use super::order::Target;
use super::why;
use crate::exit::Exit;
use crate::standing::Standing;
use crate::standing::threads::{Act, Histories, Threads, Told};

/// Shows the threads of a review.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled threads 86
  settled threads 86 --json | jq -r '.data.reviews[].threads[] | select(.blocking) | .id'")]
pub(super) struct Args {
    #[command(flatten)]
    target: Target,
}

/// The JSON form. Fields are added, never changed.
#[derive(Debug, Serialize)]
struct All {
    reviews: Vec<Threads>,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<Exit, Failure> {
    let root = context.workspace()?;
    let failed = |error| Failure::new(Exit::Failed, &error);
    let standing = Standing::read(root).map_err(failed)?;
    let selected = standing.selected(&args.target.which());
    if selected.is_empty() {
        return Err(why::unknown(&standing, &args.target.which(), context));
    }
    let mut histories = Histories::of(selected.iter().map(|(key, _)| *key));
    let read = spool::read_ledger(root, &mut |entry| histories.note(entry).map_err(VisitError::from));
    read.map_err(failed)?;
    let spell = |agent: Option<&_>, words: &str| context.command_of(agent, words);
    let tell = |(key, review)| histories.tell(key, review, standing.is_alone(key), &spell);
    let all = All { reviews: selected.into_iter().map(tell).collect() };
    context.say(&Answer::new(all), |all| all.reviews.iter().map(text).collect::<Vec<_>>().join("\n"))?;
    Ok(Exit::Ok)
}

fn text(review: &Threads) -> String {
    let Threads { review, phase, round_of_generation, rounds, threads } = review;
    let mut text = format!("{review}: {phase}, round {round_of_generation} of {rounds}\n");
    if threads.is_empty() {
        text += "  no thread\n";
    }
    threads.iter().fold(text, |text, thread| text + &of_thread(thread))
}

fn of_thread(thread: &Told) -> String {
    let blocking = if thread.blocking { ", blocks" } else { "" };
    let title = thread.title.as_ref().map_or_else(String::new, |title| format!("  {}", escaped(title)));
    let mut text = format!("  {}  {}{blocking}  {}{title}\n", thread.id, thread.severity, thread.state);
    let place = match (&thread.file, &thread.lines) {
        (Some(file), Some(lines)) => format!("{}:{lines}; ", escaped(file)),
        (Some(file), None) => format!("{}; ", escaped(file)),
        (None, _) => String::new(),
    };
    let again = if thread.reopened { ", was open again" } else { "" };
    text += &format!(
        "      {place}stance {}, held {} times; replies left: {}{again}\n",
        thread.stance, thread.round_count, thread.replies_left
    );
    for (stance, actions) in &thread.legal {
        text += &format!("      legal with {stance}: {}\n", actions.join(", "));
    }
    for Act { seq, at, act, round, by, message } in &thread.history {
        let message = message.as_ref().map_or_else(String::new, |id| format!(" in {}", escaped(id)));
        text += &format!("      {at}  round {round}  {act} by {}{message} (record {seq})\n", escaped(by));
    }
    text
}
