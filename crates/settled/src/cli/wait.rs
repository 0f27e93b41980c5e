//! `settled wait`: blocks until mail arrives for an agent, so that waiting costs it no turn.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use mailbox::awaiting::{Awaited, MailWait, WaitEnd};
use mailbox::mailboxes::{AgentMailboxes, MailboxEntry, MailboxPlace};
use mailbox::my_reviews::{self, Move, MyReview};
use mailbox::wakeup::Wakeup;
use message_schema::id::PrNumber;
use message_schema::line::escaped;
use serde::Serialize;
use workspace::clock;
use workspace::index::LedgerIndex;

use super::answer::{CommandOutput, print};
use super::context::{Context, Me, quoted};
use super::failure::Failure;
use super::{home, inbox};
use crate::exit::Exit;
use screen::Screen;

/// Waits for mail.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled wait                                    until your inbox has a message
  settled wait --for verdict --pr 86 --timeout 30m
  settled wait --for reply --id msg-claude-001    until that message has a reply
  settled wait --timeout 0                        check once without waiting

Exit codes: 0 arrived, 4 timed out (prints the status),
6 it is your move (prints the next command),
7 the message was refused.")]
pub(super) struct Args {
    /// The event to wait for
    #[arg(long = "for", value_name = "WHAT", default_value = "any")]
    what: WaitFor,
    /// Wait for the reply to this message
    #[arg(long, value_name = "ID", required_if_eq("what", "reply"))]
    id: Option<String>,
    /// Only mail about this pull request
    #[arg(long, value_name = "NUMBER")]
    pr: Option<PrNumber>,
    /// The longest wait: seconds, or as in 90s, 10m, 2h; at most a day
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = time)]
    timeout: Duration,
}

/// The mail to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
enum WaitFor {
    /// Any message
    Any,
    /// A reply to one of your messages
    Reply,
    /// Feedback, an lgtm or a notice about a review that you have not answered yet
    Verdict,
}

/// The result of a wait: the messages that arrived, or the state of the reviews.
#[derive(Debug, Serialize)]
struct WaitView {
    #[serde(rename = "for")]
    what: WaitFor,
    waited_s: u64,
    messages: Vec<MailboxEntry>,
    /// True if a daemon serves; absent if that cannot be determined.
    #[serde(skip_serializing_if = "Option::is_none")]
    serving: Option<bool>,
    /// The reviews that have not ended; absent if the ledger cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    reviews: Option<Vec<MyReview>>,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<Exit, Failure> {
    let me = context.me()?;
    let start = Instant::now();
    let end = wait(args, &me)?;
    let view = WaitView {
        what: args.what,
        waited_s: start.elapsed().as_secs(),
        messages: Vec::new(),
        serving: spool::is_served(&me.root),
        reviews: None,
    };
    match end {
        Some(WaitEnd::Messages(messages)) => {
            let view = WaitView { messages, ..view };
            arrived(view, args, &me, context)
        }
        Some(WaitEnd::OwnMove(reviews)) => own_move(view, reviews, args, &me, context),
        Some(WaitEnd::Refused(file)) => Err(refused(&file)),
        None => timed_out(view, args, &me, context),
    }
}

/// Waits for what the arguments name. `None` if the time runs out first.
fn wait(args: &Args, me: &Me) -> Result<Option<WaitEnd>, Failure> {
    let mailboxes = AgentMailboxes::new(&me.root, &me.agent);
    let mut watched = vec![mailboxes.directory(MailboxPlace::Inbox)];
    if args.what == WaitFor::Reply {
        watched.push(mailboxes.directory(MailboxPlace::DeadLetter));
    }
    let watched: Vec<&Path> = watched.iter().map(PathBuf::as_path).collect();
    let wait = MailWait {
        root: &me.root,
        agent: &me.agent,
        mailboxes: &mailboxes,
        what: args.awaited(),
        pr: args.pr.as_ref(),
    };
    Wakeup::at(&watched)
        .until(args.timeout, || wait.check())
        .map_err(|error| inbox::unreadable(&error.directory, &error.source))
}

/// Prints the messages that arrived, with the command that comes next.
fn arrived(view: WaitView, args: &Args, me: &Me, context: &Context) -> Result<Exit, Failure> {
    let mut answer = CommandOutput::new(view);
    // For any mail, only `settled` alone knows what comes first; an awaited answer comes first itself.
    let first = match (args.what, &args.pr) {
        (WaitFor::Any, None) => home::next(me, context)?,
        (WaitFor::Any | WaitFor::Reply | WaitFor::Verdict, _) => None,
    };
    if let Some((command, why)) = first {
        answer.next(command, why);
    } else if let Some(message) = answer.data.messages.first() {
        answer.next(context.command_on("show", &message.name(), ""), "read it");
    }
    let screen = Screen::of_output();
    let line = |message: &MailboxEntry| views::inbox::line(message, screen);
    context.say(&answer, |view| view.messages.iter().map(line).collect())?;
    Ok(Exit::Ok)
}

