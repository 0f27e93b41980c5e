//! Turns a structured response into what travels: the body of a message and its findings packet. It writes every action
//! explicitly, so that the packet means the same in both thread modes and nothing is left to silence. The caller names
//! and writes the files.

use std::collections::{BTreeMap, BTreeSet};

use message_schema::body::{
    Body, Escalation, Examined, GateResult, Nit, NitTier, ReviewFeedback, ReviewLgtm,
};
use message_schema::id::{CommitSha, DiffDigest, FindingId, PacketPath, RepoPath};
use message_schema::packet::{
    Action, CommandRun, Finding, FindingsPacket, LineRange, QaValidation, Severity, Status,
};

use super::answer::{
    Deal, ExaminedAnswer, FeedbackAnswer, LgtmAnswer, NewFinding, NitAnswer, NotAResponse,
    StructuredResponse, TerminalResponse, ThreadAnswer,
};
use super::assignment::{only_escalatable, reopenable};
use review::Review;
use review::ReviewKey;
use review::Thread;

/// The next step of a deferred thread's nit if the reviewer named none.
const LATER: &str = "look at it after the merge";

/// A response as it travels.
#[derive(Clone, Debug, PartialEq)]
pub struct WireResponse {
    /// The body of its message; names the packet if there is one.
    pub body: Body,
    /// The packet; `None` for an lgtm that acts on no thread and records no command and no read file.
    pub packet: Option<FindingsPacket>,
}

impl StructuredResponse {
    /// Writes the response to the review's open request as a message body whose packet will be at `path`. Fails if the
    /// wire format cannot express it: an open thread without an action, an action on a thread that is not open, an
    /// impossible `defer`, a text that does not fit its field.
    pub fn write(
        &self,
        key: &ReviewKey,
        review: &Review,
        path: &PacketPath,
    ) -> Result<WireResponse, NotAResponse> {
        let scribe = Scribe { key, review, path };
        match &self.response {
            TerminalResponse::Feedback(answer) => scribe.feedback(answer),
            TerminalResponse::Lgtm(answer) => scribe.lgtm(answer),
        }
    }
}

struct Scribe<'a> {
    key: &'a ReviewKey,
    review: &'a Review,
    path: &'a PacketPath,
}

impl<'a> Scribe<'a> {
    fn feedback(&self, answer: &FeedbackAnswer) -> Result<WireResponse, NotAResponse> {
        let mut findings = Vec::new();
        for (id, thread, said) in self.dealt(&answer.threads)? {
            match said.action {
                Deal::Act(action) => findings.push(acted(id, thread, action, said)),
                Deal::Defer => return Err(NotAResponse::NotDeferrable(id.clone())),
            }
        }
        for (id, thread) in self.back(&answer.reopen, reopenable(self.review))? {
            findings.push(thread.restated(id, Status::Open));
        }
        for (id, thread) in self.back(&answer.escalate, only_escalatable(self.review))? {
            findings.push(Finding {
                action: Some(Action::Escalate),
                ..thread.restated(id, Status::Open)
            });
        }
        let new = self.free_ids().zip(&answer.new_findings).enumerate();
        for (index, (id, finding)) in new {
            findings.push(opened(id, finding, index)?);
        }
        let validated_head = commit(&answer.validated_head)?;
        let blocking = findings
            .iter()
            .filter(|finding| finding.counts_as_blocking())
            .count();
        let body = ReviewFeedback {
            findings_packet: self.path.clone(),
            round: self.review.round,
            blocking_count: u32::try_from(blocking).unwrap_or(u32::MAX),
            escalation: field(
                "escalation",
                &answer.escalation,
                Escalation::EXPECTED,
                |text| Escalation::try_from(text.to_owned()).ok(),
            )?,
            validated_head: validated_head.clone(),
            examined: None,
            withheld_side_effects: None,
            telemetry: None,
        };
        let packet = FindingsPacket {
            examined: examined(&answer.examined)?,
            ..self.packet(findings, &answer.commands_run, validated_head)
        };
        Ok(WireResponse {
            body: Body::Feedback(body),
            packet: Some(packet),
        })
    }

