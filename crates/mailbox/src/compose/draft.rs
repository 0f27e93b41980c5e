//! Makes a draft of what an agent gave for a message. The review, the packet or the type supply a missing value where
//! only one is possible.

use std::io;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use message_schema::envelope::{MessageType, Priority, ReviewKind};
use message_schema::id::{AgentName, MessageId, PrNumber, Repo};
use message_schema::packet::Finding;
use message_schema::schema::Schema;
use message_schema::yaml::Node;
use message_schema::{coerce, line, parse_packet};
use serde::Deserialize as _;
use serde_json::Value;
use spool::{Layout, dirs};

use super::ask;
use super::change::{self, Described};
use super::message::{BodyContent, EnvelopeHead, Fields, UncheckedMessage};
use super::packet::{self, MessagePacket, Named, NewPacket};
use super::review_status::{self, ReviewStatuses};
use crate::said::Said;

/// A message, as far as its sender gave it.
#[derive(Clone, Debug)]
pub struct MessageDraft {
    /// The type.
    pub kind: MessageType,
    /// The recipients; if empty, the only possible agent.
    pub to: Vec<AgentName>,
    /// The pull request.
    pub pr: Option<PrNumber>,
    /// The urgency of an answer.
    pub priority: Option<Priority>,
    /// The subject, in one line.
    pub subject: Option<String>,
    /// The other fields of the envelope.
    pub envelope: Fields,
    /// The long text: the body or, for a review message, its YAML or summary.
    pub text: Option<String>,
    /// The fields of a review message's body.
    pub body: Fields,
    /// The findings packet.
    pub packet: PacketGiven,
    /// The trailer of a signature.
    pub auth: Option<String>,
    /// The directory in which git describes a request's change; without one, only the given fields do.
    pub repository: Option<PathBuf>,
}

/// The findings packet, as given.
#[derive(Clone, Debug, Default)]
pub enum PacketGiven {
    /// No packet.
    #[default]
    None,
    /// A file, in the workspace or elsewhere.
    Path(PathBuf),
    /// The text of a packet that has no file yet.
    Text(String),
}