/// Prints the reviews in which it is this agent's move, with the commands for it.
fn own_move(
    view: WaitView,
    reviews: Vec<MyReview>,
    args: &Args,
    me: &Me,
    context: &Context,
) -> Result<Exit, Failure> {
    let moves: Vec<_> = reviews
        .iter()
        .flat_map(|mine| home::moves(mine, me, context))
        .collect();
    let mut answer = CommandOutput::new(WaitView {
        reviews: Some(reviews),
        ..view
    });
    for (command, why) in moves {
        answer.next(command, why);
    }
    context.say(&answer, |view| {
        format!(
            "no message will arrive: it is your move\n{}",
            view.text(args)
        )
    })?;
    Ok(Exit::ActionRequired)
}

fn refused(file: &Path) -> Failure {
    let message = format!("the daemon refused your message: {}", file.display());
    Failure::plain(Exit::InvalidMessage, message).next(format!("cat {}", quoted(file.as_os_str())))
}

/// Fails with the state of the reviews, and with the command that comes next.
fn timed_out(view: WaitView, args: &Args, me: &Me, context: &Context) -> Result<Exit, Failure> {
    let reviews = LedgerIndex::read(&me.root)
        .ok()
        .map(|(index, _)| my_reviews::of(index.state(), &me.agent));
    let view = WaitView { reviews, ..view };
    if !context.json {
        print(&view.text(args))?;
    }
    let mut reviews = view.reviews.iter().flatten();
    let is_own_move = reviews.any(|mine| mine.whose == Move::Yours);
    // An agent whose own move it is need not wait again.
    let next = if is_own_move && args.what != WaitFor::Reply {
        "next".to_owned()
    } else {
        args.words()
    };
    let message = format!("nothing arrived within {} s", view.waited_s);
    Err(Failure::plain(Exit::Timeout, message)
        .data(&view)
        .next(context.command(&next)))
}

impl Args {
    fn awaited(&self) -> Awaited<'_> {
        match (self.what, &self.id) {
            (WaitFor::Reply, Some(id)) => Awaited::Reply(id),
            (WaitFor::Verdict, _) => Awaited::Verdict,
            (WaitFor::Any | WaitFor::Reply, _) => Awaited::Any,
        }
    }

    /// The words of a command that repeats this wait.
    fn words(&self) -> String {
        let what = match self.what {
            WaitFor::Any => "",
            WaitFor::Reply => " --for reply",
            WaitFor::Verdict => " --for verdict",
        };
        let id = self
            .id
            .as_ref()
            .map_or_else(String::new, |id| format!(" --id={}", quoted(id.as_ref())));
        let pr = self
            .pr
            .as_ref()
            .map_or_else(String::new, |pr| format!(" --pr {pr}"));
        format!("wait{what}{id}{pr}")
    }
}

impl WaitView {
    /// The status after a wait in which nothing arrived.
    fn text(&self, args: &Args) -> String {
        let (now, screen) = (clock::now(), Screen::of_output());
        let mut text = String::new();
        if self.serving == Some(false) {
            text += "no daemon serves this workspace: nothing is delivered until one does\n";
        }
        let is_asked = |mine: &&MyReview| args.pr.as_ref().is_none_or(|pr| pr.same_pr(&mine.pr));
        for mine in self.reviews.iter().flatten().filter(is_asked) {
            text += &screen.wrap(4, &views::review_line::line(mine, now));
        }
        text
    }
}

fn time(text: &str) -> Result<Duration, String> {
    let expected = || {
        format!(
            "`{}` is not a time: expected seconds, or as in 90s, 10m, 2h",
            escaped(text)
        )
    };
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().map_err(|_| expected())?;
    let unit = match &text[digits.len()..] {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err(expected()),
    };
    match number.checked_mul(unit) {
        Some(seconds) if seconds <= 86_400 => Ok(Duration::from_secs(seconds)),
        Some(_) | None => Err("a wait ends after a day at the latest".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_unit_and_an_end() {
        for (text, seconds) in [
            ("0", 0),
            ("90", 90),
            ("90s", 90),
            ("10m", 600),
            ("24h", 86_400),
        ] {
            assert_eq!(time(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "m", "-1", "1d", "25h", "10 m", "99999999999999999999h"] {
            assert!(time(text).is_err(), "{text}");
        }
    }
}
