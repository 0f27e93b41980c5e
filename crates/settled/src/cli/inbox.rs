//! `settled inbox`, `show`, `done`, and `take` of one's own mail: what lies in an agent's mailboxes, and moving it.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use mailbox::mailboxes::{AgentMailboxes, MailboxEntry, MailboxPlace, MoveError};
use message_schema::line::escaped;
use serde::Serialize;

use super::answer::CommandOutput;
use super::context::{Context, Me};
use super::failure::Failure;
use crate::exit::Exit;

/// Lists what waits for an agent.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled inbox                your mail, most urgent first
  settled inbox --json | jq -r '.data.letters[].id'")]
pub(super) struct InboxArgs {
    /// List at most this many; the count covers all
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..))]
    limit: u16,
}

/// Shows one message whole.
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

/// Puts messages away.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled done msg-claude-001
  settled done msg-1 msg-2")]
pub(super) struct DoneArgs {
    /// The ids or file names of the messages
    #[arg(value_name = "MESSAGE", required = true)]
    messages: Vec<String>,
}

/// What waits.
#[derive(Debug, Serialize)]
pub(super) struct Waiting {
    agent: String,
    /// How many lie in the inbox.
    waiting: usize,
    /// How many the agent works on.
    taken: usize,
    /// Those in hand first, then the most urgent, of the same priority the oldest.
    letters: Vec<MailboxEntry>,
}

/// One message whole.
#[derive(Debug, Serialize)]
struct ShownMessage {
    #[serde(flatten)]
    letter: MailboxEntry,
    text: String,
    /// The text of the packet it points to.
    #[serde(skip_serializing_if = "Option::is_none")]
    packet_text: Option<String>,
}

/// A message that was moved.
#[derive(Debug, Serialize)]
struct Moved {
    message: String,
    /// Where it lies now.
    path: PathBuf,
}

/// Messages that were moved.
#[derive(Debug, Serialize)]
struct AllMoved {
    moved: Vec<Moved>,
}

pub(super) fn inbox(args: &InboxArgs, context: &Context) -> Result<Exit, Failure> {
    let me = context.me()?;
    let mut answer = CommandOutput::new(waiting(&me, args.limit.into())?);
    let (command, why) = match answer.data.first() {
        Some(letter) => {
            let why = if letter.place == MailboxPlace::Taken {
                "you have it in hand"
            } else {
                "read it"
            };
            (context.command_on("show", &letter.name(), ""), why)
        }
        None => (context.command("wait"), "until something comes"),
    };
    answer.next(command, why);
    context.say(&answer, Waiting::text)?;
    Ok(Exit::Ok)
}

/// What waits for an agent, found in its mailboxes alone.
pub(super) fn waiting(me: &Me, limit: usize) -> Result<Waiting, Failure> {
    let bag = AgentMailboxes::new(&me.root, &me.agent);
    let mut letters = letters(&bag, MailboxPlace::Taken)?;
    let taken = letters.len();
    letters.extend(self::letters(&bag, MailboxPlace::Inbox)?);
    let waiting = letters.len() - taken;
    letters.truncate(limit);
    Ok(Waiting {
        agent: me.agent.to_string(),
        waiting,
        taken,
        letters,
    })
}

impl Waiting {
    /// The one to begin with.
    pub(super) fn first(&self) -> Option<&MailboxEntry> {
        self.letters.first()
    }

    pub(super) fn text(&self) -> String {
        let Self {
            agent,
            waiting,
            taken,
            letters,
        } = self;
        let mut text = match (waiting, taken) {
            (0, 0) => format!("nothing waits for {agent}\n"),
            (_, 0) => format!("{waiting} waiting for {agent}\n"),
            (_, _) => format!("{waiting} waiting for {agent}, {taken} in hand\n"),
        };
        letters.iter().for_each(|letter| text += &line(letter));
        let left = waiting + taken - letters.len();
        if left > 0 {
            let _ = writeln!(text, "  and {left} more: --limit {}", waiting + taken);
        }
        text
    }
}

