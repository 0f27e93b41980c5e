//! Completes a reviewer's findings file: gives new findings an id, repeats the facts about open threads, and makes a nit
//! of each finding that is left for later. What cannot be read stays as it is, for the validator to report.

use std::collections::{BTreeMap, BTreeSet};

use judgement::brief::OpenThread;
use message_schema::body::{Body, Escalation, Examined, Nit, ReviewFeedback, ReviewLgtm};
use message_schema::id::FindingId;
use message_schema::packet::{Action, Finding, FindingsPacket, Severity, Status};
use message_schema::{render_document, render_packet};
use review::Thread;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Response, UNPLACED, Unwritten, examined, is_long, named, passes};
use crate::compose::ask::Ask;
use crate::compose::message::Fields;
use crate::compose::omissions::{Dealt, Omission, ResponseKind};
use crate::compose::response_file::{LooseResponse, ThreadAction};

/// The keys that a finding for a deferred thread may have, because its thread has them anyway.
const OF_A_NIT: [&str; 9] = [
    "id", "action", "severity", "blocking", "status", "title", "file", "line", "lines",
];

/// The default next action of a nit.
const LATER: &str = "look at it after the merge";

/// Completes one response.
pub(super) struct Scribe<'a> {
    pub(super) ask: &'a Ask,
    pub(super) loose: &'a LooseResponse,
    pub(super) verdict: ResponseKind,
    pub(super) turns: Option<u64>,
}

