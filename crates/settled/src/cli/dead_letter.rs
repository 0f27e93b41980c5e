//! `settled dead-letter`: shows refused messages with the reasons, and resends or archives them.

use clap::Subcommand;
use inspect::dead_letter::retry::{self, NoOriginal, Outlook};
use inspect::dead_letter::{self, DeadLetter, DeadLetters};
use mailbox::mailboxes::AgentMailboxes;
use mailbox::put_back::put_back;
use message_schema::id::AgentName;
use message_schema::line::escaped;
use serde::Serialize;
use workspace::directory;
use workspace::refusals::Same;

use super::answer::CommandOutput;
use super::context::{Context, quoted};
use super::failure::Failure;
use crate::exit::Exit;

/// Shows and resends refused messages.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List refused messages, oldest first, and the corrections sent since
    #[command(after_help = "Examples:
  settled dead-letter list
  settled dead-letter list --agent claude
  settled dead-letter list --json | jq '.data.letters[] | select(.open)'")]
    List,
    /// Show a refused message and its report
    #[command(after_help = "Examples:
  settled dead-letter show feedback-1.yaml
  settled dead-letter show msg-86-2 --agent codex")]
    Show(DeadLetterArgs),
    /// Resend a message from the outbox it came from; the dead letter stays
    #[command(after_help = "Examples:
  settled dead-letter retry feedback-1.yaml
  settled dead-letter retry msg-86-2 --agent codex --force")]
    Retry(RetryArgs),
    /// Archive a refused message that nobody corrects; `settled problems` no longer names it
    #[command(after_help = "Examples:
  settled dead-letter dismiss feedback-1.yaml
  settled dead-letter dismiss msg-86-2 --agent codex")]
    Dismiss(DeadLetterArgs),
}

#[derive(Debug, clap::Args)]
struct DeadLetterArgs {
    /// The name of the file in dead_letter, with or without its extension, or the id of the message
    #[arg(value_name = "NAME-OR-ID")]
    word: String,
}