/// A message on one line.
pub(super) fn line(letter: &MailboxEntry) -> String {
    let field = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let mark = match letter.place {
        MailboxPlace::Taken => "*",
        MailboxPlace::Inbox
        | MailboxPlace::Archive
        | MailboxPlace::Outbox
        | MailboxPlace::Sent
        | MailboxPlace::DeadLetter => " ",
    };
    let said = match &letter.unreadable {
        Some(why) => format!("{}: no message: {why}", letter.name()),
        None => {
            let pr = letter
                .pr
                .as_ref()
                .map_or_else(String::new, |pr| format!("#{pr} "));
            let MailboxEntry {
                kind,
                from,
                priority,
                subject,
                ..
            } = letter;
            let (kind, from, priority) = (field(kind), field(from), field(priority));
            format!(
                "{priority} {kind:<16}  {}  {pr}from {from}: {}",
                letter.name(),
                field(subject)
            )
        }
    };
    format!("{mark} {}\n", escaped(&said))
}

pub(super) fn show(args: &ShowArgs, context: &Context) -> Result<Exit, Failure> {
    let me = context.me()?;
    let bag = AgentMailboxes::new(&me.root, &me.agent);
    let letter = match &args.message {
        Some(what) => one(&bag, what, context)?,
        None => next(&bag, context)?,
    };
    let packet_text = letter
        .packet
        .as_ref()
        .and_then(|packet| std::fs::read_to_string(me.root.join(packet)).ok());
    let next = what_next(&letter, context);
    let alerts = mailbox::alerts::about(&me.root, letter.text.as_bytes());
    let mut answer = CommandOutput::new(ShownMessage {
        text: letter.text.clone(),
        packet_text,
        letter,
    });
    for alert in alerts {
        answer.alert(alert.code, alert.message);
    }
    if let Some((command, why)) = next {
        answer.next(command, why);
    }
    context.say(&answer, ShownMessage::text)?;
    Ok(Exit::Ok)
}

/// What one does with a message that was read, and why.
fn what_next(letter: &MailboxEntry, context: &Context) -> Option<(String, &'static str)> {
    let on = |verb, options| context.command_on(verb, &letter.name(), options);
    match (letter.kind.as_deref(), letter.place) {
        (
            _,
            MailboxPlace::Archive
            | MailboxPlace::Outbox
            | MailboxPlace::Sent
            | MailboxPlace::DeadLetter,
        ) => None,
        (Some("review_request"), MailboxPlace::Inbox) => {
            Some((on("take", ""), "your time runs from then on"))
        }
        (Some("review_request"), MailboxPlace::Taken) => {
            let brief = letter
                .pr
                .as_ref()
                .map_or_else(|| "brief".to_owned(), |pr| format!("brief {pr}"));
            Some((context.command(&brief), "what this round asks"))
        }
        (
            Some("question" | "task_request" | "brainstorm_request" | "handoff"),
            MailboxPlace::Inbox | MailboxPlace::Taken,
        ) => Some((
            on("reply", " --body-file -"),
            "with the text on standard input",
        )),
        (Some(_) | None, MailboxPlace::Inbox | MailboxPlace::Taken) => {
            Some((on("done", ""), "once you are done with it"))
        }
    }
}

impl ShownMessage {
    /// The text line by line, so that nothing in it moves the cursor.
    fn text(&self) -> String {
        let lines = |text: &str| {
            text.lines()
                .map(|line| escaped(line) + "\n")
                .collect::<String>()
        };
        let mut text = format!("# {}\n{}", shown(&self.letter.path), lines(&self.text));
        if let (Some(packet), Some(packet_text)) = (&self.letter.packet, &self.packet_text) {
            text += &format!("# {}\n{}", escaped(packet), lines(packet_text));
        }
        text
    }
}

pub(super) fn done(args: &DoneArgs, context: &Context) -> Result<Exit, Failure> {
    let me = context.me()?;
    let bag = AgentMailboxes::new(&me.root, &me.agent);
    let mut answer = CommandOutput::new(AllMoved { moved: Vec::new() });
    for what in &args.messages {
        let letter = one(&bag, what, context)?;
        let path = match letter.place {
            // Said twice, it is done once.
            MailboxPlace::Archive
            | MailboxPlace::Outbox
            | MailboxPlace::Sent
            | MailboxPlace::DeadLetter => letter.path.clone(),
            MailboxPlace::Inbox | MailboxPlace::Taken => bag
                .put_away(&letter)
                .map_err(|error| failed_to_move(&error))?,
        };
        if letter.kind.as_deref() == Some("review_request") && letter.place == MailboxPlace::Inbox {
            answer.alert(
                "taken",
                format!(
                    "{} is a request: out of the inbox it counts as taken",
                    escaped(&letter.name())
                ),
            );
        }
        answer.data.moved.push(Moved {
            message: letter.name(),
            path,
        });
    }
    context.say(&answer, |all| all.text("done with"))?;
    Ok(Exit::Ok)
}

