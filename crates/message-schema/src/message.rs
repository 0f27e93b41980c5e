//! From bytes to a message that can be checked: the envelope as a tree, and for review types the body parsed as YAML
//! too, with places in the outer file. Nothing here judges a value.

use crate::code::Code;
use crate::envelope::{MessageType, ReviewKind};
use crate::id::{AgentName, MessageId, PacketPath, PrNumber};
use crate::malformed::Malformed;
use crate::yaml::{self, Field, Layout, Node, Quoted, Style};

/// A readable message, correct or not.
#[derive(Clone, Debug)]
pub struct Message {
    root: Node,
    kind: Option<MessageType>,
    meant: Option<MessageType>,
    body: ReadBody,
}

/// The part below the envelope, as far as it could be read.
#[derive(Clone, Debug)]
pub enum ReadBody {
    /// Free text or no text at all: not parsed.
    Unread,
    /// The YAML mapping of a review message.
    Mapping(Node),
    /// The body of a review message that is no YAML mapping; places are in the outer file.
    Malformed(Malformed),
}

/// Reads one message. Fails on the first problem that keeps the bytes from being one YAML mapping of at most 256 KiB. A
/// malformed body does not fail here, so that the violations of the envelope are reported with it.
pub fn parse(bytes: &[u8]) -> Result<Message, Malformed> {
    let root = yaml::read_bytes(bytes)?;
    if let Some(separator) = other_line_break(bytes) {
        return Err(separator);
    }
    let kind = root.field_text("type").and_then(MessageType::from_word);
    let meant = kind.or_else(|| root.field_text("type").and_then(meant));
    let body = match meant {
        Some(kind) if kind.is_review() => read_body(&root, bytes),
        Some(_) | None => ReadBody::Unread,
    };
    Ok(Message {
        root,
        kind,
        meant,
        body,
    })
}

/// Finds a character that ends a line for a YAML 1.1 reader, such as `oacp`, but not for a YAML 1.2 reader. After it, a
/// comment or a body continues for us and is a field for the other reader: the message would be judged as one thing and
/// read as another.
fn other_line_break(bytes: &[u8]) -> Option<Malformed> {
    // Nearly every message is ASCII, and this check is faster than the search.
    if bytes.is_ascii() {
        return None;
    }
    let text = std::str::from_utf8(bytes).ok()?;
    let at = text.find(['\u{85}', '\u{2028}', '\u{2029}'])?;
    let found = u32::from(text[at..].chars().next()?);
    let what =
        format!("there is U+{found:04X}, which ends a line for some readers and not for others");
    Some(
        Malformed::new(Code::YamlSyntax, Some(yaml::end_of(&text[..at])), what)
            .found(format!("U+{found:04X}"))
            .expected("lines that end with a line feed")
            .fix(format!(
                "remove it, or write `\\u{found:04x}` in double quotes"
            )),
    )
}

/// Reads a packet file under the limits of a message.
pub fn parse_packet(bytes: &[u8]) -> Result<Node, Malformed> {
    yaml::read_bytes(bytes)
}

/// Returns the type that was written in another case, or with hyphens or blanks.
fn meant(word: &str) -> Option<MessageType> {
    MessageType::from_word(&word.to_lowercase().replace(['-', ' '], "_"))
}

fn read_body(root: &Node, file: &[u8]) -> ReadBody {
    let Some(field) = root.field("body") else {
        return ReadBody::Unread;
    };
    let Some(body) = field.value.scalar() else {
        // A mapping is no text, which the envelope's rule reports; its content is checked as well.
        let is_filled = !field.value.fields().is_empty();
        return if is_filled {
            ReadBody::Mapping(field.value.clone())
        } else {
            ReadBody::Unread
        };
    };
    if body.text.trim().is_empty() {
        return ReadBody::Unread;
    }
    let is_quoted = body.style == Style::Quoted;
    let file = is_quoted.then(|| std::str::from_utf8(file).ok()).flatten();
    let quoted = file.and_then(|file| Quoted::of(file, field.value.place, &body.text));
    let layout = quoted
        .as_ref()
        .map_or(Layout::Frame(body.frame), Layout::Quoted);
    match yaml::read_text(&body.text, layout) {
        Ok(mapping) => ReadBody::Mapping(mapping),
        Err(malformed) => ReadBody::Malformed(malformed),
    }
}

impl Message {
    /// Returns the envelope's tree.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// Returns the body as far as it could be read.
    pub fn read_body(&self) -> &ReadBody {
        &self.body
    }

    /// Returns the message's type, if it names one of the twelve.
    pub fn kind(&self) -> Option<MessageType> {
        self.kind
    }

    /// Returns the type even if its word is written in another case or with hyphens. Such a message is refused, and its
    /// body is judged at the same time.
    pub fn meant(&self) -> Option<MessageType> {
        self.meant
    }

    /// Returns the id, if it is valid.
    pub fn id(&self) -> Option<MessageId> {
        self.root
            .field_text("id")
            .and_then(|text| MessageId::new(text).ok())
    }

    /// Returns the sender it names, if that is an agent name.
    pub fn from(&self) -> Option<AgentName> {
        self.root
            .field_text("from")
            .and_then(|text| AgentName::new(text).ok())
    }

    /// Returns the pull request of the envelope, or else of the body, if it is a number.
    pub fn related_pr(&self) -> Option<PrNumber> {
        let envelope = self
            .root
            .field("related_pr")
            .filter(|field| !field.value.is_absent());
        let field = envelope.or_else(|| self.body_field("pr"))?;
        PrNumber::new(field.value.text()?.trim()).ok()
    }