/// The reason a draft cannot become a message.
#[derive(Debug, thiserror::Error)]
pub enum DraftError {
    /// The recipient is unknown.
    #[error("no recipient given and none can be inferred")]
    Nobody,
    /// The body has no field of that name.
    #[error("a {kind} has no `{field}` in its body")]
    Foreign {
        /// The field.
        field: String,
        /// The type.
        kind: MessageType,
    },
    /// The packet cannot be read or placed.
    #[error("{path}: {source}", path = path.display())]
    Packet {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl MessageDraft {
    /// An empty draft of this type.
    pub fn new(kind: MessageType) -> Self {
        Self {
            kind,
            to: Vec::new(),
            pr: None,
            priority: None,
            subject: None,
            envelope: Fields::default(),
            text: None,
            body: Fields::default(),
            packet: PacketGiven::None,
            auth: None,
            repository: None,
        }
    }

    /// Makes the whole message, with the packet to write before it.
    pub fn to_message(
        &self,
        root: &Path,
        me: &AgentName,
        id: &MessageId,
        at: DateTime<Utc>,
    ) -> Result<(UncheckedMessage, MessagePacket), DraftError> {
        let mut body = self.body.clone();
        let text = self.spread(&mut body);
        self.check_names(&body)?;
        let in_body = || text_of(&body, "pr").and_then(|text| PrNumber::new(text).ok());
        let pr = self.pr.clone().or_else(in_body);
        let to = self.address(root, me, pr.as_ref(), at, &mut body)?;
        let described = self.describe(root, me, pr.as_ref(), &to, &mut body);
        let packet = self.placed(root, me, pr.as_ref(), described.packet, &mut body)?;
        self.complete(&mut body, pr.as_ref(), &packet);
        let head = EnvelopeHead {
            id,
            from: me,
            to: &to,
            kind: self.kind,
            priority: self.priority.unwrap_or(Priority::P2),
            at,
        };
        let envelope = self.envelope(&head, pr.as_ref(), &body);
        let body = if self.kind.is_review() {
            BodyContent::Fields(body)
        } else {
            BodyContent::Text(text.unwrap_or_default())
        };
        Ok((
            UncheckedMessage {
                id: id.clone(),
                kind: self.kind,
                envelope,
                body,
                auth: self.auth.clone(),
                no_diff: described.missing,
            },
            packet,
        ))
    }

    /// Refuses a given field that no body of this type has.
    fn check_names(&self, body: &Fields) -> Result<(), DraftError> {
        let foreign = body
            .names()
            .find(|name| !self.knows(name) && self.body.get(name).is_some());
        foreign.map_or(Ok(()), |field| {
            Err(DraftError::Foreign {
                field: field.to_owned(),
                kind: self.kind,
            })
        })
    }

    /// Returns the recipients, and fills in the round that the message answers.
    fn address(
        &self,
        root: &Path,
        me: &AgentName,
        pr: Option<&PrNumber>,
        at: DateTime<Utc>,
        body: &mut Fields,
    ) -> Result<Vec<AgentName>, DraftError> {
        let repo = text_of(body, "repo").and_then(|text| Repo::new(text).ok());
        let other = pr.and_then(|pr| self.other_side(root, me, pr, repo.as_ref(), at));
        let to = match (self.to.as_slice(), &other) {
            ([], Some((only, _))) => vec![only.clone()],
            ([], None) => return Err(DraftError::Nobody),
            (given, _) => given.to_vec(),
        };
        if let Some((_, Some(round))) = other {
            body.fill("round", round);
        }
        Ok(to)
    }

    /// Describes the change of a request: as in the review's messages before, and as git sees it.
    fn describe(
        &self,
        root: &Path,
        me: &AgentName,
        pr: Option<&PrNumber>,
        to: &[AgentName],
        body: &mut Fields,
    ) -> Described {
        if self.kind != MessageType::Review(ReviewKind::Request) {
            return Described::default();
        }
        if let (Some(pr), [other]) = (pr, to) {
            as_before(body, &Said::read(root, me, other, pr));
        }
        match &self.repository {
            Some(directory) => change::describe(body, directory),
            None => Described::default(),
        }
    }

    fn envelope(&self, head: &EnvelopeHead<'_>, pr: Option<&PrNumber>, body: &Fields) -> Fields {
        let mut envelope = head.fields();
        envelope.put_given("related_pr", pr.map(PrNumber::as_str));
        let subject = self.subject.clone();
        envelope.put(
            "subject",
            subject.unwrap_or_else(|| self.default_subject(pr, body)),
        );
        for name in self.envelope.names() {
            envelope.put_given(name, self.envelope.get(name).cloned());
        }
        envelope
    }

    /// The other agent of the review and the round that a message names, from the ledger if it can be read, else from
    /// the files.
    fn other_side(
        &self,
        root: &Path,
        me: &AgentName,
        pr: &PrNumber,
        repo: Option<&Repo>,
        at: DateTime<Utc>,
    ) -> Option<(AgentName, Option<u32>)> {
        let is_request = self.kind == MessageType::Review(ReviewKind::Request);
        let needs_round = self.knows("round") && !is_request;
        if !self.to.is_empty() && !needs_round {
            return None;
        }
        if let Some(statuses) = ReviewStatuses::read(root, me) {
            let to = self
                .to
                .first()
                .cloned()
                .or_else(|| statuses.other_side(pr, repo))?;
            let round = statuses.round(pr, repo, &to).filter(|_| needs_round);
            return Some((to, round));
        }
        if self.kind.is_terminal_response() {
            let asks = ask::open(root, me, at).ok()?;
            let mut meant = asks.into_iter().filter(|ask| ask.brief.pr.same_pr(pr));
            return meant
                .next()
                .map(|ask| (ask.brief.author, Some(ask.brief.round)));
        }
        let (to, round) = review_status::newest_feedback(root, me, pr)?;
        Some((to, needs_round.then_some(round)))
    }

    fn knows(&self, field: &str) -> bool {
        Schema::of_body(self.kind).is_some_and(|schema| schema.shape().field(field).is_some())
    }

    /// The field of a review message for a long text.
    fn summary(&self) -> Option<&'static str> {
        match self.kind {
            MessageType::Review(ReviewKind::Request) => Some("diff_summary"),
            MessageType::Review(ReviewKind::Addressed) => Some("changes_summary"),
            MessageType::Review(ReviewKind::Feedback | ReviewKind::Lgtm) | MessageType::Text(_) => {
                None
            }
        }
    }

    /// Spreads the long text of a review message over the body: the fields of a mapping that has some of the body's, or
    /// else all of it as the summary. Returns the text if it is the whole body.
    fn spread(&self, body: &mut Fields) -> Option<String> {
        let text = self.text.clone()?;
        let Some(schema) = Schema::of_body(self.kind) else {
            return Some(text);
        };
        let mapping = parse_packet(text.as_bytes())
            .ok()
            .filter(|node| self.is_body(node));
        match (mapping, self.summary()) {
            (Some(mapping), _) => {
                if let Value::Object(fields) = coerce(&mapping, schema.shape()) {
                    fields
                        .into_iter()
                        .for_each(|(name, value)| body.fill(&name, value));
                }
            }
            (None, Some(summary)) => body.fill(summary, text.trim()),
            // The validator has no code for a text in place of fields, but it reports an unknown field by name.
            (None, None) => body.fill("text", text.trim()),
        }
        None
    }

    fn is_body(&self, node: &Node) -> bool {
        node.fields().iter().any(|field| self.knows(&field.key))
    }

    /// Finds or places the packet, and names it in the body.
    fn placed(
        &self,
        root: &Path,
        me: &AgentName,
        pr: Option<&PrNumber>,
        changes: Option<String>,
        body: &mut Fields,
    ) -> Result<MessagePacket, DraftError> {
        let (field, stem) = match self.kind {
            MessageType::Review(ReviewKind::Request) => ("changed_files_packet", "_changes"),
            MessageType::Review(_) | MessageType::Text(_) => ("findings_packet", ""),
        };
        let in_body = body.get(field).and_then(Value::as_str).map(PathBuf::from);
        let new = |text: String, body: &mut Fields| {
            let round = body
                .get("round")
                .map_or_else(String::new, |round| format!("_r{round}"));
            let stem = pr.map_or_else(
                || me.to_string(),
                |pr| format!("{pr}_{me}{}{stem}", round.replace('"', "")),
            );
            let planned = NewPacket::plan(root, &stem, text);
            let planned = planned.map_err(|source| DraftError::Packet {
                path: Layout::new(root).packets(dirs::FINDINGS),
                source,
            })?;
            body.put(field, planned.path.as_str());
            Ok(MessagePacket::New(planned))
        };
        if let Some(changes) = changes {
            return new(changes, body);
        }
        let path = match (&self.packet, &in_body) {
            (PacketGiven::Text(text), _) => return new(text.clone(), body),
            (PacketGiven::Path(path), _) | (PacketGiven::None, Some(path)) => path.clone(),
            (PacketGiven::None, None) => return Ok(MessagePacket::None),
        };
        match packet::named(root, &path).map_err(|source| DraftError::Packet {
            path: path.clone(),
            source,
        })? {
            Named::Inside(inside, bytes) => {
                body.put(field, inside.as_str());
                Ok(MessagePacket::InPlace(bytes))
            }
            Named::Outside(text) => new(text, body),
            Named::Missing => {
                body.put(field, path.to_string_lossy().into_owned());
                Ok(MessagePacket::Missing)
            }
        }
    }

    /// Fills in the fields that follow from the type, the number and the packet.
    fn complete(&self, body: &mut Fields, pr: Option<&PrNumber>, packet: &MessagePacket) {
        match self.kind {
            MessageType::Review(ReviewKind::Request) => {
                if let Some(pr) = pr {
                    body.fill("pr", pr.as_str());
                }
            }
            MessageType::Review(ReviewKind::Feedback) => {
                if let Some(count) = blocking(packet) {
                    body.fill("blocking_count", count);
                }
            }
            MessageType::Review(ReviewKind::Lgtm) => {
                body.fill("quality_gate_result", "pass");
                body.fill("merge_ready", true);
            }
            MessageType::Review(ReviewKind::Addressed) | MessageType::Text(_) => {}
        }
    }

    fn default_subject(&self, pr: Option<&PrNumber>, body: &Fields) -> String {
        let round = body
            .get("round")
            .and_then(Value::as_u64)
            .map_or_else(String::new, |round| format!(", round {round}"));
        let about = pr.map_or_else(String::new, |pr| format!(" PR {pr}"));
        let subject = match self.kind {
            MessageType::Review(ReviewKind::Request) => format!("Review{about}"),
            MessageType::Review(ReviewKind::Feedback) => {
                let count = body.get("blocking_count").and_then(Value::as_u64);
                let count = count.map_or_else(String::new, |count| format!(": {count} blocking"));
                format!("Feedback on{about}{round}{count}")
            }
            MessageType::Review(ReviewKind::Addressed) => format!("Addressed{about}{round}"),
            MessageType::Review(ReviewKind::Lgtm) => format!("Approved{about}{round}"),
            MessageType::Text(kind) => {
                let word = kind.as_str().replace('_', " ");
                let first = word.chars().next().map(|c| c.to_ascii_uppercase());
                let word: String = first.into_iter().chain(word.chars().skip(1)).collect();
                if pr.is_some() {
                    format!("{word} on{about}")
                } else {
                    word
                }
            }
        };
        assert!(line::is_one_line(&subject), "{subject:?} has several lines");
        subject
    }
}

/// Returns the text of a field, if it is one.
fn text_of<'f>(fields: &'f Fields, name: &str) -> Option<&'f str> {
    fields.get(name).and_then(Value::as_str)
}