#[derive(Debug, clap::Args)]
struct RetryArgs {
    #[command(flatten)]
    which: DeadLetterArgs,
    /// Resend even if the validator still refuses it
    #[arg(long)]
    force: bool,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<Exit, Failure> {
    match &args.command {
        Command::List => list(context),
        Command::Show(which) => show(which, context),
        Command::Retry(args) => send_again(args, context),
        Command::Dismiss(which) => dismiss(which, context),
    }
}

#[derive(Debug, Serialize)]
struct Listed {
    #[serde(rename = "letters")]
    messages: Vec<DeadLetter>,
    /// True if it is known which messages have been corrected.
    corrections_known: bool,
}

#[derive(Debug, Serialize)]
struct DeadLettersShown {
    #[serde(rename = "letters")]
    messages: Vec<WithText>,
}

#[derive(Debug, Serialize)]
struct Dismissed {
    /// The new paths of the files.
    dismissed: Vec<String>,
}

#[derive(Debug, Serialize)]
struct WithText {
    #[serde(flatten)]
    refused: DeadLetter,
    /// The original message, if it is text and still exists.
    message: Option<String>,
}

#[derive(Debug, Serialize)]
struct Sent {
    agent: AgentName,
    id: Option<String>,
    /// The new path, relative to the root.
    path: String,
    forced: bool,
    #[serde(flatten)]
    outlook: Outlook,
}

fn list(context: &Context) -> Result<Exit, Failure> {
    let found = read_dead_letters(context)?;
    let corrections_known = found.without_ledger.is_none();
    let unread: Vec<String> = found.unread();
    let mut answer = CommandOutput::new(Listed {
        messages: found.messages,
        corrections_known,
    });
    unread
        .into_iter()
        .for_each(|message| answer.alert("unread", message));
    let mut messages = answer.data.messages.iter();
    if let Some(open) = messages.find(|refused| refused.open != Some(false)) {
        let word = quoted(open.name().as_ref());
        answer.next(
            context.command(&format!("dead-letter show {word}")),
            "the report and the message",
        );
    }
    context.say(&answer, |listed| {
        listed
            .messages
            .iter()
            .map(DeadLetter::text)
            .collect::<String>()
            + &count(&listed.messages)
    })?;
    Ok(Exit::Ok)
}

fn count(messages: &[DeadLetter]) -> String {
    let count = |is: fn(&DeadLetter) -> bool| messages.iter().filter(|it| is(it)).count();
    let corrected = count(|refused| refused.corrected_by.is_some());
    let over = match count(|refused| refused.open == Some(false)) - corrected {
        0 => String::new(),
        over => format!(", {over} over"),
    };
    let all = messages.len();
    format!("{all} refused, {corrected} of them corrected since{over}\n")
}

fn show(which: &DeadLetterArgs, context: &Context) -> Result<Exit, Failure> {
    let root = context.workspace()?;
    let found = read_dead_letters(context)?;
    let unread = found.unread();
    let messages = called(found, &which.word, context)?;
    let text = |refused: &DeadLetter| String::from_utf8(retry::original(root, refused).ok()?).ok();
    let messages = messages.into_iter().map(|refused| WithText {
        message: text(&refused),
        refused,
    });
    let mut answer = CommandOutput::new(DeadLettersShown {
        messages: messages.collect(),
    });
    unread
        .into_iter()
        .for_each(|message| answer.alert("unread", message));
    let word = quoted(which.word.as_ref());
    answer.next(
        context.command(&format!("dead-letter retry {word}")),
        "sends it again unchanged",
    );
    answer.next(
        context.command(&format!("dead-letter dismiss {word}")),
        "archives it, if nobody corrects it",
    );
    context.say(&answer, |shown| shown.messages.iter().map(whole).collect())?;
    Ok(Exit::Ok)
}

fn whole(with: &WithText) -> String {
    // Escaped line by line, because the lines contain text of agents.
    let lines = |text: &str| {
        text.lines()
            .map(|line| format!("  {}\n", escaped(line)))
            .collect::<String>()
    };
    let message = with
        .message
        .as_deref()
        .map_or("  no longer there, or not text\n".to_owned(), lines);
    format!(
        "{}report:\n{}message:\n{message}",
        with.refused.text(),
        lines(&with.refused.report.to_yaml())
    )
}

/// Moves the messages of that name, and their reports, into their agent's archive.
fn dismiss(which: &DeadLetterArgs, context: &Context) -> Result<Exit, Failure> {
    let root = context.workspace()?;
    let mut dismissed = Vec::new();
    for refused in called(read_dead_letters(context)?, &which.word, context)? {
        let mailboxes = AgentMailboxes::new(root, &refused.agent);
        let moved = mailboxes.dismiss(refused.file.as_deref(), &refused.report_file)?;
        dismissed.extend(moved.iter().map(|path| path.display().to_string()));
    }
    context.say(&CommandOutput::new(Dismissed { dismissed }), |done| {
        let line = |path: &String| format!("archived {}\n", escaped(path));
        done.dismissed.iter().map(line).collect()
    })?;
    Ok(Exit::Ok)
}

fn send_again(args: &RetryArgs, context: &Context) -> Result<Exit, Failure> {
    let root = context.workspace()?;
    let word = &args.which.word;
    let mut messages = called(read_dead_letters(context)?, word, context)?;
    // If one agent has several under this id, the last refused one is meant.
    let refused = messages.pop().expect("there is at least one");
    if messages.iter().any(|other| other.agent != refused.agent) {
        let message = format!("several agents have a dead letter {}", escaped(word));
        return Err(Failure::plain(Exit::Usage, message).next(context.command("dead-letter list")));
    }
    if let Some(message) = retry::not_its_user(root, &refused) {
        return Err(Failure::plain(Exit::Identity, message));
    }
    let original = retry::original(root, &refused).map_err(|error| no_original(&error))?;
    let outlook = retry::outlook(root, &refused, &original);
    let id = refused.report.message_id.as_ref().map(ToString::to_string);
    if !outlook.still_refused.is_empty() && !args.force {
        let message = format!(
            "it would be refused again, and was not sent:\n  {}",
            outlook.still_refused.join("\n  ")
        );
        let path = dead_letter::directory(root, &refused.agent)
            .join(refused.file.as_deref().unwrap_or_default());
        let next = format!("validate-message {}", quoted(path.as_os_str()));
        return Err(Failure::plain(Exit::InvalidMessage, message)
            .data(&outlook)
            .next(next));
    }
    let name = put_back(root, &refused.agent, &refused.report.file, &original)
        .map_err(|error| Failure::new(Exit::of_io(&error.source), &error))?;
    let path = format!(
        "{}/{name}",
        spool::dirs::of_agent(refused.agent.as_str(), spool::dirs::OUTBOX)
    );
    let mut answer = CommandOutput::new(Sent {
        agent: refused.agent,
        id,
        path,
        forced: args.force,
        outlook,
    });
    if let (Some(seq), Some(Same::Id)) = (refused.corrected_by, refused.corrected_same) {
        answer.alert(
            "id_collision",
            format!("record {seq} accepted this id since: other bytes under it are refused"),
        );
    }
    if let Some(left) = refused.report.attempts_left {
        answer.alert(
            "attempts",
            format!("its refusal cost an attempt and left {left}; another one costs the next"),
        );
    }
    if spool::is_served(root) == Some(false) {
        answer.next(context.command("serve --once"), "no daemon is serving");
    } else if let Some(id) = &answer.data.id {
        let next = context.command(&format!("trace {}", quoted(id.as_ref())));
        answer.next(next, "its outcome");
    }
    context.say(&answer, sent)?;
    Ok(Exit::Ok)
}

fn sent(sent: &Sent) -> String {
    let mut text = escaped(&format!("put back as {}", sent.path)) + "\n";
    for still in &sent.outlook.still_refused {
        text += &format!("  still refused: {still}\n");
    }
    for code in &sent.outlook.may_pass {
        text += &if sent.outlook.needs_person.contains(code) {
            format!(
                "  {code}: depends on the review, and passes only if a person changed something there\n"
            )
        } else {
            format!(
                "  {code}: depends on the state of the review and the workspace, and may pass now\n"
            )
        };
    }
    text
}

fn no_original(error: &NoOriginal) -> Failure {
    let exit = match error {
        NoOriginal::Gone => Exit::NotFound,
        NoOriginal::Unfit => Exit::InvalidMessage,
        NoOriginal::Unreadable { source, .. } => Exit::of_io(source),
    };
    Failure::new(exit, error)
}

/// The dead letters of the agent that asks or, without one, of all agents.
fn read_dead_letters(context: &Context) -> Result<DeadLetters, Failure> {
    let root = context.workspace()?;
    let agents = match context.me_if_told()? {
        Some(me) => vec![me.agent],
        None => directory::agents(root)?,
    };
    Ok(dead_letter::of(root, &agents))
}

fn called(found: DeadLetters, word: &str, context: &Context) -> Result<Vec<DeadLetter>, Failure> {
    let mut messages = found.messages;
    messages.retain(|refused| refused.is_called(word));
    if messages.is_empty() {
        let message = format!("no dead letter has the name or the id {}", escaped(word));
        let failure = Failure::plain(Exit::NotFound, message);
        return Err(failure.next(context.command("dead-letter list")));
    }
    Ok(messages)
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    #[test]
    fn what_is_not_put_back_is_gone_not_permitted_or_failed() {
        let failed = |kind: ErrorKind| NoOriginal::Unreadable {
            path: "f.yaml".into(),
            source: kind.into(),
        };
        for (error, exit) in [
            (NoOriginal::Gone, Exit::NotFound),
            (NoOriginal::Unfit, Exit::InvalidMessage),
            (failed(ErrorKind::PermissionDenied), Exit::Identity),
            (failed(ErrorKind::StorageFull), Exit::Temporary),
            (failed(ErrorKind::InvalidData), Exit::Failed),
        ] {
            assert_eq!(no_original(&error).exit, exit, "{error}");
        }
    }
}
