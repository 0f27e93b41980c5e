//! `new`: a template of a message or findings packet. It validates unchanged, and comments say what to change. Id and
//! time are made here; everything else comes from the flags or is a placeholder.

use std::process::ExitCode;
use std::time::SystemTime;

use chrono::{DateTime, Utc};
use clap::builder::PossibleValuesParser;
use message_schema::envelope::{MessageType, Priority, ReviewKind, TextKind, Timestamp};
use message_schema::id::{AgentName, CommitSha, MessageId, PacketPath, PrNumber};
use message_schema::limit::SUBJECT_CHARS_MAX;
use message_schema::{parse, render_document};
use ulid::Ulid;
use validate_message::{PacketInput, check};

use crate::print;

/// The name of the template for findings packets.
const PACKET: &str = "findings_packet";

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  validate-message new review_request --from claude --to codex --pr 86 > agents/claude/outbox/request.yaml
  validate-message new findings_packet --pr 86 > packets/findings/pr86_r1.yaml
  validate-message new review_feedback --from codex --to claude --pr 86 --packet packets/findings/pr86_r1.yaml")]
pub(crate) struct Args {
    /// A message type, or findings_packet
    #[arg(value_name = "TYPE", value_parser = kinds())]
    kind: String,

    /// The sender
    #[arg(long, value_name = "AGENT", value_parser = agent)]
    from: Option<String>,

    /// The recipient
    #[arg(long, value_name = "AGENT", value_parser = agent)]
    to: Option<String>,

    /// The pull request
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = pr)]
    pr: String,

    /// The round of the review
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    round: u32,

    /// The priority: P0, P1, P2, P3
    #[arg(long, default_value = "P2", value_parser = PossibleValuesParser::new(Priority::ALL.iter().map(|p| p.as_str())))]
    priority: String,

    /// The subject, one line
    #[arg(long, value_name = "TEXT", value_parser = subject)]
    subject: Option<String>,

    /// The branch under review
    #[arg(long, value_name = "NAME", default_value = "my-branch", value_parser = subject)]
    branch: String,

    /// The commit that is declared, addressed or approved
    #[arg(long, value_name = "SHA", default_value = "0000000", value_parser = commit)]
    commit: String,

    /// The path of the findings packet in the workspace [default: packets/findings/pr<PR>_r<ROUND>.yaml]
    #[arg(long, value_name = "PATH", value_parser = packet)]
    packet: Option<String>,

    /// The message's id [default: from the time, the sender and a random part]
    #[arg(long, value_name = "ID", value_parser = id)]
    id: Option<String>,

    /// The path of the schema for editors, relative to the file [default: in schemas/ of the workspace]
    #[arg(long, value_name = "PATH", value_parser = subject)]
    schema: Option<String>,
}

/// Prints the filled template; if the flags make it invalid, prints the violations and exits with 2.
pub(crate) fn run(args: &Args) -> ExitCode {
    let now = Timestamp::from_utc(DateTime::<Utc>::from(SystemTime::now()));
    let text = filled(args, now, &Ulid::generate().to_string().to_lowercase());
    let refused = parse(text.as_bytes()).map(|message| check(&message, PacketInput::NotLooked));
    match refused {
        Ok(Err(violations)) if args.kind != PACKET => {
            violations
                .iter()
                .for_each(|violation| print::complain(&format!("{}\n", violation.message)));
            ExitCode::from(2)
        }
        Ok(_) | Err(_) => print::out(&text),
    }
}

fn kinds() -> PossibleValuesParser {
    let types = MessageType::all().map(MessageType::as_str);
    PossibleValuesParser::new(types.chain([PACKET]))
}

fn agent(text: &str) -> Result<String, String> {
    AgentName::new(text)
        .map(String::from)
        .map_err(|error| error.to_string())
}

fn pr(text: &str) -> Result<String, String> {
    PrNumber::new(text)
        .map(String::from)
        .map_err(|error| error.to_string())
}

fn commit(text: &str) -> Result<String, String> {
    CommitSha::new(text)
        .map(String::from)
        .map_err(|error| error.to_string())
}

fn packet(text: &str) -> Result<String, String> {
    PacketPath::new(text)
        .map(String::from)
        .map_err(|error| error.to_string())
}

fn id(text: &str) -> Result<String, String> {
    MessageId::new(text)
        .map(String::from)
        .map_err(|error| error.to_string())
}

fn subject(text: &str) -> Result<String, String> {
    let fits = (1..=SUBJECT_CHARS_MAX).contains(&text.trim().chars().count())
        && message_schema::line::is_one_line(text);
    fits.then(|| text.trim().to_owned()).ok_or_else(|| {
        "expected 1 to 200 characters on one line, without control or bidi characters".to_owned()
    })
}