/// Takes a message of the agent's inbox: the one that is named, or the next.
pub(super) fn take(what: Option<&str>, context: &Context) -> Result<Exit, Failure> {
    let me = context.me()?;
    let bag = AgentMailboxes::new(&me.root, &me.agent);
    loop {
        let letter = match what {
            Some(what) => one(&bag, what, context)?,
            None => letters(&bag, MailboxPlace::Inbox)?
                .into_iter()
                .next()
                .ok_or_else(|| nothing(context))?,
        };
        if letter.place != MailboxPlace::Inbox {
            let message = format!(
                "{} was taken already: {}",
                escaped(&letter.name()),
                shown(&letter.path)
            );
            return Err(Failure::plain(Exit::Failed, message).next(context.command("inbox")));
        }
        let path = match bag.take(&letter) {
            Ok(path) => path,
            // Another one was faster, and the next may still be there.
            Err(MoveError::Gone(_)) if what.is_none() => continue,
            Err(error) => return Err(failed_to_move(&error)),
        };
        let name = letter.name();
        let mut answer = CommandOutput::new(AllMoved {
            moved: vec![Moved {
                message: name.clone(),
                path,
            }],
        });
        answer.next(context.command_on("show", &name, ""), "read it");
        if let (Some("review_request"), Some(pr)) = (letter.kind.as_deref(), &letter.pr) {
            answer.next(
                context.command(&format!("brief {pr}")),
                "what this round asks",
            );
        }
        answer.next(
            context.command_on("done", &name, ""),
            "once you are done with it",
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

pub(super) fn letters(
    bag: &AgentMailboxes,
    place: MailboxPlace,
) -> Result<Vec<MailboxEntry>, Failure> {
    bag.letters(place).map_err(|error| {
        let directory = bag.directory(place);
        let exit = if error.kind() == io::ErrorKind::PermissionDenied {
            Exit::Identity
        } else {
            Exit::Failed
        };
        Failure::plain(exit, format!("{}: {error}", directory.display()))
    })
}

/// The message with this id or file name.
fn one(bag: &AgentMailboxes, what: &str, context: &Context) -> Result<MailboxEntry, Failure> {
    let mut found = bag
        .find(what)
        .map_err(|error| Failure::new(Exit::Failed, &error))?;
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
    let names = [&first, other].map(|letter| shown(&letter.path));
    let message = format!(
        "several messages are called {}: {}",
        escaped(what),
        names.join(", ")
    );
    Err(
        Failure::plain(Exit::Usage, format!("{message}; say the file's name"))
            .next(context.command("inbox")),
    )
}

fn next(bag: &AgentMailboxes, context: &Context) -> Result<MailboxEntry, Failure> {
    let in_hand = letters(bag, MailboxPlace::Taken)?.into_iter().next();
    match in_hand {
        Some(letter) => Ok(letter),
        None => letters(bag, MailboxPlace::Inbox)?
            .into_iter()
            .next()
            .ok_or_else(|| nothing(context)),
    }
}

fn nothing(context: &Context) -> Failure {
    Failure::plain(Exit::NotFound, "nothing waits in your inbox".to_owned())
        .next(context.command("wait"))
}

/// A path on one line: what a file is called is its sender's word.
fn shown(path: &Path) -> String {
    escaped(&path.display().to_string())
}

fn failed_to_move(error: &MoveError) -> Failure {
    let exit = match error {
        MoveError::Gone(_) => Exit::Failed,
        MoveError::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
            Exit::Identity
        }
        MoveError::Io { .. } => Exit::Failed,
    };
    let failure = Failure::new(exit, error);
    Failure {
        message: escaped(&failure.message),
        ..failure
    }
}
