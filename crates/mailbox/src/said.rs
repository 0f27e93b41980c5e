//! Collects what a review's two agents wrote to each other, from one agent's own mailboxes: the branch and summary of
//! the newest request, the newest report of fixes, and the reviewer's words about each finding. It does not read the
//! ledger, so removed files are unknown.

use std::collections::BTreeMap;
use std::path::Path;

use message_schema::envelope::{MessageType, ReviewKind};
use message_schema::id::{AgentName, PrNumber};
use message_schema::limit::PACKET_BYTES_MAX;
use message_schema::schema::Schema;
use message_schema::{ReadBody, coerce, parse, parse_packet};
use serde::Serialize;
use serde_json::Value;
use workspace::regular_file;

use crate::mailboxes::{AgentMailboxes, MailboxEntry, MailboxPlace};

/// The most messages read from a mailbox, newest first.
const LOOKED_AT_MAX: usize = 500;

/// The newest messages about a pull request between two agents.
#[derive(Clone, Debug, Default)]
pub struct Said {
    /// The newest request.
    pub request: Option<SaidRequest>,
    /// The newest report of fixes.
    pub addressed: Option<SaidAddressed>,
    /// The words of the newest packet about each finding, by its id.
    pub findings: BTreeMap<String, SaidFinding>,
}

/// A request in its author's words.
#[derive(Clone, Debug)]
pub struct SaidRequest {
    /// The branch.
    pub branch: Option<String>,
    /// The base commit.
    pub base: Option<String>,
    /// The commit to review.
    pub head: Option<String>,
    /// A summary of the change.
    pub summary: Option<String>,
    created: String,
}

/// A report of fixes in its author's words.
#[derive(Clone, Debug)]
pub struct SaidAddressed {
    /// The round that it answers.
    pub round: Option<u64>,
    /// The commit with the fixes.
    pub commit: Option<String>,
    /// A summary of the fixes.
    pub summary: Option<String>,
    /// The findings that it names; empty means all.
    pub findings: Vec<String>,
    created: String,
}

/// A reviewer's words about a finding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SaidFinding {
    /// The observation that shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// The recommended fix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recommendation: Option<String>,
}

impl Said {
    /// Reads what `me` and `other` wrote about the pull request from the mailboxes of `me`.
    pub fn read(root: &Path, me: &AgentName, other: &AgentName, pr: &PrNumber) -> Self {
        let mailboxes = AgentMailboxes::new(root, me);
        let places = [
            MailboxPlace::Inbox,
            MailboxPlace::Taken,
            MailboxPlace::Archive,
            MailboxPlace::Sent,
        ];
        let mut messages: Vec<MailboxEntry> = places
            .into_iter()
            .filter_map(|place| mailboxes.newest(place, LOOKED_AT_MAX).ok())
            .flatten()
            .filter(|message| is_about(message, pr))
            .collect();
        messages
            .sort_by(|a, b| (&a.created_at_utc, a.arrived).cmp(&(&b.created_at_utc, b.arrived)));
        let mut said = Self::default();
        for message in &messages {
            said.add(root, message, &[me, other]);
        }
        said
    }

    fn add(&mut self, root: &Path, message: &MailboxEntry, agents: &[&AgentName]) {
        let packet = || {
            let path = Path::new(message.packet.as_ref()?);
            spool::check_packet_path(path).ok()?;
            regular_file::read_beneath(root, path, PACKET_BYTES_MAX).ok()?
        };
        let created = message.created_at_utc.as_deref().unwrap_or_default();
        self.note(&message.text, created, agents, packet);
    }

    /// Adds a message, with its packet, if it is between these agents. Messages must be added oldest first.
    pub fn note(
        &mut self,
        text: &str,
        created: &str,
        agents: &[&AgentName],
        packet: impl FnOnce() -> Option<Vec<u8>>,
    ) {
        let Ok(message) = parse(text.as_bytes()) else {
            return;
        };
        let is_between = [
            message.root().field_text("from"),
            message.root().field_text("to"),
        ]
        .into_iter()
        .all(|name| name.is_some_and(|name| agents.iter().any(|agent| agent.as_str() == name)));
        let (true, Some(kind), ReadBody::Mapping(body)) = (
            is_between,
            message.kind().and_then(MessageType::review),
            message.read_body(),
        ) else {
            return;
        };
        let body = coerce(body, Schema::of_review(kind).shape());
        let text = |key: &str| body[key].as_str().map(|text| text.trim().to_owned());
        let created = created.to_owned();
        match kind {
            ReviewKind::Request => {
                self.request = Some(SaidRequest {
                    branch: text("branch"),
                    base: text("base_sha"),
                    head: text("declared_head"),
                    summary: text("diff_summary"),
                    created,
                });
            }
            ReviewKind::Addressed => {
                let ids = body["addressed_finding_ids"].as_array();
                let ids = ids.into_iter().flatten().filter_map(Value::as_str);
                self.addressed = Some(SaidAddressed {
                    round: body["round"].as_u64(),
                    commit: text("commit_sha"),
                    summary: text("changes_summary"),
                    findings: ids.map(str::to_owned).collect(),
                    created,
                });
            }
            ReviewKind::Feedback | ReviewKind::Lgtm => {
                if let Some(bytes) = packet() {
                    self.add_packet(&bytes);
                }
            }
        }
    }