/// Returns the template of the type, and the text that its comments ask for.
fn template(kind: &str) -> (&'static str, &'static str) {
    match MessageType::from_word(kind) {
        None => (include_str!("findings_packet.yaml"), ""),
        Some(MessageType::Review(kind)) => (review(kind), ""),
        Some(MessageType::Text(kind)) => (include_str!("text.yaml"), called_for(kind)),
    }
}

fn review(kind: ReviewKind) -> &'static str {
    match kind {
        ReviewKind::Request => include_str!("review_request.yaml"),
        ReviewKind::Feedback => include_str!("review_feedback.yaml"),
        ReviewKind::Addressed => include_str!("review_addressed.yaml"),
        ReviewKind::Lgtm => include_str!("review_lgtm.yaml"),
    }
}

fn called_for(kind: TextKind) -> &'static str {
    match kind {
        TextKind::Notification => "The news for the recipient.",
        TextKind::Question => "Your question, and why you ask.",
        TextKind::TaskRequest => "The work to do, and how to check that it is done.",
        TextKind::FollowUp => "The follow-up, and the message it follows.",
        TextKind::Handoff => "The task you hand over, its state, and the next step.",
        TextKind::HandoffComplete => "What you did of the work handed over.",
        TextKind::BrainstormRequest => "The problem you want ideas for.",
        TextKind::BrainstormFollowup => "The result of the ideas, or another idea.",
    }
}

/// Returns the default sender and recipient of a message of that type.
fn places(kind: &str) -> (&'static str, &'static str) {
    match kind {
        "review_request" | "review_addressed" => ("author", "reviewer"),
        "review_feedback" | "review_lgtm" | PACKET => ("reviewer", "author"),
        _ => ("sender", "recipient"),
    }
}

fn filled(args: &Args, now: Timestamp, chance: &str) -> String {
    let kind = args.kind.as_str();
    let (text, body) = template(kind);
    let (writer, reader) = places(kind);
    let from = args.from.as_deref().unwrap_or(writer);
    let stamp = now.utc().format("%Y%m%dT%H%M%SZ");
    // The end of a ULID is random; eight of its letters are forty bits.
    let id = args
        .id
        .clone()
        .unwrap_or_else(|| format!("msg-{stamp}-{from}-{}", &chance[chance.len() - 8..]));
    let packet = args
        .packet
        .clone()
        .unwrap_or_else(|| format!("packets/findings/pr{}_r{}.yaml", args.pr, args.round));
    let schema = args.schema.clone().unwrap_or_else(|| match kind {
        PACKET => "../../schemas/findings_packet.schema.json".to_owned(),
        _ => "../../../schemas/envelope.schema.json".to_owned(),
    });
    let subject = args.subject.as_deref().map(yaml_scalar);
    let values = [
        ("id", yaml_scalar(&id)),
        ("from", yaml_scalar(from)),
        ("to", yaml_scalar(args.to.as_deref().unwrap_or(reader))),
        ("type", kind.to_owned()),
        ("priority", args.priority.clone()),
        ("now", yaml_scalar(&now.to_string())),
        ("pr", yaml_scalar(&args.pr)),
        ("round", args.round.to_string()),
        ("branch", yaml_scalar(&args.branch)),
        ("commit", yaml_scalar(&args.commit)),
        ("packet", yaml_scalar(&packet)),
        ("schema", schema),
        ("body", body.to_owned()),
    ];
    let mut lines = String::new();
    for line in text.lines() {
        let given = subject.as_ref().filter(|_| line.starts_with("subject: "));
        match given {
            Some(subject) => lines.extend(["subject: ", subject]),
            None => fill(line, &values, &mut lines),
        }
        lines.push('\n');
    }
    lines
}

/// Returns a one-line text as `fmt` writes it.
fn yaml_scalar(text: &str) -> String {
    let field = render_document(&serde_json::json!({ "x": text }));
    field.trim_start_matches("x: ").trim_end().to_owned()
}

/// Appends a line of a template with each `{name}` replaced once, from left to right, so that an inserted value is
/// never taken for a placeholder.
fn fill(line: &str, values: &[(&str, String)], into: &mut String) {
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, behind) = after
            .split_once('}')
            .expect("the templates close what they open");
        let (_, value) = values
            .iter()
            .find(|(known, _)| *known == name)
            .expect("the templates name what is known");
        into.extend([before, value]);
        rest = behind;
    }
    into.push_str(rest);
}
