//! `settled send`: a message out of options, checked before it is written, and what became of it.

use mailbox::compose::draft::MessageDraft;
use message_schema::envelope::MessageType;
use workspace::clock;

use super::bodies::{Addressed, EnvelopeArgs, Request, ResponseArgs, Telemetry};
use super::context::Context;
use super::failure::Failure;
use super::posting::{self, SendOptions};
use crate::exit::Exit;

/// Sends a message.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled send review_request --to codex --pr 86 --branch fix/login --body-file summary.md
  settled send review_addressed --pr 86 --commit-sha abc1234 --body-file - < what-i-did.md
  settled send question --to gemini --subject \"Which port?\" --body \"80 or 8080?\"
  settled send review_feedback --pr 86 --findings-packet findings.yaml    (settled feedback writes one)

Exit codes: 0 accepted, 7 invalid or refused, 8 refused by the quality gate, 9 written but not judged yet.")]
pub(super) struct Args {
    /// review_request, review_feedback, review_addressed, review_lgtm, notification, question, task_request, follow_up,
    /// handoff, handoff_complete, brainstorm_request or brainstorm_followup
    #[arg(value_name = "TYPE", value_parser = kind, hide_possible_values = true)]
    kind: MessageType,
    #[command(flatten)]
    envelope: EnvelopeArgs,
    #[command(flatten)]
    parts: Parts,
}

/// What may be said besides the envelope, and how it goes out.
#[derive(Debug, clap::Args)]
pub(super) struct Parts {
    #[command(flatten)]
    request: Request,
    #[command(flatten)]
    addressed: Addressed,
    #[command(flatten)]
    answer: ResponseArgs,
    #[command(flatten)]
    telemetry: Telemetry,
    #[command(flatten)]
    pub(super) way: SendOptions,
}

impl Parts {
    /// The letter with all that was said.
    pub(super) fn letter(
        &self,
        envelope: &EnvelopeArgs,
        kind: MessageType,
    ) -> Result<MessageDraft, Failure> {
        let mut letter = envelope.letter(kind)?;
        self.request.add(&mut letter);
        self.addressed.add(&mut letter);
        self.answer.add(&mut letter)?;
        self.telemetry.add(&mut letter);
        Ok(letter)
    }
}

pub(super) fn run(args: &Args, context: &Context) -> Result<Exit, Failure> {
    let me = context.me()?;
    let letter = args.parts.letter(&args.envelope, args.kind)?;
    posting::post(
        context,
        &me,
        &letter,
        &args.parts.way,
        Vec::new(),
        clock::now(),
    )
}

/// A type by its word; of the review loop also without `review_`, and with hyphens.
pub(super) fn kind(text: &str) -> Result<MessageType, String> {
    let word = text.to_lowercase().replace('-', "_");
    let found =
        MessageType::from_word(&word).or_else(|| MessageType::from_word(&format!("review_{word}")));
    found.ok_or_else(|| {
        let words: Vec<&str> = MessageType::all().map(MessageType::as_str).collect();
        format!("expected one of {}", words.join(", "))
    })
}