    /// Returns the subject's first line, if there is one.
    pub fn subject(&self) -> Option<&str> {
        self.root
            .field_text("subject")
            .and_then(|text| text.lines().next())
            .filter(|line| !line.is_empty())
    }

    /// Returns the packet that the message names, if it is a packet path. Best effort: the message may be wrong in any
    /// other way.
    pub fn packet_path(&self) -> Option<PacketPath> {
        let named = &self.body_field(self.packet_field()?)?.value;
        // Only a feedback must name one; there `null` is a name.
        if self.kind != Some(MessageType::Review(ReviewKind::Feedback)) && named.is_absent() {
            return None;
        }
        PacketPath::new(named.text()?.trim()).ok()
    }

    /// Returns the body field that names the packet of a message of this type: of the findings, or of a request's
    /// changed files.
    pub fn packet_field(&self) -> Option<&'static str> {
        match self.kind?.review()? {
            ReviewKind::Feedback | ReviewKind::Lgtm => Some("findings_packet"),
            ReviewKind::Request => Some("changed_files_packet"),
            ReviewKind::Addressed => None,
        }
    }

    fn body_field(&self, key: &str) -> Option<&Field> {
        match &self.body {
            ReadBody::Mapping(mapping) => mapping.field(key),
            ReadBody::Unread | ReadBody::Malformed(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEEDBACK: &str = "id: f-1\nfrom: codex\ntype: review_feedback\nsubject: \" Round 1\\nmore \"\nbody: |\n  pr: 86\n  findings_packet: packets/f.yaml\n";

    #[test]
    fn a_broken_message_still_tells_what_it_can() {
        let message = parse(FEEDBACK.as_bytes()).expect("readable");
        assert_eq!(
            message.kind(),
            Some(MessageType::Review(ReviewKind::Feedback))
        );
        assert_eq!(message.id().map(String::from).as_deref(), Some("f-1"));
        assert_eq!(message.from().map(String::from).as_deref(), Some("codex"));
        assert_eq!(message.subject(), Some("Round 1"));
        assert_eq!(
            message.related_pr().map(String::from).as_deref(),
            Some("86")
        );
        assert_eq!(
            message.packet_path().map(String::from).as_deref(),
            Some("packets/f.yaml")
        );
    }

    #[test]
    fn what_is_no_id_name_number_or_path_is_not_told() {
        let text = FEEDBACK
            .replace("f-1", "f 1")
            .replace("codex", "../x")
            .replace("86", "#86")
            .replace("packets/", "../");
        let message = parse(text.as_bytes()).expect("readable");
        assert_eq!(
            (
                message.id(),
                message.from(),
                message.related_pr(),
                message.packet_path()
            ),
            (None, None, None, None)
        );
    }

    #[test]
    fn what_ends_a_line_for_some_readers_only_is_refused() {
        for separator in ['\u{85}', '\u{2028}', '\u{2029}'] {
            let hidden = format!("{FEEDBACK}# ü {separator}priority: P0\n");
            let malformed = parse(hidden.as_bytes()).expect_err("refused");
            let place = malformed.place.map(|place| (place.line, place.column));
            assert_eq!(
                (malformed.code, place),
                (Code::YamlSyntax, Some((8, 5))),
                "{separator:?}"
            );
        }
        let written = FEEDBACK.replace("Round 1", "Round\\u2028 1");
        assert!(
            parse(written.as_bytes()).is_ok(),
            "an escape means the same to everybody"
        );
    }

    #[test]
    fn a_request_names_a_packet_by_another_field() {
        let text = FEEDBACK.replace("review_feedback", "review_request");
        let named = |text: &str| parse(text.as_bytes()).expect("readable").packet_path();
        assert_eq!(named(&text), None);
        let text = text.replace("findings_packet", "changed_files_packet");
        assert_eq!(named(&text), PacketPath::new("packets/f.yaml").ok());
    }

    #[test]
    fn nothing_in_an_optional_field_names_nothing() {
        let body = "body: |\n  pr: 86\n  findings_packet: null\n";
        for nothing in ["", "~", "null"] {
            let text = format!("type: review_lgtm\nrelated_pr: {nothing}\n{body}");
            let message = parse(text.as_bytes()).expect("readable");
            let (pr, packet) = (message.related_pr(), message.packet_path());
            assert_eq!(
                (pr.as_ref().map(PrNumber::as_str), packet),
                (Some("86"), None),
                "{nothing:?}"
            );
        }
        let text = format!("type: review_feedback\n{body}");
        let named = parse(text.as_bytes()).expect("readable").packet_path();
        assert_eq!(
            named.as_ref().map(PacketPath::as_str),
            Some("null"),
            "a required field has no absent value"
        );
    }

    #[test]
    fn a_body_that_is_no_mapping_is_kept_beside_the_envelope() {
        let text = FEEDBACK.replace("pr: 86", "pr: [86");
        let message = parse(text.as_bytes()).expect("readable");
        assert!(
            matches!(message.read_body(), ReadBody::Malformed(malformed) if malformed.place.is_some())
        );
        let text = FEEDBACK.replace("review_feedback", "question");
        assert!(matches!(
            parse(text.as_bytes()).expect("readable").read_body(),
            ReadBody::Unread
        ));
    }
}
