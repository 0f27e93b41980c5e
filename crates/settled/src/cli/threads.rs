//! `settled threads PR`: each finding's discussion, what may be done with it now, and by what it came there.

use inspect::status::threads::{Act, Histories, ThreadView, Threads};
use message_schema::line::escaped;
use serde::Serialize;
use spool::VisitError;

use super::answer::CommandOutput;
use super::context::Context;
use super::failure::Failure;
use super::order::Target;
use super::why;
use crate::exit::Exit;
use screen::{Screen, cut};

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
    let standing = context.status()?;
    let selected = standing.selected(&args.target.which());
    if selected.is_empty() {
        return Err(why::unknown(&standing, &args.target.which(), context));
    }
    let mut histories = Histories::of(selected.iter().map(|(key, _)| *key));
    let read = spool::read_ledger(root, &mut |entry| {
        histories.note(entry).map_err(VisitError::from)
    });
    read.map_err(failed)?;
    let spell = |agent: Option<&_>, words: &str| context.command_of(agent, words);
    let tell = |(key, review)| histories.tell(key, review, standing.is_alone(key), &spell);
    let all = All {
        reviews: selected.into_iter().map(tell).collect(),
    };
    context.say(&CommandOutput::new(all), |all| {
        let screen = Screen::of_output();
        all.reviews
            .iter()
            .map(|review| text(review, screen))
            .collect::<Vec<_>>()
            .join("\n")
    })?;
    Ok(Exit::Ok)
}

fn text(review: &Threads, screen: Screen) -> String {
    let Threads {
        review,
        phase,
        round_of_generation,
        rounds,
        threads,
    } = review;
    let mut text = format!("{review}: {phase}, round {round_of_generation} of {rounds}\n");
    if threads.is_empty() {
        text += "  no thread\n";
    }
    threads
        .iter()
        .fold(text, |text, thread| text + &of_thread(thread, screen))
}

fn of_thread(thread: &ThreadView, screen: Screen) -> String {
    let blocking = if thread.blocking { ", blocks" } else { "" };
    let title = thread
        .title
        .as_ref()
        .map_or_else(String::new, |title| format!("  {}", escaped(title)));
    let by = thread
        .resolved_by
        .map_or_else(String::new, |by| format!(" by {by}"));
    let head = format!(
        "  {}  {}{blocking}  {}{by}{title}",
        thread.id, thread.severity, thread.state
    );
    // A title may be as long as its packet.
    let mut text = cut(&head, screen.width) + "\n";
    let place = match (&thread.file, &thread.lines) {
        (Some(file), Some(lines)) => format!("{}:{lines}; ", escaped(file)),
        (Some(file), None) => format!("{}; ", escaped(file)),
        (None, _) => String::new(),
    };
    let again = if thread.reopened {
        ", was open again"
    } else {
        ""
    };
    let held = thread.round_count;
    text += &format!(
        "      {place}stance {} (repeated {held} times), replies left: {}{again}\n",
        thread.stance, thread.replies_left
    );
    text += &may_be_done(thread);
    for Act {
        seq,
        at,
        act,
        round,
        actor,
        message,
    } in &thread.history
    {
        let message = message
            .as_ref()
            .map_or_else(String::new, |id| format!(" in {}", escaped(id)));
        text += &format!(
            "      {at}  round {round}  {act} by {}{message} (record {seq})\n",
            escaped(actor)
        );
    }
    text
}

/// What may be done with a thread now, actor the reviewer and actor a person.
fn may_be_done(thread: &ThreadView) -> String {
    let mut text = String::new();
    let mut legal = thread.legal.values();
    match (legal.next(), legal.next()) {
        (Some(one), Some(other)) if one == other => {
            text += &format!("      the reviewer may: {}\n", one.join(", "));
        }
        (Some(_) | None, _) => {
            for (stance, actions) in &thread.legal {
                text += &format!(
                    "      the reviewer may, if its stance is {stance}: {}\n",
                    actions.join(", ")
                );
            }
        }
    }
    let words: Vec<&str> = thread
        .person
        .iter()
        .filter_map(|fix| fix.run.split(' ').nth(1))
        .collect();
    if !words.is_empty() {
        text += &format!("      a person may: {}\n", words.join(", "));
    }
    text
}
