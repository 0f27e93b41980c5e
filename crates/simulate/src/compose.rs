//! Composes the file that an agent would have written for a `send` step. Fills in what the step omits from the
//! envelope, body and packet, so that a scenario states only what matters.

use std::fmt::Display;

use chrono::{DateTime, SecondsFormat, Utc};
use message_schema::Schema;
use message_schema::envelope::{HEAD, MessageType, ReviewKind};
use message_schema::id::{AgentName, PrNumber};
use message_schema::packet::FindingsPacket;
use message_schema::yaml::{Content, Node};
use spool::dirs;

use super::format::Setup;
use super::reader::{ParseError, Parsed, one_or_many, optional, text, value};
use super::yaml::Writer;

/// A file for an outbox, and the packet that its author wrote before it.
#[derive(Clone, Debug)]
pub(super) struct Mail {
    pub(super) outbox: AgentName,
    pub(super) text: String,
    pub(super) packet: Option<(String, PacketEntry)>,
    /// A description in a few words.
    pub(super) label: String,
}

/// The entry at the path of a packet.
#[derive(Clone, Debug)]
pub(super) enum PacketEntry {
    /// A file with this text.
    Text(String),
    /// An entry that must not be read; the text names its kind.
    Unsafe(String),
    /// A file larger than may be read.
    TooLarge,
    /// Not looked at: the message is judged alone, as `validate-message` does outside a workspace.
    Unchecked,
}

/// The values a composed message depends on.
pub(super) struct ComposeContext<'a> {
    pub(super) setup: &'a Setup,
    /// The number of the message, from 1.
    pub(super) number: usize,
    pub(super) now: DateTime<Utc>,
    /// Returns the current round of a pull request, if it has a review.
    pub(super) round: &'a dyn Fn(&PrNumber) -> Option<u32>,
}

/// Keys of a step that are not envelope fields.
const OURS: [&str; 6] = [
    "outbox",
    "packet",
    "packet_path",
    "packet_entry",
    "without",
    "body",
];

/// Returns the path of a packet of findings.
pub(super) fn findings_path(name: impl Display) -> String {
    format!("{}/{name}.yaml", dirs::of_packets(dirs::FINDINGS))
}

/// Writes the message of a step.
pub(super) fn mail(step: &Node, context: &ComposeContext<'_>) -> Parsed<Mail> {
    let writing = Writing::begin(step, context)?;
    let packet = writing.packet()?;
    let body = writing.body(packet.as_ref())?;
    let mut out = Writer::default();
    for &key in HEAD.iter().filter(|key| !writing.without.contains(*key)) {
        match (step.field(key), writing.filled(key)) {
            (Some(field), _) => out.field(0, key, &field.value),
            (None, Some(text)) => out.plain(key, &text),
            (None, None) => {}
        }
    }
    for field in step.fields() {
        let key = field.key.as_str();
        if !HEAD.contains(&key) && !OURS.contains(&key) {
            out.field(0, key, &field.value);
        }
    }
    match body {
        BodySource::Text(text) if !writing.without.contains(&"body") => out.literal("body", &text),
        BodySource::Tree(node) => out.field(0, "body", node),
        BodySource::Text(_) => {}
    }
    let from = writing.from.clone();
    let outbox = optional(step, "outbox")?
        .unwrap_or_else(|| from.parse().unwrap_or(context.setup.author().clone()));
    let label = format!("{} {from} -> {}", writing.kind, writing.to);
    Ok(Mail {
        outbox,
        text: out.into_text(),
        packet,
        label,
    })
}

/// A step being written, with its sender and recipient.
struct Writing<'a> {
    step: &'a Node,
    context: &'a ComposeContext<'a>,
    kind: String,
    known: Option<MessageType>,
    from: String,
    to: String,
    without: Vec<&'a str>,
}

/// The source of a body: composed text, or the scenario's own.
enum BodySource<'a> {
    Text(String),
    Tree(&'a Node),
}

