//! `settled trace`: the whole life of one message, each step with its evidence.

use inspect::trace::{self, Certainty, Life, LifeStep, MessageTrace};
use message_schema::id::{AgentName, MessageId};
use message_schema::line::escaped;

use super::answer::CommandOutput;
use super::context::Context;
use super::failure::Failure;
use crate::exit::Exit;

/// So much of a digest is shown to people.
const DIGEST_CHARS: usize = "sha256:".len() + 12;

/// Follows one message.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled trace msg-86-1
  settled trace msg-1 --from claude   if several senders use the same id
  settled trace msg-86-1 --json | jq '.data.messages[].steps[]'")]
pub(super) struct Args {
    /// The id of the message
    #[arg(value_name = "ID")]
    id: MessageId,
    /// Only the message of this sender; `settled` for the daemon's notices
    #[arg(long, value_name = "AGENT")]
    from: Option<AgentName>,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<Exit, Failure> {
    let root = context.workspace()?;
    let trace = trace::of(root, &args.id, args.from.as_ref());
    if trace.messages.is_empty() {
        return Err(nowhere(&trace, args, context));
    }
    let unread = trace.without_ledger.clone();
    let mut answer = CommandOutput::new(trace);
    if let Some(why) = unread {
        answer.alert(
            "ledger_unread",
            format!(
                "the ledger cannot be read, so only files are shown: {}",
                escaped(&why)
            ),
        );
    }
    context.say(&answer, text)?;
    Ok(Exit::Ok)
}

fn nowhere(trace: &MessageTrace, args: &Args, context: &Context) -> Failure {
    let of = args
        .from
        .as_ref()
        .map_or_else(String::new, |from| format!(" of {from}"));
    let message = format!(
        "no message {}{of} in an outbox, in dead_letter or in an inbox",
        escaped(&trace.id)
    );
    match &trace.without_ledger {
        // What the ledger would say is not known, so nothing is said not to exist.
        Some(why) => Failure::plain(
            Exit::Failed,
            format!("{message}, and the ledger cannot be read: {}", escaped(why)),
        ),
        None => {
            let message = format!("{message}, and no record of the ledger has it");
            Failure::plain(Exit::NotFound, message).next(context.command("log -n 20"))
        }
    }
}

fn text(trace: &MessageTrace) -> String {
    let lives: Vec<String> = trace
        .messages
        .iter()
        .map(|life| self::life(&trace.id, life))
        .collect();
    lives.join("\n")
}

fn life(id: &str, life: &Life) -> String {
    let mut head = id.to_owned();
    head += &life.from.as_ref().map_or_else(
        || "  no proven sender".to_owned(),
        |from| format!("  from {from}"),
    );
    head += &life
        .kind
        .as_ref()
        .map_or_else(String::new, |kind| format!("  {kind}"));
    head += &life
        .review
        .as_ref()
        .map_or_else(String::new, |review| format!("  {review}"));
    let mut text = escaped(&head) + "\n";
    for step in &life.steps {
        text += &self::step(step);
    }
    text
}

/// One step: what it is and when, and below it what shows it.
fn step(step: &LifeStep) -> String {
    let mark = match step.state {
        Certainty::Yes => "+",
        Certainty::No => "-",
        Certainty::Unknown => "?",
    };
    let by = step
        .agent
        .as_ref()
        .map_or_else(String::new, |agent| format!("{agent}: "));
    let at = step.at.as_deref().unwrap_or("");
    let said = format!(
        "{mark} {:<9}  {at:<24}  {by}{}",
        step.step.word(),
        step.what
    );
    let mut text = escaped(said.trim_end()) + "\n";
    let record = step.record.map(|seq| format!("record {seq}"));
    let digest = step
        .digest
        .as_ref()
        .map(|digest| digest.chars().take(DIGEST_CHARS).collect());
    let shown: Vec<String> = [record, step.path.clone(), digest]
        .into_iter()
        .flatten()
        .collect();
    if !shown.is_empty() {
        text += &format!("{:39}{}\n", "", escaped(&shown.join("  ")));
    }
    text
}