    fn add_packet(&mut self, bytes: &[u8]) {
        let Ok(packet) = parse_packet(bytes) else {
            return;
        };
        let packet = coerce(&packet, Schema::FindingsPacket.shape());
        for finding in packet["findings"].as_array().into_iter().flatten() {
            let text = |key: &str| {
                let text = finding[key].as_str().map(str::trim);
                text.filter(|text| !text.is_empty()).map(str::to_owned)
            };
            let Some(id) = text("id") else { continue };
            let known = self.findings.entry(id).or_default();
            known.evidence = text("evidence").or(known.evidence.take());
            known.recommendation = text("recommendation").or(known.recommendation.take());
        }
    }

    /// The report of fixes, unless a request followed it.
    pub fn unasked(&self) -> Option<&SaidAddressed> {
        let asked = self
            .request
            .as_ref()
            .map_or("", |request| request.created.as_str());
        self.addressed
            .as_ref()
            .filter(|addressed| addressed.created.as_str() >= asked)
    }

    /// The author's newest report about a finding: the commit if it names the finding as fixed, and its words, which
    /// are the author's argument otherwise.
    pub fn reported(&self, finding: &str) -> Option<String> {
        let report = self.addressed.as_ref()?;
        let claim = if report.names(finding) {
            let commit = report.commit.as_deref().unwrap_or("a new commit");
            format!("fixed in {commit}")
        } else {
            "not named as fixed".to_owned()
        };
        let words = report
            .summary
            .as_deref()
            .map_or_else(String::new, |text| format!(": {text}"));
        Some(claim + &words)
    }
}

impl SaidAddressed {
    /// True if it reports this finding as fixed.
    pub fn names(&self, finding: &str) -> bool {
        self.findings.is_empty() || self.findings.iter().any(|id| id == finding)
    }
}

fn is_about(message: &MailboxEntry, pr: &PrNumber) -> bool {
    let is_review = message
        .kind
        .as_deref()
        .and_then(MessageType::from_word)
        .is_some_and(MessageType::is_review);
    is_review && message.is_about(pr)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_of_fixes_names_some_findings_or_means_all() {
        let [claude, codex] = ["claude", "codex"].map(|name| AgentName::new(name).expect("a name"));
        let reported = |body: &str| {
            let text = format!("from: claude\nto: codex\ntype: review_addressed\nbody: |\n{body}");
            let mut said = Said::default();
            said.note(&text, "", &[&claude, &codex], || None);
            said.reported("F-1").expect("a report")
        };
        for (body, words) in [
            ("  commit_sha: abc1234\n", "fixed in abc1234"),
            ("  round: 1\n", "fixed in a new commit"),
            (
                "  changes_summary: it ends\n",
                "fixed in a new commit: it ends",
            ),
            (
                "  commit_sha: abc1234\n  addressed_finding_ids: [F-2, F-1]\n",
                "fixed in abc1234",
            ),
            (
                "  changes_summary: not a fault\n  addressed_finding_ids: [F-2]\n",
                "not named as fixed: not a fault",
            ),
        ] {
            assert_eq!(reported(body), words, "{body}");
        }
        assert_eq!(Said::default().reported("F-1"), None);
    }

    #[test]
    fn a_report_of_fixes_waits_for_a_request_until_one_follows_it() {
        let [claude, codex] = ["claude", "codex"].map(|name| AgentName::new(name).expect("a name"));
        for (asked, addressed, is_unasked) in
            [("1", "2", true), ("2", "2", true), ("3", "2", false)]
        {
            let mut said = Said::default();
            for (kind, created) in [("request", asked), ("addressed", addressed)] {
                let text =
                    format!("from: claude\nto: codex\ntype: review_{kind}\nbody: |\n  round: 1\n");
                said.note(&text, created, &[&claude, &codex], || None);
            }
            assert_eq!(said.unasked().is_some(), is_unasked, "{asked} {addressed}");
        }
    }

    #[test]
    fn a_later_packet_keeps_the_words_that_it_does_not_repeat() {
        let [claude, codex] = ["claude", "codex"].map(|name| AgentName::new(name).expect("a name"));
        let text = "from: codex\nto: claude\ntype: review_feedback\nbody: |\n  round: 1\n";
        let mut said = Said::default();
        for packet in [
            "findings:\n- {id: F-1, evidence: it loops, recommendation: end it}\n",
            "findings:\n- {id: F-1, evidence: ' ', recommendation: stop it}\n- {evidence: no id}\n",
            "- no packet\n",
        ] {
            said.note(text, "", &[&claude, &codex], || {
                Some(packet.as_bytes().to_vec())
            });
        }
        let expected = SaidFinding {
            evidence: Some("it loops".to_owned()),
            recommendation: Some("stop it".to_owned()),
        };
        assert_eq!(
            said.findings,
            BTreeMap::from([("F-1".to_owned(), expected)])
        );
    }
}