    fn lgtm(&self, answer: &LgtmAnswer) -> Result<WireResponse, NotAResponse> {
        let mut findings = Vec::new();
        let mut nits = Vec::new();
        for (id, thread, said) in self.dealt(&answer.threads)? {
            match said.action {
                Deal::Act(action) => findings.push(acted(id, thread, action, said)),
                // The packet does not name it: in both thread modes the nit alone covers it.
                Deal::Defer => nits.push(self.deferred(id, thread, said)?),
            }
        }
        nits.extend(
            answer
                .nits
                .iter()
                .filter(|nit| !nit.summary.trim().is_empty())
                .map(|nit| self.nit(nit)),
        );
        for (number, nit) in (1..).zip(&mut nits) {
            nit.nit_id = format!("NIT-{number:03}");
        }
        let validated_head = commit(&answer.validated_head)?;
        let packet = FindingsPacket {
            examined: examined(&answer.examined)?,
            ..self.packet(findings, &answer.commands_run, validated_head.clone())
        };
        let is_empty = packet.findings.is_empty()
            && packet.qa_validation.is_none()
            && packet.examined.is_none();
        let packet = (!is_empty).then_some(packet);
        let body = ReviewLgtm {
            quality_gate_result: GateResult::Pass,
            merge_ready: answer.merge_ready,
            nits,
            findings_packet: packet.as_ref().map(|_| self.path.clone()),
            round: Some(self.review.round),
            validated_head,
            unbound: false,
            examined: None,
            follow_ups: None,
            withheld_side_effects: None,
            telemetry: None,
        };
        Ok(WireResponse {
            body: Body::Lgtm(body),
            packet,
        })
    }

    /// Returns each open thread with its action; fails unless every open thread has exactly one.
    fn dealt<'s>(
        &self,
        said: &'s BTreeMap<FindingId, ThreadAnswer>,
    ) -> Result<Vec<(&'a FindingId, &'a Thread, &'s ThreadAnswer)>, NotAResponse> {
        let is_open = |id: &FindingId| self.review.threads.get(id).is_some_and(Thread::is_open);
        if let Some(id) = said.keys().find(|id| !is_open(id)) {
            return Err(NotAResponse::NotOpen(id.clone()));
        }
        let dealt = self
            .review
            .open_threads()
            .map(|(id, thread)| match said.get(id) {
                Some(answer) => Ok((id, thread, answer)),
                None => Err(NotAResponse::Missing(id.clone())),
            });
        dealt.collect()
    }

    /// Returns the threads whose problem is back, each once; all must be among `eligible`.
    fn back(
        &self,
        ids: &[FindingId],
        eligible: impl Iterator<Item = &'a FindingId>,
    ) -> Result<BTreeMap<&'a FindingId, &'a Thread>, NotAResponse> {
        let eligible: BTreeSet<&FindingId> = eligible.collect();
        let one = |id: &FindingId| {
            let id = eligible
                .get(id)
                .ok_or_else(|| NotAResponse::NotResolved(id.clone()))?;
            Ok((*id, &self.review.threads[*id]))
        };
        ids.iter().map(one).collect()
    }

    /// Returns, in order, the ids that no thread of this review has.
    fn free_ids(&self) -> impl Iterator<Item = FindingId> {
        let ids = (1..).map(|number| FindingId::new(format!("F-{number:03}")));
        ids.filter_map(Result::ok)
            .filter(|id| !self.review.threads.contains_key(id))
    }

    fn deferred(
        &self,
        id: &FindingId,
        thread: &Thread,
        said: &ThreadAnswer,
    ) -> Result<Nit, NotAResponse> {
        let tier = match thread.severity {
            Severity::P2 if !thread.blocking => NitTier::P2,
            Severity::P3 => NitTier::P3,
            Severity::P0 | Severity::P1 | Severity::P2 => {
                return Err(NotAResponse::NotDeferrable(id.clone()));
            }
        };
        let summary = thread
            .title
            .clone()
            .unwrap_or_else(|| format!("finding {id}"));
        let answer = NitAnswer {
            tier,
            summary,
            owner: said.owner.clone(),
            next_action: said.next_action.clone(),
        };
        Ok(Nit {
            source: Some(id.clone()),
            ..self.nit(&answer)
        })
    }

    /// Returns a nit that has no id yet.
    fn nit(&self, said: &NitAnswer) -> Nit {
        Nit {
            nit_id: String::new(),
            tier: said.tier,
            summary: said.summary.clone(),
            owner: text(&said.owner).unwrap_or_else(|| self.key.author.to_string()),
            next_action: text(&said.next_action).unwrap_or_else(|| LATER.to_owned()),
            tracking_ref: None,
            source: None,
            expires_at_utc: None,
        }
    }

    fn packet(
        &self,
        findings: Vec<Finding>,
        runs: &[CommandRun],
        reviewed_sha: Option<CommitSha>,
    ) -> FindingsPacket {
        let runs = runs.iter().filter(|run| !run.command.trim().is_empty());
        let commands_run: Vec<CommandRun> = runs
            .map(|run| CommandRun {
                notes: run.notes.as_deref().and_then(text),
                ..run.clone()
            })
            .collect();
        FindingsPacket {
            packet_id: None,
            source_review_packet: None,
            reviewer: Some(self.key.reviewer.to_string()),
            round: Some(self.review.round),
            created_at_utc: None,
            reviewed_sha,
            summary: None,
            findings,
            qa_validation: (!commands_run.is_empty()).then_some(QaValidation { commands_run }),
            examined: None,
        }
    }
}

