//! An agent's situation: its mail, its unaccepted messages, and its reviews.

use chrono::{DateTime, Utc};
use inspect::unjudged::UnjudgedFile;
use mailbox::my_reviews::{Move, MyReview};
use message_schema::line::escaped;
use screen::Screen;
use serde::Serialize;

use crate::inbox::Waiting;
use crate::review_line::line;

/// The situation of an agent: its mail and its reviews.
#[derive(Debug, Serialize)]
pub struct Home {
    /// The agent.
    pub agent: String,
    /// The workspace.
    pub root: String,
    /// True if a daemon serves; absent if this user cannot tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serving: Option<bool>,
    /// Its mail.
    pub inbox: Waiting,
    /// The number of messages in the outbox that the daemon has not judged yet.
    pub unjudged: usize,
    /// The files in the outbox.
    pub outbox: Vec<UnjudgedFile>,
    /// The refused messages that a correction can fix and whose notice the agent has put away.
    pub refused: Vec<RefusedMessage>,
    /// The reviews that have not ended; absent if the agent cannot read the ledger, as with a user of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reviews: Option<Vec<MyReview>>,
}

/// A refused message that nobody corrected.
#[derive(Debug, Serialize)]
pub struct RefusedMessage {
    /// Its file in `dead_letter/`, or the report if only that is left.
    pub file: String,
    /// The reason as a code.
    pub code: &'static str,
    /// The reason in a sentence.
    pub summary: String,
}

impl Home {
    /// True if the agent has something to do.
    pub fn has_to_act(&self) -> bool {
        let is_ours = |mine: &MyReview| mine.whose == Move::Yours;
        let is_faulty = |file: &UnjudgedFile| !file.errors.is_empty();
        self.inbox.first().is_some()
            || self.reviews.iter().flatten().any(is_ours)
            || self.outbox.iter().any(is_faulty)
            || !self.refused.is_empty()
    }

    /// Formats the situation for people.
    pub fn text(&self, now: DateTime<Utc>, screen: Screen) -> String {
        let Self {
            agent,
            root,
            inbox,
            reviews,
            ..
        } = self;
        let mut text = format!("you are {agent} in {root}\n{}", inbox.text(screen));
        text += &self.own_messages(screen);
        let Some(reviews) = reviews else {
            return text
                + "your reviews: you cannot read the ledger; your inbox has all you need\n";
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
            of_them
                .iter()
                .for_each(|mine| text += &screen.wrap(4, &line(mine, now)));
        }
        if reviews.is_empty() {
            text += "no review is open\n";
        }
        text
    }

    /// The agent's own messages that the daemon has not accepted.
    fn own_messages(&self, screen: Screen) -> String {
        let mut text = String::new();
        if !self.outbox.is_empty() {
            text += "your outbox, not judged yet:\n";
        }
        for file in &self.outbox {
            let lines = match file.errors.first() {
                _ if !file.is_read => {
                    format!("{}: the daemon reads only .yaml, .yml and .json", file.path)
                }
                None => format!("{}: the validator finds no mistake", file.path),
                Some(first) => first.clone(),
            };
            for line in lines.lines() {
                text += &screen.wrap(6, &escaped(&format!("  {line}")));
            }
            if let more @ 1.. = file.errors.len().saturating_sub(1) {
                let mistakes = if more == 1 { "mistake" } else { "mistakes" };
                text += &format!("      and {more} more {mistakes}\n");
            }
        }
        if !self.refused.is_empty() {
            text += "refused, and not corrected:\n";
        }
        for RefusedMessage {
            file,
            code,
            summary,
        } in &self.refused
        {
            text += &screen.wrap(4, &escaped(&format!("  {file}: {code}: {summary}")));
        }
        text
    }
}
