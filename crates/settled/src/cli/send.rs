//! `settled send`: makes a message from options, checks it before writing it, and reports its outcome.

use mailbox::compose::draft::MessageDraft;
use mailbox::compose::words_from::WordsFrom;
use message_schema::envelope::{MessageType, ReviewKind, TextKind};
use workspace::clock;

use super::bodies::{Addressed, EnvelopeArgs, Request, ResponseArgs, Telemetry};
use super::context::Context;
use super::failure::Failure;
use super::posting::{self, SendOptions};
use crate::exit::Exit;

/// Sends a message.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled send review_request --to codex --pr 86 --branch fix --body-file fix.md
  settled send review_addressed --pr 86 --commit-sha abc1234 --body-file fix.md
  settled send question --to gemini --subject \"Which port?\" --body \"80 or 8080?\"
  settled send review_feedback --pr 86 --findings-packet findings.yaml

Exit codes: 0 accepted, 7 invalid or refused, 8 refused by the quality gate,
9 written but not judged yet.")]
pub(super) struct Args {
    /// The type of the message
    #[arg(value_name = "TYPE", value_parser = kind, hide_possible_values = true)]
    kind: MessageType,
    #[command(flatten)]
    envelope: EnvelopeArgs,
    #[command(flatten)]
    parts: Parts,
}

/// The options besides the envelope: the content, and how to send it.
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
    /// The place where the caller gave the message's content.
    pub(super) fn origin<'a>(&'a self, envelope: &'a EnvelopeArgs) -> WordsFrom<'a> {
        match (self.answer.packet(), &envelope.body_file) {
            (Some(packet), _) => WordsFrom::Packet(packet),
            (None, Some(body)) if self.says_no_field() => WordsFrom::Yaml(body),
            (None, _) => WordsFrom::Flags,
        }
    }

    /// True if no option sets a field of the body.
    fn says_no_field(&self) -> bool {
        let mut draft = MessageDraft::new(MessageType::Review(ReviewKind::Request));
        self.request.add(&mut draft);
        self.addressed.add(&mut draft);
        draft.body.names().next().is_none()
    }

    /// The draft with everything that was given.
    pub(super) fn draft(
        &self,
        envelope: &EnvelopeArgs,
        kind: MessageType,
    ) -> Result<MessageDraft, Failure> {
        let mut draft = envelope.draft(kind)?;
        self.request.add(&mut draft);
        self.addressed.add(&mut draft);
        self.answer.add(&mut draft)?;
        self.telemetry.add(&mut draft);
        Ok(draft)
    }
}

pub(super) fn run(args: &Args, context: &Context) -> Result<Exit, Failure> {
    let me = context.me()?;
    let draft = args.parts.draft(&args.envelope, args.kind)?;
    posting::post(
        context,
        &me,
        &draft,
        (&args.parts.way, args.parts.origin(&args.envelope)),
        Vec::new(),
        clock::now(),
    )
}

/// The purpose of messages of this type.
pub(super) fn sentence(kind: MessageType) -> &'static str {
    match kind {
        MessageType::Review(ReviewKind::Request) => "Ask for a review",
        MessageType::Review(ReviewKind::Feedback) => {
            "Answer it with findings; use `settled feedback`"
        }
        MessageType::Review(ReviewKind::Addressed) => "Report which findings you fixed",
        MessageType::Review(ReviewKind::Lgtm) => "Approve; use `settled lgtm`",
        MessageType::Text(TextKind::Notification) => "Inform an agent",
        MessageType::Text(TextKind::Question) => {
            "Ask a question; `wait --for reply` gets the answer"
        }
        MessageType::Text(TextKind::TaskRequest) => "Ask for work",
        MessageType::Text(TextKind::FollowUp) => "Answer or continue; use `settled reply`",
        MessageType::Text(TextKind::Handoff) => "Hand a task over",
        MessageType::Text(TextKind::HandoffComplete) => "Report a handed-over task as done",
        MessageType::Text(TextKind::BrainstormRequest) => "Ask for ideas",
        MessageType::Text(TextKind::BrainstormFollowup) => "Continue a brainstorm",
    }
}

/// Parses a type: hyphens are allowed, and so are review types without `review_`.
pub(super) fn kind(text: &str) -> Result<MessageType, String> {
    let word = text.to_lowercase().replace('-', "_");
    let found =
        MessageType::from_word(&word).or_else(|| MessageType::from_word(&format!("review_{word}")));
    found.ok_or_else(|| {
        let words: Vec<&str> = MessageType::all().map(MessageType::as_str).collect();
        format!("expected one of {}", words.join(", "))
    })
}