/// Without `action`, a reader takes the status for the same meaning. It is never `wont_fix`, which only a person can
/// say about a P0 or P1.
fn acted(id: &FindingId, thread: &Thread, action: Action, said: &ThreadAnswer) -> Finding {
    let status = match action {
        Action::Resolve => Status::Fixed,
        Action::Veto | Action::Escalate | Action::Reply => Status::NotFixed,
    };
    Finding {
        stance: said.stance,
        action: Some(action),
        evidence: text(&said.evidence),
        ..thread.restated(id, status)
    }
}

fn opened(id: FindingId, said: &NewFinding, index: usize) -> Result<Finding, NotAResponse> {
    let at = |name: &str| format!("findings[{index}].{name}");
    Ok(Finding {
        id,
        severity: said.severity,
        status: Status::Open,
        // If it is stated where it must not be, or missing where it must be, the validator reports it.
        blocking: said.blocking.filter(|_| said.severity == Severity::P2),
        title: text(&said.title),
        area: None,
        category: text(&said.category),
        file: field(&at("file"), &said.file, RepoPath::EXPECTED, |text| {
            RepoPath::new(text).ok()
        })?,
        line: None,
        lines: field(
            &at("lines"),
            &said.lines,
            LineRange::EXPECTED,
            LineRange::parse,
        )?,
        repro: None,
        expected: None,
        evidence: text(&said.evidence),
        recommendation: text(&said.recommendation),
        fingerprint: None,
        introduced_by: text(&said.introduced_by),
        same_as: None,
        target: None,
        stance: None,
        action: None,
    })
}

fn commit(said: &str) -> Result<Option<CommitSha>, NotAResponse> {
    field("validated_head", said, CommitSha::EXPECTED, |text| {
        CommitSha::new(text).ok()
    })
}

/// Returns the reviewer's claim of what it read, if it makes one. The packet carries it, which has room for many files.
fn examined(said: &ExaminedAnswer) -> Result<Option<Examined>, NotAResponse> {
    let files = said.declared.iter().enumerate().map(|(index, file)| {
        let name = format!("examined.declared[{index}]");
        field(&name, file, RepoPath::EXPECTED, |text| {
            RepoPath::new(text).ok()
        })
    });
    let examined = Examined {
        diff_digest: field(
            "examined.diff_digest",
            &said.diff_digest,
            DiffDigest::EXPECTED,
            |text| DiffDigest::new(text).ok(),
        )?,
        declared: files
            .filter_map(Result::transpose)
            .collect::<Result<_, _>>()?,
        ..Examined::default()
    };
    Ok((examined != Examined::default()).then_some(examined))
}

/// Returns the text without surrounding white space; `None` if nothing is left.
fn text(said: &str) -> Option<String> {
    Some(said.trim())
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}

/// Reads the text of a field; `None` if it is empty. Fails if the field does not accept it.
fn field<T>(
    name: &str,
    said: &str,
    expected: &'static str,
    read: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, NotAResponse> {
    let Some(text) = text(said) else {
        return Ok(None);
    };
    let not_read = || NotAResponse::Field {
        field: name.to_owned(),
        found: text.clone(),
        expected,
    };
    read(&text).map(Some).ok_or_else(not_read)
}