impl Scribe<'_> {
    pub(super) fn write(&self) -> Result<Response, Unwritten> {
        self.strangers()?;
        let findings = self.findings();
        let read: Vec<Finding> = findings
            .iter()
            .filter_map(|finding| Finding::deserialize(finding).ok())
            .collect();
        let nits = self.nits(&read);
        let covered = self.covered(&nits);
        let dealt = |open: &OpenThread| self.dealt_beside(open, &read, &covered);
        named(self.ask, self.verdict, dealt)?;
        let blocking = read
            .iter()
            .filter(|finding| finding.counts_as_blocking())
            .count();
        let is_needed = self.verdict == ResponseKind::Feedback
            || !findings.is_empty()
            || !self.loose.commands_run.is_empty()
            || is_long(self.examined().as_ref());
        let packet = is_needed.then(|| self.packet(&findings));
        let body = self.body(blocking, &nits);
        // The validator reports what cannot be read.
        if let (Some(body), Ok(packet)) = (
            self.typed(&body),
            packet.as_ref().map(FindingsPacket::deserialize).transpose(),
        ) {
            passes(self.ask, (&body, self.turns), packet.as_ref())?;
        }
        let unnamed = self
            .ask
            .brief
            .open_threads
            .iter()
            .filter(|open| matches!(dealt(open), Dealt::Unnamed));
        let silent = unnamed.map(|open| open.id.to_string()).collect();
        Ok(Response {
            body,
            packet: packet.map(|packet| text_of(&packet)),
            blocking,
            silent,
        })
    }

    /// The body as the rules read it, if it can be read.
    fn typed(&self, body: &Fields) -> Option<Body> {
        let mut body = json!(body);
        match self.verdict {
            ResponseKind::Feedback => {
                // Every feedback names its packet, which has no path yet.
                body["findings_packet"] = UNPLACED.into();
                let body = ReviewFeedback::deserialize(body).ok();
                body.map(Body::Feedback)
            }
            ResponseKind::Lgtm => ReviewLgtm::deserialize(body).ok().map(Body::Lgtm),
        }
    }

    /// Fails for actions on threads that are not open, usually a mistake in the id.
    fn strangers(&self) -> Result<(), Unwritten> {
        let strange = self
            .loose
            .actions
            .keys()
            .filter(|id| self.ask.thread(id).is_none());
        let open: Vec<&str> = self
            .ask
            .brief
            .open_threads
            .iter()
            .map(|open| open.id.as_str())
            .collect();
        let open = match open.as_slice() {
            [] => "no thread is open".to_owned(),
            open => format!("open: {}", open.join(", ")),
        };
        let gap = |id: &String| Omission {
            code: message_schema::Code::ThreadNotOpen,
            id: id.clone(),
            what: format!("it is not an open thread of this review; {open}"),
            legal: Vec::new(),
        };
        let gaps: Vec<Omission> = strange.map(gap).collect();
        if gaps.is_empty() {
            Ok(())
        } else {
            Err(Unwritten::Gaps(gaps))
        }
    }

    fn named_again(&self, open: &OpenThread) -> Option<&Map<String, Value>> {
        self.loose
            .findings
            .iter()
            .find(|finding| finding.get("id").and_then(Value::as_str) == Some(open.id.as_str()))
    }

    /// The treatment of an open thread, considering the response's other findings.
    fn dealt_beside(
        &self,
        open: &OpenThread,
        findings: &[Finding],
        covered: &BTreeSet<FindingId>,
    ) -> Dealt {
        let dealt = self.dealt(open);
        if !matches!(dealt, Dealt::Unnamed) {
            return dealt;
        }
        if covered.contains(&open.id) {
            return Dealt::Deferred;
        }
        let escalation = self.loose.escalation.clone().map(Escalation::try_from);
        if let (ResponseKind::Feedback, Some(Ok(Escalation::ReviewerBudgetExceeded))) =
            (self.verdict, escalation)
        {
            return Dealt::Carried;
        }
        let mut new = findings.iter().filter(|finding| {
            !finding.status.is_settled() && self.ask.thread(finding.id.as_str()).is_none()
        });
        new.find(|finding| review::resembles(finding, &open.thread()))
            .map_or(Dealt::Unnamed, |finding| {
                Dealt::Overlooked(finding.id.to_string())
            })
    }

    fn dealt(&self, open: &OpenThread) -> Dealt {
        let text = |finding: Option<&Map<String, Value>>, key: &str| {
            finding
                .and_then(|finding| finding.get(key))
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let finding = self.named_again(open);
        let deed = self.loose.actions.get(open.id.as_str());
        let in_packet = text(finding, "action");
        let stance = deed.and_then(ThreadAction::stance);
        let stance = stance.or_else(|| {
            text(finding, "stance")
                .and_then(|word| message_schema::packet::Stance::from_word(&word))
        });
        if self.loose.twice.contains(open.id.as_str()) {
            return Dealt::Twice("action");
        }
        let both = |key, said: Option<&String>| {
            (said.is_some() && finding.is_some_and(|finding| finding.contains_key(key)))
                .then_some(key)
        };
        let twice = deed.and_then(|deed| {
            both("action", Some(&deed.action))
                .or_else(|| both("stance", deed.stance.as_ref()))
                .or_else(|| both("evidence", deed.evidence.as_ref()))
        });
        if let Some(what) = twice {
            return Dealt::Twice(what);
        }
        if let Some(key) = deed.and_then(ThreadAction::meaningless) {
            return Dealt::Meaningless(key.to_owned());
        }
        let word = deed.map(|deed| deed.action.clone()).or(in_packet);
        match word {
            // A finding for a deferred thread may repeat only facts of the thread.
            Some(word) if word == "defer" => finding
                .and_then(|finding| finding.keys().find(|key| !OF_A_NIT.contains(&key.as_str())))
                .map_or(Dealt::Deferred, |key| Dealt::Meaningless(key.clone())),
            Some(word) => Action::from_word(&word)
                .map_or(Dealt::Unknown(word), |action| Dealt::Act(action, stance)),
            None => match text(finding, "status").and_then(|word| Status::from_word(&word)) {
                Some(status) => Dealt::Restated(status),
                None if self.is_covered(open) => Dealt::Deferred,
                None => Dealt::Unnamed,
            },
        }
    }

    /// The open threads that the nits cover, by the rule of the gate: a nit without a source covers one thread of its
    /// tier, but is not spent on a thread that silence resolves anyway.
    fn covered(&self, nits: &[Map<String, Value>]) -> BTreeSet<FindingId> {
        let nits = nits.iter().filter_map(|nit| Nit::deserialize(nit).ok());
        let is_left = |open: &&OpenThread| match self.dealt(open) {
            Dealt::Deferred => true,
            Dealt::Unnamed => !self.ask.lgtm_resolves(open),
            Dealt::Carried
            | Dealt::Act(..)
            | Dealt::Restated(_)
            | Dealt::Unknown(_)
            | Dealt::Twice(_)
            | Dealt::Meaningless(_)
            | Dealt::Overlooked(_) => false,
        };
        let left = self.ask.brief.open_threads.iter().filter(is_left);
        // In the order in which the rule spends the nits.
        let left: BTreeMap<&FindingId, Thread> =
            left.map(|open| (&open.id, open.thread())).collect();
        let threads = left.iter().map(|(id, thread)| (*id, thread));
        review::nit_cover(threads, &nits.collect::<Vec<_>>())
    }

    /// True if a nit names the thread as its source.
    fn is_covered(&self, open: &OpenThread) -> bool {
        let source = |nit: &Map<String, Value>| {
            nit.get("source").and_then(Value::as_str) == Some(open.id.as_str())
        };
        self.verdict == ResponseKind::Lgtm && self.loose.nits.iter().any(source)
    }

    /// The reviewer's findings, completed, and the open threads that only an action names.
    fn findings(&self) -> Vec<Map<String, Value>> {
        let mut used: BTreeSet<String> = self
            .ask
            .brief
            .open_threads
            .iter()
            .map(|open| open.id.to_string())
            .collect();
        used.extend(
            self.ask
                .brief
                .held_threads
                .iter()
                .map(|held| held.id.to_string()),
        );
        let given = self
            .loose
            .findings
            .iter()
            .filter_map(|finding| finding.get("id").and_then(Value::as_str));
        used.extend(given.map(str::to_owned));
        let mut free = (1_u32..)
            .map(|n| format!("F-{}-{n:03}", self.ask.brief.round))
            .filter(move |id| !used.contains(id));
        let mut findings = Vec::new();
        for finding in &self.loose.findings {
            let id = finding.get("id").and_then(Value::as_str);
            match id.and_then(|id| self.ask.thread(id)) {
                Some(open) if matches!(self.dealt(open), Dealt::Deferred) => {}
                Some(open) => findings.push(self.again(open, finding.clone())),
                None => {
                    let mut finding = finding.clone();
                    if id.is_none() {
                        finding.insert(
                            "id".to_owned(),
                            free.next().expect("numbers do not end").into(),
                        );
                    }
                    finding
                        .entry("status")
                        .or_insert_with(|| Status::Open.as_str().into());
                    findings.push(finding);
                }
            }
        }
        let only_acted = self
            .ask
            .brief
            .open_threads
            .iter()
            .filter(|open| self.named_again(open).is_none());
        findings.extend(
            only_acted
                .filter(|open| matches!(self.dealt(open), Dealt::Act(..)))
                .map(|open| {
                    self.again(
                        open,
                        Map::from_iter([("id".to_owned(), open.id.as_str().into())]),
                    )
                }),
        );
        findings
    }

    /// An open thread as a finding, with its facts and its action.
    fn again(&self, open: &OpenThread, mut finding: Map<String, Value>) -> Map<String, Value> {
        let mut fill = |name: &str, value: Value| {
            if !value.is_null() {
                finding.entry(name).or_insert(value);
            }
        };
        if let Some(deed) = self.loose.actions.get(open.id.as_str()) {
            fill("action", deed.action.as_str().into());
            fill("stance", json!(deed.stance));
            fill("evidence", json!(deed.evidence));
        }
        if let Dealt::Act(action, _) = self.dealt(open) {
            let status = if action == Action::Resolve {
                Status::Fixed
            } else {
                Status::NotFixed
            };
            fill("status", status.as_str().into());
        }
        fill("severity", open.severity.as_str().into());
        fill("title", json!(open.title));
        fill("file", json!(open.file));
        if !finding.contains_key("line") && open.lines.is_some() {
            finding.entry("lines").or_insert(json!(open.lines));
        }
        // The other severities determine whether a finding blocks.
        if finding.get("severity").and_then(Value::as_str) == Some(Severity::P2.as_str()) {
            finding.entry("blocking").or_insert(open.blocking.into());
        }
        finding
    }

    /// The reviewer's nits, completed, and one for each deferred thread and each new finding left for later.
    fn nits(&self, findings: &[Finding]) -> Vec<Map<String, Value>> {
        if self.verdict == ResponseKind::Feedback {
            return Vec::new();
        }
        let mut nits = self.loose.nits.clone();
        let has_source = |nits: &[Map<String, Value>], id: &str| {
            nits.iter()
                .any(|nit| nit.get("source").and_then(Value::as_str) == Some(id))
        };
        let mut add =
            |severity: Severity, id: &str, title: Option<&String>, deed: Option<&ThreadAction>| {
                if !has_source(&nits, id) {
                    let summary = title.cloned().unwrap_or_else(|| format!("finding {id}"));
                    let mut nit = Map::new();
                    nit.insert("tier".to_owned(), severity.as_str().into());
                    nit.insert("summary".to_owned(), summary.into());
                    nit.insert("source".to_owned(), id.into());
                    let said = |name: &str, value: Option<&String>| {
                        value.map(|value| (name.to_owned(), value.as_str().into()))
                    };
                    nit.extend(said("owner", deed.and_then(|deed| deed.owner.as_ref())));
                    nit.extend(said(
                        "next_action",
                        deed.and_then(|deed| deed.next_action.as_ref()),
                    ));
                    nits.push(nit);
                }
            };
        for open in self
            .ask
            .brief
            .open_threads
            .iter()
            .filter(|open| matches!(self.dealt(open), Dealt::Deferred))
        {
            add(
                open.severity,
                open.id.as_str(),
                open.title.as_ref(),
                self.loose.actions.get(open.id.as_str()),
            );
        }
        let waits = |finding: &&Finding| {
            !finding.blocks() && !finding.status.is_settled() && finding.action.is_none()
        };
        for finding in findings.iter().filter(waits) {
            add(
                finding.severity,
                finding.id.as_str(),
                finding.title.as_ref(),
                None,
            );
        }
        let used: BTreeSet<String> = nits
            .iter()
            .filter_map(|nit| nit.get("nit_id")?.as_str().map(str::to_owned))
            .collect();
        let mut free = (1_u32..)
            .map(|n| format!("NIT-{n:03}"))
            .filter(move |id| !used.contains(id));
        for nit in &mut nits {
            nit.entry("nit_id")
                .or_insert_with(|| free.next().expect("numbers do not end").into());
            nit.entry("tier").or_insert_with(|| "P3".into());
            nit.entry("owner")
                .or_insert_with(|| self.ask.brief.author.as_str().into());
            nit.entry("next_action").or_insert_with(|| LATER.into());
        }
        nits
    }

    fn packet(&self, findings: &[Map<String, Value>]) -> Value {
        let mut packet = self.loose.header.clone();
        packet
            .entry("reviewer")
            .or_insert_with(|| self.ask.brief.reviewer.as_str().into());
        packet
            .entry("round")
            .or_insert_with(|| self.ask.brief.round.into());
        if let Some(head) = &self.loose.validated_head {
            packet.insert("reviewed_sha".to_owned(), head.as_str().into());
        }
        packet.insert("findings".to_owned(), json!(findings));
        if let Some(examined) = self.examined().filter(|examined| is_long(Some(examined))) {
            packet.insert("examined".to_owned(), json!(examined));
        }
        if !self.loose.commands_run.is_empty() {
            packet.insert(
                "qa_validation".to_owned(),
                json!({ "commands_run": self.loose.commands_run }),
            );
        }
        Value::Object(packet)
    }

    fn body(&self, blocking: usize, nits: &[Map<String, Value>]) -> Fields {
        let mut body = Fields::default();
        match self.verdict {
            ResponseKind::Feedback => {
                body.put("round", self.ask.brief.round);
                body.put("blocking_count", blocking);
                body.put_given("escalation", self.loose.escalation.clone());
            }
            ResponseKind::Lgtm => {
                body.put("quality_gate_result", "pass");
                body.put(
                    "merge_ready",
                    self.loose.merge_ready.clone().unwrap_or(Value::Bool(true)),
                );
                body.put("round", self.ask.brief.round);
                body.put_given("nits", (!nits.is_empty()).then(|| json!(nits)));
            }
        }
        body.put_given("validated_head", self.loose.validated_head.clone());
        let examined = self.examined().filter(|examined| !is_long(Some(examined)));
        body.put_given("examined", examined.map(|examined| json!(examined)));
        body
    }

    fn examined(&self) -> Option<Examined> {
        examined(self.ask, self.loose.examined.as_ref())
    }
}

/// The text of a packet.
fn text_of(packet: &Value) -> String {
    match FindingsPacket::deserialize(packet) {
        Ok(read) if json!(read) == *packet => render_packet(&read),
        // The validator reports what is wrong or unknown in it.
        Ok(_) | Err(_) => render_document(packet),
    }
}
