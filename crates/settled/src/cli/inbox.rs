//! `settled inbox`, `show`, `done`, and `take` of one's own mail: shows an agent's mailboxes and moves messages in
//! them.

use std::io;
use std::path::{Path, PathBuf};

use mailbox::mailboxes::{AgentMailboxes, MailboxEntry, MailboxPlace, MoveError};
use mailbox::my_reviews::{self, Move};
use mailbox::shown;
use message_schema::line::escaped;
use serde::Serialize;

use super::answer::CommandOutput;
use super::context::{Context, Me};
use super::failure::Failure;
use super::home;
use crate::exit::Exit;
use screen::Screen;
use views::inbox::Waiting;

/// Lists the mail of an agent.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled inbox                your mail, most urgent first
  settled inbox --json | jq -r '.data.messages[].id'")]
pub(super) struct InboxArgs {
    /// List at most this many; the count covers all
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..))]
    limit: u16,
}

/// Shows one whole message.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled show msg-claude-001       the message and its packet
  settled show                      the next waiting message
  settled show request.yaml --json")]
pub(super) struct ShowArgs {
    /// The message's id or file name [default: the next waiting message]
    #[arg(value_name = "MESSAGE")]
    message: Option<String>,
}

/// Archives messages.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled done msg-claude-001
  settled done msg-1 msg-2")]
pub(super) struct DoneArgs {
    /// The ids or file names of the messages
    #[arg(value_name = "MESSAGE", required = true)]
    messages: Vec<String>,
}

/// One whole message.
#[derive(Debug, Serialize)]
struct ShownMessage {
    #[serde(flatten)]
    entry: MailboxEntry,
    text: String,
    /// The text of the packet it points to.
    #[serde(skip_serializing_if = "Option::is_none")]
    packet_text: Option<String>,
}

/// A message that was moved.
#[derive(Debug, Serialize)]
struct Moved {
    message: String,
    /// The new path.
    #[serde(serialize_with = "spool::path_text::serialize")]
    path: PathBuf,
}

/// The messages that were moved.
#[derive(Debug, Serialize)]
struct AllMoved {
    moved: Vec<Moved>,
}

pub(super) fn inbox(args: &InboxArgs, context: &Context) -> Result<Exit, Failure> {
    let me = context.me()?;
    let mut answer = CommandOutput::new(waiting(&me, args.limit.into())?);
    let (command, why) = match answer.data.first() {
        Some(message) => {
            let why = if message.place == MailboxPlace::Taken {
                "you have taken it"
            } else {
                "read it"
            };
            (context.command_on("show", &message.name(), ""), why)
        }
        None => (context.command("wait"), "until something comes"),
    };
    answer.next(command, why);
    context.say(&answer, |waiting| waiting.text(Screen::of_output()))?;
    Ok(Exit::Ok)
}

/// The messages that wait for an agent, read only from its mailboxes.
pub(super) fn waiting(me: &Me, limit: usize) -> Result<Waiting, Failure> {
    let mailboxes = AgentMailboxes::new(&me.root, &me.agent);
    let mut messages = messages(&mailboxes, MailboxPlace::Taken)?;
    let taken = messages.len();
    messages.extend(self::messages(&mailboxes, MailboxPlace::Inbox)?);
    let waiting = messages.len() - taken;
    messages.truncate(limit);
    Ok(Waiting {
        agent: me.agent.to_string(),
        waiting,
        taken,
        messages,
    })
}

pub(super) fn show(args: &ShowArgs, context: &Context) -> Result<Exit, Failure> {
    let me = context.me()?;
    let mailboxes = AgentMailboxes::new(&me.root, &me.agent);
    let entry = match &args.message {
        Some(what) => one(&mailboxes, what, context)?,
        None => next(&mailboxes, context)?,
    };
    let (packet_text, changed) = mailbox::judged_packet::of(&me.root, &entry);
    let next = what_next(&entry, context);
    shown::note_message(&me.root, &me.agent, &entry);
    let mut alerts = mailbox::alerts::about(&me.root, entry.text.as_bytes());
    alerts.extend(changed);
    let mut answer = CommandOutput::new(ShownMessage {
        text: entry.text.clone(),
        packet_text,
        entry,
    });
    for alert in alerts {
        answer.alert(alert.code, alert.message);
    }
    let verdict = matches!(
        answer.data.entry.kind.as_deref(),
        Some("review_feedback" | "review_lgtm")
    );
    let pr = answer.data.entry.pr.as_ref().filter(|_| verdict);
    let reviews = pr.map(|pr| my_reviews::read(&me.root, pr, &me.agent));
    let moves: Vec<_> = reviews
        .iter()
        .flatten()
        .filter(|mine| mine.whose != Move::Theirs)
        .flat_map(|mine| home::moves(mine, &me, context))
        .collect();
    for (command, why) in moves.into_iter().chain(next) {
        answer.next(command, why);
    }
    context.say(&answer, ShownMessage::text)?;
    Ok(Exit::Ok)
}

