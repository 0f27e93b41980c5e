//! `settled trace`: shows the whole life of one message, each step with its evidence.

use inspect::trace::{self, MessageTrace};
use message_schema::id::{AgentName, MessageId};
use message_schema::line::escaped;

use super::answer::CommandOutput;
use super::context::Context;
use super::failure::Failure;
use crate::exit::Exit;

/// Traces one message.
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
    context.say(&answer, views::trace::text)?;
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
        // Without the ledger nothing counts as missing.
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