impl<'a> Writing<'a> {
    /// Reads the step; a bare word gives only the type.
    fn begin(step: &'a Node, context: &'a ComposeContext<'a>) -> Parsed<Self> {
        let kind = match (step.scalar(), value(step, "type")) {
            (Some(scalar), _) => scalar.text.trim(),
            (None, Some(node)) => text(node)?.trim(),
            (None, None) => return Err(ParseError::at(step.place, "a message needs `type`")),
        };
        let known = MessageType::from_word(kind);
        let answers = known.is_some_and(MessageType::is_terminal_response);
        let setup = context.setup;
        let (from, to) = if answers {
            (setup.reviewer(), setup.author())
        } else {
            (setup.author(), setup.reviewer())
        };
        let named = |key: &str| {
            value(step, key)
                .and_then(Node::text)
                .map(|text| text.trim().to_owned())
        };
        let from = named("from").unwrap_or_else(|| from.to_string());
        // A sender that is itself the usual recipient writes to the first other agent.
        let usual = if from == to.as_str() {
            setup.agents.iter().find(|name| name.as_str() != from)
        } else {
            Some(to)
        };
        let to = named("to").unwrap_or_else(|| usual.unwrap_or(to).to_string());
        let without = match value(step, "without") {
            Some(node) => one_or_many(node).iter().map(text).collect::<Parsed<_>>()?,
            None => Vec::new(),
        };
        Ok(Self {
            step,
            context,
            kind: kind.to_owned(),
            known,
            from,
            to,
            without,
        })
    }

    fn is_review(&self) -> bool {
        self.known.is_some_and(MessageType::is_review)
    }

    /// The value for an envelope key that the step omits.
    fn filled(&self, key: &str) -> Option<String> {
        Some(match key {
            "id" => format!("msg-{}", self.context.number),
            "from" => self.from.clone(),
            "to" => self.to.clone(),
            "type" => self.kind.clone(),
            "priority" => "P2".to_owned(),
            "created_at_utc" => {
                format!(
                    "\"{}\"",
                    self.context.now.to_rfc3339_opts(SecondsFormat::Secs, true)
                )
            }
            // A request names its pull request in the body instead.
            "related_pr"
                if self.is_review()
                    && self.known != Some(MessageType::Review(ReviewKind::Request)) =>
            {
                format!("\"{}\"", self.context.setup.pr)
            }
            "subject" => format!("{} {}", self.kind, self.context.number),
            _ => return None,
        })
    }

    fn packet(&self) -> Parsed<Option<(String, PacketEntry)>> {
        let path = match value(self.step, "packet_path") {
            Some(node) => text(node)?.to_owned(),
            None => findings_path(self.context.number),
        };
        if let Some(node) = value(self.step, "packet_entry") {
            let laid = match text(node)?.trim() {
                "too_large" => PacketEntry::TooLarge,
                "unchecked" => PacketEntry::Unchecked,
                what => PacketEntry::Unsafe(what.to_owned()),
            };
            return Ok(Some((path, laid)));
        }
        let Some(field) = self.step.field("packet") else {
            return Ok(None);
        };
        Ok(Some((path, PacketEntry::Text(packet_text(&field.value)))))
    }

