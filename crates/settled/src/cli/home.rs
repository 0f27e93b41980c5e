//! `settled` alone, and `settled robot triage`: who asks, what waits for it, what it waits for, and the next command.

use chrono::{DateTime, Utc};
use mailbox::my_reviews::{self, Move, MyReview};
use message_schema::line::escaped;
use serde::Serialize;
use workspace::clock;
use workspace::index::LedgerIndex;

use super::answer::{CommandOutput, print};
use super::context::{Context, Me};
use super::failure::Failure;
use super::inbox::{self, Waiting};
use crate::exit::Exit;
use screen::{ago, ahead};

/// How many messages are named.
const NAMED: usize = 10;

/// Where an agent stands.
#[derive(Debug, Serialize)]
pub(super) struct Home {
    agent: String,
    root: String,
    /// Whether a daemon serves; absent if that cannot be seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    serving: Option<bool>,
    inbox: Waiting,
    /// Messages in the outbox that were not judged yet.
    unjudged: usize,
    /// The reviews that have not ended; absent where the ledger cannot be read, as by an agent with a user of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    reviews: Option<Vec<MyReview>>,
}

/// Shows an agent where it stands.
pub(super) fn run(context: &Context) -> Result<Exit, Failure> {
    let answer = gather(&context.me()?, context)?;
    let now = clock::now();
    context.say(&answer, |home| home.text(now))?;
    Ok(Exit::Ok)
}

/// The same for programs, always as JSON; the exit code says whether there is something to do.
pub(super) fn triage(context: &Context) -> Result<Exit, Failure> {
    let answer = gather(&context.me()?, context)?;
    print(&answer.json())?;
    Ok(if answer.data.has_to_act() {
        Exit::ActionRequired
    } else {
        Exit::Ok
    })
}

fn gather(me: &Me, context: &Context) -> Result<CommandOutput<Home>, Failure> {
    let Me { root, agent } = me;
    // Only the files are an agent's for certain; the ledger may be closed to it.
    let reviews = LedgerIndex::read(root)
        .ok()
        .map(|(index, _)| my_reviews::of(index.state(), agent));
    let mut answer = CommandOutput::new(Home {
        agent: agent.to_string(),
        root: root.display().to_string(),
        serving: spool::is_served(root),
        inbox: inbox::waiting(me, NAMED)?,
        unjudged: spool::count_waiting(root, agent.as_str()),
        reviews,
    });
    let Home {
        serving,
        unjudged,
        reviews,
        inbox,
        ..
    } = &answer.data;
    let no_daemon = *serving == Some(false);
    let unjudged = *unjudged;
    let show = inbox
        .first()
        .map(|letter| context.command_on("show", &letter.name(), ""));
    let moves: Vec<_> = reviews
        .iter()
        .flatten()
        .filter_map(MyReview::helps)
        .collect();
    if no_daemon {
        answer.alert(
            "not_served",
            "no daemon serves this workspace: nothing is judged or delivered until one does",
        );
    }
    if unjudged > 0 && no_daemon {
        answer.alert(
            "unjudged",
            format!("{unjudged} messages in your outbox wait for it"),
        );
    }
    if let Some(show) = show {
        answer.next(show, "read it");
    }
    for (words, why) in moves {
        answer.next(context.command(&words), why);
    }
    if !answer.data.has_to_act() {
        answer.next(context.command("wait"), "until something comes");
    }
    Ok(answer)
}

impl Home {
    fn has_to_act(&self) -> bool {
        let is_ours = |mine: &MyReview| mine.whose == Move::Yours;
        self.inbox.first().is_some() || self.reviews.iter().flatten().any(is_ours)
    }

    fn text(&self, now: DateTime<Utc>) -> String {
        let Self {
            agent,
            root,
            inbox,
            reviews,
            ..
        } = self;
        let mut text = format!("you are {agent} in {root}\n{}", inbox.text());
        let Some(reviews) = reviews else {
            return text
                + "your reviews: the ledger is closed to you; your inbox says all you need\n";
        };
        for (whose, heading) in [
            (Move::Yours, "your move:"),
            (Move::Theirs, "you wait for:"),
            (Move::Person, "a person decides:"),
        ] {
            let of_them: Vec<&MyReview> =
                reviews.iter().filter(|mine| mine.whose == whose).collect();
            if !of_them.is_empty() {
                text += &format!("{heading}\n");
            }
            of_them.iter().for_each(|mine| text += &line(mine, now));
        }
        if reviews.is_empty() {
            text += "no review is open\n";
        }
        text
    }
}

/// A review on one line.
pub(super) fn line(mine: &MyReview, now: DateTime<Utc>) -> String {
    let MyReview {
        review,
        phase,
        round,
        rounds,
        since,
        ..
    } = mine;
    let due = match (mine.waits_for, mine.due_at) {
        (Some(which), Some(at)) => format!(", {} due {}", which.replace('_', "-"), ahead(at - now)),
        (Some(_), None) | (None, Some(_) | None) => String::new(),
    };
    escaped(&format!(
        "  {review}: {phase}, round {round} of {rounds}, {}{due}",
        ago(now - *since)
    )) + "\n"
}