/// Fills in what a new request has in common with the last one: its branch, and as commit and summary those of the
/// fixes reported since.
fn as_before(body: &mut Fields, said: &Said) {
    let Some(request) = &said.request else {
        return;
    };
    if let Some(branch) = &request.branch {
        body.fill("branch", branch.as_str());
    }
    let fixes = said.unasked();
    if let Some(commit) = fixes.and_then(|fixes| fixes.commit.as_ref()) {
        body.fill("declared_head", commit.as_str());
    }
    let summary = fixes.map_or(request.summary.as_ref(), |fixes| fixes.summary.as_ref());
    if let Some(summary) = summary {
        body.fill("diff_summary", summary.as_str());
    }
}

/// The number of blocking findings in the packet, as far as they can be read.
fn blocking(packet: &MessagePacket) -> Option<usize> {
    let bytes = match packet {
        MessagePacket::None | MessagePacket::Missing => return None,
        MessagePacket::InPlace(bytes) => bytes.as_slice(),
        MessagePacket::New(new) => new.text.as_bytes(),
    };
    let packet = coerce(&parse_packet(bytes).ok()?, Schema::FindingsPacket.shape());
    let findings = packet["findings"].as_array()?;
    let findings = findings
        .iter()
        .filter_map(|finding| Finding::deserialize(finding).ok());
    Some(findings.filter(Finding::counts_as_blocking).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_findings_that_block_are_counted_as_far_as_they_can_be_read() {
        let counted = |text: &str| blocking(&MessagePacket::InPlace(text.as_bytes().to_vec()));
        let finding = |severity: &str| {
            format!("- {{id: F-1, severity: {severity}, status: open, title: t}}\n")
        };
        assert_eq!(
            counted("reviewer: codex\nround: 1\nfindings: []\n"),
            Some(0)
        );
        let all = ["P0", "P1", "P3"].map(finding).concat();
        assert_eq!(counted(&format!("findings:\n{all}- 7\n")), Some(2));
        assert_eq!(counted("- no mapping\n"), None);
        assert_eq!(blocking(&MessagePacket::Missing), None);
    }
}