    fn body(&self, packet: Option<&(String, PacketEntry)>) -> Parsed<BodySource<'a>> {
        let given = self.step.field("body").map(|field| &field.value);
        match given.map(|node| (node, &node.content)) {
            Some((node, Content::Scalar(scalar))) if !node.is_absent() => {
                return Ok(BodySource::Text(scalar.text.clone()));
            }
            Some((node, Content::Map(_) | Content::List(_))) if !self.is_review() => {
                return Ok(BodySource::Tree(node));
            }
            Some((node, Content::List(_))) => return Ok(BodySource::Tree(node)),
            Some((_, Content::Scalar(_) | Content::Map(_))) | None => {}
        }
        if !self.is_review() {
            return Ok(BodySource::Text("A text.".to_owned()));
        }
        let mut out = Writer::default();
        let has = |key: &str| given.is_some_and(|body| body.field(key).is_some());
        for (key, text) in self.body_fields(given, packet) {
            if !has(key) && !self.without.contains(&key) {
                out.plain(key, &text);
            }
        }
        for field in given.map(Node::fields).unwrap_or_default() {
            out.field(0, &field.key, &field.value);
        }
        Ok(BodySource::Text(out.into_text()))
    }

    /// The body of a step that gives none: every field that its type requires.
    fn body_fields(
        &self,
        given: Option<&Node>,
        packet: Option<&(String, PacketEntry)>,
    ) -> Vec<(&'static str, String)> {
        let named = self
            .step
            .field_text("related_pr")
            .or_else(|| given.and_then(|body| body.field_text("pr")));
        let pr = named
            .and_then(|text| PrNumber::new(text).ok())
            .unwrap_or_else(|| self.context.setup.pr.clone());
        let round = || (self.context.round)(&pr).unwrap_or(1).to_string();
        match self.known {
            Some(MessageType::Review(ReviewKind::Request)) => vec![
                ("pr", format!("\"{pr}\"")),
                ("branch", "fix".to_owned()),
                ("diff_summary", "A fix.".to_owned()),
            ],
            Some(MessageType::Review(ReviewKind::Feedback)) => {
                let path = packet.map_or_else(|| findings_path("none"), |(path, _)| path.clone());
                vec![
                    ("findings_packet", path),
                    ("round", round()),
                    (
                        "blocking_count",
                        blocking_count(packet.map(|(_, laid)| laid)).to_string(),
                    ),
                ]
            }
            Some(MessageType::Review(ReviewKind::Addressed)) => vec![
                ("commit_sha", "c0ffee1".to_owned()),
                ("changes_summary", "Fixed.".to_owned()),
                ("round", round()),
            ],
            Some(MessageType::Review(ReviewKind::Lgtm)) => {
                let mut fields = vec![
                    ("quality_gate_result", "pass".to_owned()),
                    ("merge_ready", "true".to_owned()),
                ];
                fields.extend(packet.map(|(path, _)| ("findings_packet", path.clone())));
                fields
            }
            Some(_) | None => Vec::new(),
        }
    }
}

/// The text of a packet, as written or from a mapping. A bare list holds findings, open unless they give a status.
pub(super) fn packet_text(node: &Node) -> String {
    let mut out = Writer::default();
    match &node.content {
        Content::Scalar(scalar) => return scalar.text.clone(),
        Content::Map(fields) => fields
            .iter()
            .for_each(|field| out.field(0, &field.key, &field.value)),
        Content::List(items) if items.is_empty() => out.plain("findings", "[]"),
        Content::List(_) => {
            out.field(0, "findings", node);
            return with_status(&out.into_text());
        }
    }
    out.into_text()
}

/// Gives every finding without a status the status `open`.
fn with_status(text: &str) -> String {
    let mut out = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        out += line;
        out.push('\n');
        if line == "  -" {
            let rest = lines.clone().take_while(|line| line.starts_with("    "));
            if !rest.into_iter().any(|line| line.starts_with("    status:")) {
                out += "    status: open\n";
            }
        }
    }
    out
}

/// Counts the blocking findings of the packet, as far as it is readable.
pub(super) fn blocking_count(laid: Option<&PacketEntry>) -> usize {
    let Some(PacketEntry::Text(text)) = laid else {
        return 0;
    };
    let Ok(tree) = message_schema::parse_packet(text.as_bytes()) else {
        return 0;
    };
    let packet = message_schema::coerce(&tree, Schema::FindingsPacket.shape());
    let packet: Result<FindingsPacket, _> = serde_json::from_value(packet);
    packet.map_or(0, |packet| {
        packet
            .findings
            .iter()
            .filter(|finding| finding.counts_as_blocking())
            .count()
    })
}