/// The next step after reading a message, with its reason.
fn what_next(message: &MailboxEntry, context: &Context) -> Option<(String, &'static str)> {
    let on = |verb, options| context.command_on(verb, &message.name(), options);
    match (message.kind.as_deref(), message.place) {
        (
            _,
            MailboxPlace::Archive
            | MailboxPlace::Outbox
            | MailboxPlace::Sent
            | MailboxPlace::DeadLetter,
        ) => None,
        (Some("review_request"), MailboxPlace::Inbox) => {
            Some((on("take", ""), "your time starts then"))
        }
        (Some("review_request"), MailboxPlace::Taken) => {
            let brief = message
                .pr
                .as_ref()
                .map_or_else(|| "brief".to_owned(), |pr| format!("brief {pr}"));
            Some((context.command(&brief), "shows this round's request"))
        }
        (
            Some("question" | "task_request" | "brainstorm_request" | "handoff"),
            MailboxPlace::Inbox | MailboxPlace::Taken,
        ) => Some((
            on("reply", " --body-file -"),
            "with the text on standard input",
        )),
        (Some(_) | None, MailboxPlace::Inbox | MailboxPlace::Taken) => {
            Some((on("done", ""), "when you have finished"))
        }
    }
}

impl ShownMessage {
    /// Escapes the text line by line, so that nothing in it moves the cursor.
    fn text(&self) -> String {
        let lines = |text: &str| {
            text.lines()
                .map(|line| escaped(line) + "\n")
                .collect::<String>()
        };
        let mut text = format!("# {}\n{}", shown(&self.entry.path), lines(&self.text));
        if let (Some(packet), Some(packet_text)) = (&self.entry.packet, &self.packet_text) {
            text += &format!("# {}\n{}", escaped(packet), lines(packet_text));
        }
        text
    }
}

pub(super) fn done(args: &DoneArgs, context: &Context) -> Result<Exit, Failure> {
    let me = context.me()?;
    let mailboxes = AgentMailboxes::new(&me.root, &me.agent);
    let mut answer = CommandOutput::new(AllMoved { moved: Vec::new() });
    for what in &args.messages {
        let message = one(&mailboxes, what, context)?;
        let path = match message.place {
            // Already archived: `done` is idempotent.
            MailboxPlace::Archive
            | MailboxPlace::Outbox
            | MailboxPlace::Sent
            | MailboxPlace::DeadLetter => message.path.clone(),
            MailboxPlace::Inbox | MailboxPlace::Taken => mailboxes
                .put_away(&message)
                .map_err(|error| failed_to_move(&error))?,
        };
        if message.kind.as_deref() == Some("review_request") && message.place == MailboxPlace::Inbox
        {
            answer.alert(
                "taken",
                format!(
                    "{} is a request: it counts as taken when it leaves the inbox",
                    escaped(&message.name())
                ),
            );
        }
        answer.data.moved.push(Moved {
            message: message.name(),
            path,
        });
    }
    if let Some((command, why)) = home::next(&me, context)? {
        answer.next(command, why);
    }
    context.say(&answer, |all| {
        let line = |moved: &Moved| format!("done with {}\n", escaped(&moved.message));
        all.moved.iter().map(line).collect()
    })?;
    Ok(Exit::Ok)
}

