//! `settled reply`: answers a message in the agent's mailboxes and fills in what both have in common.

use mailbox::mailboxes::{AgentMailboxes, MailboxEntry};
use message_schema::envelope::{DAEMON, MessageType, ReviewKind, TextKind};
use message_schema::id::{AgentName, PrNumber};
use message_schema::limit::SUBJECT_CHARS_MAX;
use message_schema::line::escaped;
use workspace::clock;

use super::bodies::EnvelopeArgs;
use super::context::{Context, Me};
use super::failure::Failure;
use super::posting;
use super::send::{Parts, kind};
use crate::exit::Exit;

/// Answers a message.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled reply q-1 --body \"port 8080\"
  settled reply q-1 --body-file answer.md
  settled reply msg-codex-002 --commit-sha abc1234 --body-file - < fixed.md
  settled reply q-1 --type notification --body \"later\"

Exit codes: those of `settled send`; 3 if the message does not exist.")]
pub(super) struct Args {
    /// The id or file name of a message in your inbox, inbox/taken or archive
    #[arg(value_name = "MESSAGE")]
    message: String,
    /// The type of the reply [default: from the type of the message]
    #[arg(long = "type", value_name = "TYPE", value_parser = kind, hide_possible_values = true)]
    kind: Option<MessageType>,
    #[command(flatten)]
    envelope: EnvelopeArgs,
    #[command(flatten)]
    parts: Parts,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<Exit, Failure> {
    let me = context.me()?;
    let parent = find(context, &me, &args.message)?;
    let kind = args.kind.map_or_else(|| answer(context, &parent), Ok)?;
    let mut envelope = args.envelope.clone();
    if envelope.to.is_empty() {
        envelope.to = sender(context, &parent)?;
    }
    envelope.pr = envelope.pr.or_else(|| parent.pr.clone());
    envelope.parent_message_id = envelope.parent_message_id.or_else(|| parent.id.clone());
    envelope.conversation_id = envelope
        .conversation_id
        .or_else(|| parent.conversation_id.clone());
    if envelope.subject.is_none() && !kind.is_review() {
        envelope.subject = parent.subject.as_deref().map(subject);
    }
    let draft = args.parts.draft(&envelope, kind)?;
    let is_addressed = kind == MessageType::Review(ReviewKind::Addressed);
    if is_addressed && envelope.body_file.is_none() && draft.body.get("commit_sha").is_none() {
        return Err(no_commit(context, envelope.pr.as_ref()));
    }
    posting::post(
        context,
        &me,
        &draft,
        (&args.parts.way, args.parts.origin(&args.envelope)),
        Vec::new(),
        clock::now(),
    )
}

/// The failure for an answer to feedback without the commit of the fixes.
fn no_commit(context: &Context, pr: Option<&PrNumber>) -> Failure {
    let message = "the reply to a review_feedback is a review_addressed: give --commit-sha, the commit with the fixes.\n\
        To disagree with a finding, name only those you fixed with --addressed-finding-ids, and argue in --body;\n\
        to ask about it, use --type question";
    let failure = Failure::plain(Exit::Usage, message.to_owned());
    match pr {
        Some(pr) => failure.next(context.command(&format!("threads {pr}"))),
        None => failure,
    }
}

fn find(context: &Context, me: &Me, what: &str) -> Result<MailboxEntry, Failure> {
    let found = AgentMailboxes::new(&me.root, &me.agent).find(what);
    let found = found.map_err(|error| {
        Failure::plain(
            Exit::Temporary,
            format!("the mailboxes cannot be read: {error}"),
        )
    })?;
    found.into_iter().next().ok_or_else(|| {
        let message = format!(
            "{} has no message {} in inbox, inbox/taken or archive",
            me.agent,
            escaped(what)
        );
        Failure::plain(Exit::NotFound, message).next(context.command("inbox"))
    })
}

/// The sender of the message; fails for the daemon, which reads no mail.
fn sender(context: &Context, parent: &MailboxEntry) -> Result<Vec<AgentName>, Failure> {
    let from = parent.from.as_deref().unwrap_or_default();
    match AgentName::new(from) {
        Ok(from) if !from.is_daemon() => Ok(vec![from]),
        Ok(_) => {
            let message = format!(
                "{} is from {DAEMON}, which reads no mail",
                escaped(&parent.name())
            );
            Err(Failure::plain(Exit::Failed, message).next(context.command("status")))
        }
        Err(_) => {
            let message = format!(
                "{} does not say who wrote it; use --to",
                escaped(&parent.name())
            );
            Err(Failure::plain(Exit::Usage, message))
        }
    }
}

/// The type of the answer. A request has two possible answers, and the command does not guess between them.
fn answer(context: &Context, parent: &MailboxEntry) -> Result<MessageType, Failure> {
    let kind = parent.kind.as_deref().and_then(MessageType::from_word);
    match kind {
        Some(MessageType::Review(ReviewKind::Request)) => {
            let pr = parent
                .pr
                .as_ref()
                .map_or_else(String::new, |pr| format!(" {pr}"));
            let message = format!(
                "a review_request is answered by `settled feedback{pr}` or `settled lgtm{pr}`"
            );
            Err(Failure::plain(Exit::Usage, message).next(context.command(&format!("brief{pr}"))))
        }
        Some(MessageType::Review(ReviewKind::Feedback)) => {
            Ok(MessageType::Review(ReviewKind::Addressed))
        }
        Some(MessageType::Text(TextKind::Handoff)) => {
            Ok(MessageType::Text(TextKind::HandoffComplete))
        }
        Some(MessageType::Text(TextKind::BrainstormRequest | TextKind::BrainstormFollowup)) => {
            Ok(MessageType::Text(TextKind::BrainstormFollowup))
        }
        Some(
            MessageType::Review(ReviewKind::Addressed | ReviewKind::Lgtm)
            | MessageType::Text(
                TextKind::Notification
                | TextKind::Question
                | TextKind::TaskRequest
                | TextKind::FollowUp
                | TextKind::HandoffComplete,
            ),
        )
        | None => Ok(MessageType::Text(TextKind::FollowUp)),
    }
}

/// The subject of an answer, cut to the longest subject.
fn subject(parent: &str) -> String {
    const RE: &str = "Re: ";
    let rest = parent.strip_prefix(RE).unwrap_or(parent);
    let fitting: String = rest.chars().take(SUBJECT_CHARS_MAX - RE.len()).collect();
    format!("{RE}{fitting}")
}
