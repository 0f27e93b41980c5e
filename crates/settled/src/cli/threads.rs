//! `settled threads PR`: shows each finding's discussion, its legal actions now, and how it got there.

use cockpit::words::add_words;
use inspect::status::threads::{Histories, Threads};
use mailbox::my_reviews::{self, Move};
use mailbox::said::Said;
use review::{Review, ReviewKey};
use serde::Serialize;
use spool::VisitError;

use super::answer::CommandOutput;
use super::context::{Context, Me};
use super::failure::Failure;
use super::home;
use super::order::Target;
use super::why;
use crate::exit::Exit;
use screen::{ProgressLine, Screen};
use views::threads::text;

/// Shows the threads of a review.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled threads 86
  settled threads 86 --json | jq -r '.data.reviews[].threads[].id'")]
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
    let status = context.status()?;
    let selected = status.selected(&args.target.which());
    if selected.is_empty() {
        return Err(why::unknown(&status, &args.target.which(), context));
    }
    let mut histories = Histories::of(selected.iter().map(|(key, _)| *key));
    let mut progress = ProgressLine::begin("reading the ledger");
    let read = spool::read_ledger(root, &mut |entry| {
        progress.step(format_args!("{} records", entry.seq));
        histories.note(entry).map_err(VisitError::from)
    });
    drop(progress);
    read?;
    let spell = |agent: Option<&_>, words: &str| context.command_of(agent, words);
    let me = context.me_if_told()?;
    let threads = |(key, review): (&ReviewKey, &Review)| {
        let mut threads = histories.threads(key, review, &status.name_of(key), &spell);
        if let Some(me) = &me {
            add_words(&mut threads, &words_of_both(me, key, review));
        }
        threads
    };
    let all = All {
        reviews: selected.into_iter().map(threads).collect(),
    };
    let mut answer = CommandOutput::new(all);
    let mine = me
        .as_ref()
        .map(|me| my_reviews::read(&me.root, &args.target.which().pr, &me.agent));
    let moves: Vec<_> = mine
        .iter()
        .flatten()
        .filter(|mine| mine.whose == Move::Yours)
        .collect();
    let mut last = String::new();
    for (mine, me) in moves.iter().zip(me.iter().cycle()) {
        if mine.role == "author" && mine.phase == "fixing" && mine.open_blockers > 0 {
            // The author has to fill in the words in capitals, so it is not among the commands that run unchanged.
            let words = format!(
                "send review_addressed --pr {} --commit-sha SHA --body TEXT",
                mine.pr
            );
            last = format!(
                "then: {}\n      TEXT says what you fixed; to disagree with a finding, name the others with\n      \
                 --addressed-finding-ids and argue in TEXT: the reviewer decides,\n      and a person after the last round\n",
                context.command(&words)
            );
        } else {
            for (command, why) in home::moves(mine, me, context) {
                answer.next(command, why);
            }
        }
    }
    context.say(&answer, |all| {
        let screen = Screen::of_output();
        all.reviews
            .iter()
            .map(|review| text(review, screen))
            .collect::<Vec<_>>()
            .join("\n")
            + &last
    })?;
    Ok(Exit::Ok)
}

/// The messages between the review's two agents, from the mailboxes of the one that asks.
fn words_of_both(me: &Me, key: &ReviewKey, review: &Review) -> Said {
    let other = if key.author == me.agent {
        review.reviewer(key)
    } else {
        &key.author
    };
    Said::read(&me.root, &me.agent, other, &key.pr)
}