/// Takes a message from the agent's inbox: the given one or the next.
pub(super) fn take(what: Option<&str>, context: &Context) -> Result<Exit, Failure> {
    let me = context.me()?;
    let mailboxes = AgentMailboxes::new(&me.root, &me.agent);
    loop {
        let entry = match what {
            Some(what) => one(&mailboxes, what, context)?,
            None => messages(&mailboxes, MailboxPlace::Inbox)?
                .into_iter()
                .next()
                .ok_or_else(|| nothing(context))?,
        };
        if entry.place != MailboxPlace::Inbox {
            let message = format!(
                "{} was taken already: {}",
                escaped(&entry.name()),
                shown(&entry.path)
            );
            return Err(Failure::plain(Exit::Failed, message).next(context.command("inbox")));
        }
        let path = match mailboxes.take(&entry) {
            Ok(path) => path,
            // Another worker took this one first; try the next.
            Err(MoveError::Gone(_)) if what.is_none() => continue,
            Err(error) => return Err(failed_to_move(&error)),
        };
        let name = entry.name();
        shown::note_message(&me.root, &me.agent, &entry);
        let mut answer = CommandOutput::new(AllMoved {
            moved: vec![Moved {
                message: name.clone(),
                path,
            }],
        });
        answer.next(context.command_on("show", &name, ""), "read it");
        if let (Some("review_request"), Some(pr)) = (entry.kind.as_deref(), &entry.pr) {
            answer.next(
                context.command(&format!("brief {pr}")),
                "shows this round's request",
            );
        }
        answer.next(
            context.command_on("done", &name, ""),
            "when you have finished",
        );
        context.say(&answer, |all| all.text("took"))?;
        return Ok(Exit::Ok);
    }
}

impl AllMoved {
    fn text(&self, verb: &str) -> String {
        let said = |moved: &Moved| {
            format!(
                "{verb} {}: {}\n",
                escaped(&moved.message),
                shown(&moved.path)
            )
        };
        self.moved.iter().map(said).collect()
    }
}

pub(super) fn messages(
    mailboxes: &AgentMailboxes,
    place: MailboxPlace,
) -> Result<Vec<MailboxEntry>, Failure> {
    let found = mailboxes.messages(place);
    found.map_err(|error| unreadable(&mailboxes.directory(place), &error))
}

/// The failure for a mailbox that cannot be read.
pub(super) fn unreadable(directory: &Path, error: &io::Error) -> Failure {
    Failure::plain(
        Exit::of_io(error),
        format!("{}: {error}", directory.display()),
    )
}

/// Finds the message with this id or file name.
fn one(mailboxes: &AgentMailboxes, what: &str, context: &Context) -> Result<MailboxEntry, Failure> {
    let mut found = mailboxes.find(what)?;
    if found.is_empty() {
        let message = format!("no message {} is in your inbox or archive", escaped(what));
        return Err(Failure::plain(Exit::NotFound, message).next(context.command("inbox")));
    }
    let first = found.remove(0);
    let Some(other) = found
        .iter()
        .find(|other| other.from != first.from && other.place == first.place)
    else {
        return Ok(first);
    };
    let names = [&first, other].map(|entry| shown(&entry.path));
    let message = format!(
        "several messages have the name {}: {}",
        escaped(what),
        names.join(", ")
    );
    Err(
        Failure::plain(Exit::Usage, format!("{message}; use the file name"))
            .next(context.command("inbox")),
    )
}

fn next(mailboxes: &AgentMailboxes, context: &Context) -> Result<MailboxEntry, Failure> {
    let taken = messages(mailboxes, MailboxPlace::Taken)?.into_iter().next();
    match taken {
        Some(message) => Ok(message),
        None => messages(mailboxes, MailboxPlace::Inbox)?
            .into_iter()
            .next()
            .ok_or_else(|| nothing(context)),
    }
}

fn nothing(context: &Context) -> Failure {
    Failure::plain(Exit::NotFound, "nothing waits in your inbox".to_owned())
        .next(context.command("wait"))
}

/// The path on one line, escaped because a sender chooses the names of its files.
fn shown(path: &Path) -> String {
    escaped(&path.display().to_string())
}

fn failed_to_move(error: &MoveError) -> Failure {
    let exit = match error {
        MoveError::Gone(_) => Exit::Failed,
        MoveError::Io { source, .. } => Exit::of_io(source),
    };
    let failure = Failure::new(exit, error);
    Failure {
        message: escaped(&failure.message),
        ..failure
    }
}
