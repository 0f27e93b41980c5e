//! Makes the findings packet and the message body of a reviewer's answer from the reviewer's file and the request.
//! Fills in ids, counts and the facts about open threads; changes none of the reviewer's words.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use judgement::brief::{
    Deal, NotAResponse, StructuredResponse, TerminalResponse, ThreadAnswer, WireResponse,
};
use message_schema::body::{Body, Escalation, Examined, Nit};
use message_schema::id::{CommitSha, FindingId, PacketPath};
use message_schema::packet::{Action, CommandRun, Finding, FindingsPacket, Severity, Status};
use message_schema::{render_document, render_packet};
use review::Thread;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::ask::{Ask, OpenThread, ResolvedUnnamed};
use super::message::Fields;
use super::omissions::{self, Dealt, Omission, ResponseKind};
use super::response_file::{LooseResponse, ResponseFile, ThreadAction};

/// The keys that a finding for a deferred thread may have, because its thread has them anyway.
const OF_A_NIT: [&str; 9] = [
    "id", "action", "severity", "blocking", "status", "title", "file", "line", "lines",
];

/// The default next action of a nit.
const LATER: &str = "look at it after the merge";

/// The most characters of file names in a body; a longer list goes into the packet.
const EXAMINED_MAX: usize = 8_000;

/// A response, except for the path of its packet.
#[derive(Clone, Debug)]
pub struct Response {
    /// The fields of the body, without `findings_packet`.
    pub body: Fields,
    /// The packet's text; an lgtm without findings and commands needs none.
    pub packet: Option<String>,
    /// The number of blocking findings.
    pub blocking: usize,
    /// Threads that silence resolves.
    pub silent: Vec<String>,
}

/// The reason nothing was written.
#[derive(Debug)]
pub enum Unwritten {
    /// Open threads are not dealt with, or not legally.
    Gaps(Vec<Omission>),
    /// The quality gate would refuse the lgtm; the reasons, one phrase each.
    Gate(Vec<String>),
    /// It cannot be written at all.
    Response(NotAResponse),
    /// It is a feedback that asks nothing of anybody.
    Empty,
    /// It is the other kind of response.
    Other(ResponseKind),
}

/// Makes a response from the reviewer's file.
pub fn write(
    ask: &Ask,
    sheet: &ResponseFile,
    verdict: ResponseKind,
    now: DateTime<Utc>,
) -> Result<Response, Unwritten> {
    match sheet {
        ResponseFile::Structured(response) => structured(ask, response, verdict, now),
        ResponseFile::Loose(loose) => Scribe {
            ask,
            loose,
            verdict,
        }
        .write(),
        ResponseFile::Word => Scribe {
            ask: &for_a_word(ask),
            // The daemon names the commit in the run's tree, which is that of the request.
            loose: &LooseResponse::default(),
            verdict,
        }
        .write(),
    }
}

/// The request, for a reviewer that answers with one word. Such an answer is silent about all threads at once, so it
/// resolves only those that the author named.
fn for_a_word(ask: &Ask) -> Ask {
    let mut asked = ask.clone();
    // A feedback, too, resolves only those.
    asked.unnamed.by_lgtm.clone_from(&ask.unnamed.by_feedback);
    asked
}

fn structured(
    ask: &Ask,
    response: &StructuredResponse,
    verdict: ResponseKind,
    now: DateTime<Utc>,
) -> Result<Response, Unwritten> {
    let (given, threads) = match &response.response {
        TerminalResponse::Feedback(answer) => (ResponseKind::Feedback, &answer.threads),
        TerminalResponse::Lgtm(answer) => (ResponseKind::Lgtm, &answer.threads),
    };
    if given != verdict {
        return Err(Unwritten::Other(given));
    }
    let dealt = |open: &OpenThread| match threads.get(&open.id) {
        None => Dealt::Unnamed,
        Some(ThreadAnswer {
            action: Deal::Defer,
            ..
        }) => Dealt::Deferred,
        Some(ThreadAnswer {
            action: Deal::Act(action),
            stance,
            ..
        }) => Dealt::Act(*action, *stance),
    };
    // A response by the schema names everything, so silence in it is a mistake.
    let mut strict = ask.clone();
    strict.unnamed = ResolvedUnnamed::default();
    named(&strict, verdict, dealt)?;
    let place = PacketPath::new("packets/findings/x").expect("a path within the workspace");
    let written = response
        .write(&ask.key(), &ask.review(now), &place)
        .map_err(Unwritten::Response)?;
    let findings = written
        .packet
        .as_ref()
        .map_or(&[][..], |packet| &packet.findings);
    if verdict == ResponseKind::Lgtm {
        passes(gate(ask, dealt, &written))?;
    }
    if verdict == ResponseKind::Feedback
        && omissions::says_nothing(ask, escalation(&written.body), findings)
    {
        return Err(Unwritten::Empty);
    }
    let blocking = findings
        .iter()
        .filter(|finding| finding.counts_as_blocking())
        .count();
    let mut written = written;
    let left = place_examined(ask, &mut written);
    let mut body = match &written.body {
        Body::Feedback(body) => fields(body),
        Body::Lgtm(body) => fields(body),
        Body::Request(_) | Body::Addressed(_) | Body::Text(_) => {
            unreachable!("a structured response is one of the two terminal ones")
        }
    };
    body.retain(|(name, _)| name != "findings_packet");
    if let Some(examined) = left {
        body.push(("examined".to_owned(), json!(examined)));
    }
    let packet = written.packet.as_ref().map(render_packet);
    Ok(Response {
        body: body.into_iter().collect(),
        packet,
        blocking,
        silent: Vec::new(),
    })
}

/// The reasons the gate would refuse the lgtm as written.
fn gate(ask: &Ask, dealt: impl Fn(&OpenThread) -> Dealt, written: &WireResponse) -> Vec<String> {
    let packet = written.packet.as_ref();
    let findings = packet.map_or(&[][..], |packet| &packet.findings);
    let runs = packet.and_then(|packet| packet.qa_validation.as_ref());
    let runs = runs.map_or(&[][..], |qa| &qa.commands_run);
    let commit = match &written.body {
        Body::Lgtm(body) => body.validated_head.as_ref(),
        Body::Feedback(_) | Body::Request(_) | Body::Addressed(_) | Body::Text(_) => None,
    };
    omissions::gate(
        ask,
        dealt,
        findings.iter(),
        (runs, &ask.observed_runs(commit)),
    )
}

fn escalation(body: &Body) -> Option<&str> {
    match body {
        Body::Feedback(body) => body
            .escalation
            .as_ref()
            .map(|escalation| escalation.as_str()),
        Body::Lgtm(_) | Body::Request(_) | Body::Addressed(_) | Body::Text(_) => None,
    }
}

/// Puts the examined files into the packet if they belong there; otherwise returns them, because the body must have
/// them.
fn place_examined(ask: &Ask, written: &mut WireResponse) -> Option<Examined> {
    let said = written
        .packet
        .as_ref()
        .and_then(|packet| packet.examined.as_ref());
    let examined = examined(ask, said);
    let belongs_in_packet = said.is_some() || is_long(examined.as_ref());
    if let (true, Some(packet)) = (belongs_in_packet, &mut written.packet) {
        packet.examined.clone_from(&examined);
    }
    let is_in_packet = written
        .packet
        .as_ref()
        .is_some_and(|packet| packet.examined.is_some());
    examined.filter(|_| !is_in_packet)
}

/// The files that the reviewer declares as read and those that `settled diff` printed; nothing from the request.
fn examined(ask: &Ask, said: Option<&Examined>) -> Option<Examined> {
    let mut examined = said.cloned();
    if let Some(served) = &ask.served {
        let examined = examined.get_or_insert_default();
        examined
            .diff_digest
            .get_or_insert_with(|| served.diff_digest.clone());
        // Files printed for another diff say nothing about this one.
        if examined.diff_digest.as_ref() == Some(&served.diff_digest) {
            examined.served.extend(served.files.iter().cloned());
            examined.served.sort();
            examined.served.dedup();
        }
    }
    examined
}

/// True if the lists are too long for a body.
fn is_long(examined: Option<&Examined>) -> bool {
    let characters = |examined: &Examined| {
        let files = examined.files().map(|file| file.as_str().len() + 6);
        files.sum::<usize>()
    };
    examined.is_some_and(|examined| characters(examined) > EXAMINED_MAX)
}

fn fields(body: &impl Serialize) -> Vec<(String, Value)> {
    match serde_json::to_value(body).expect("a body has text keys and plain values") {
        Value::Object(map) => map.into_iter().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Vec::new()
        }
    }
}

/// Fails unless the response deals with every open thread.
fn named(
    ask: &Ask,
    verdict: ResponseKind,
    dealt: impl Fn(&OpenThread) -> Dealt,
) -> Result<(), Unwritten> {
    let gaps: Vec<Omission> = ask
        .open_threads
        .iter()
        .filter_map(|open| omissions::gap(ask, open, &dealt(open), verdict))
        .collect();
    if gaps.is_empty() {
        Ok(())
    } else {
        Err(Unwritten::Gaps(gaps))
    }
}

fn passes(broken: Vec<String>) -> Result<(), Unwritten> {
    if broken.is_empty() {
        Ok(())
    } else {
        Err(Unwritten::Gate(broken))
    }
}

struct Scribe<'a> {
    ask: &'a Ask,
    loose: &'a LooseResponse,
    verdict: ResponseKind,
}

impl Scribe<'_> {
    fn write(&self) -> Result<Response, Unwritten> {
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
        // The validator reports what cannot be read as a finding.
        if self.verdict == ResponseKind::Feedback
            && read.len() == findings.len()
            && omissions::says_nothing(self.ask, self.loose.escalation.as_deref(), &read)
        {
            return Err(Unwritten::Empty);
        }
        if self.verdict == ResponseKind::Lgtm {
            let said = Vec::<CommandRun>::deserialize(json!(self.loose.commands_run));
            let head = self.loose.validated_head.clone();
            let commit = head.and_then(|head| CommitSha::new(head).ok());
            let observed = self.ask.observed_runs(commit.as_ref());
            // The validator reports what cannot be read as a run.
            if let Ok(said) = said {
                let runs = (&said[..], &observed[..]);
                passes(omissions::gate(self.ask, dealt, read.iter(), runs))?;
            }
        }
        let blocking = read
            .iter()
            .filter(|finding| finding.counts_as_blocking())
            .count();
        let is_needed = self.verdict == ResponseKind::Feedback
            || !findings.is_empty()
            || !self.loose.commands_run.is_empty()
            || is_long(self.examined().as_ref());
        let packet = is_needed.then(|| self.packet(&findings));
        let unnamed = self
            .ask
            .open_threads
            .iter()
            .filter(|open| matches!(dealt(open), Dealt::Unnamed));
        let silent = unnamed.map(|open| open.id.to_string()).collect();
        Ok(Response {
            body: self.body(blocking, &nits),
            packet,
            blocking,
            silent,
        })
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
        let left = self.ask.open_threads.iter().filter(is_left);
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
            .open_threads
            .iter()
            .map(|open| open.id.to_string())
            .collect();
        used.extend(self.ask.held_threads.iter().map(|held| held.id.to_string()));
        let given = self
            .loose
            .findings
            .iter()
            .filter_map(|finding| finding.get("id").and_then(Value::as_str));
        used.extend(given.map(str::to_owned));
        let mut free = (1_u32..)
            .map(|n| format!("F-{}-{n:03}", self.ask.round))
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
                .or_insert_with(|| self.ask.author.as_str().into());
            nit.entry("next_action").or_insert_with(|| LATER.into());
        }
        nits
    }

    fn packet(&self, findings: &[Map<String, Value>]) -> String {
        let mut packet = self.loose.header.clone();
        packet
            .entry("reviewer")
            .or_insert_with(|| self.ask.reviewer.as_str().into());
        packet
            .entry("round")
            .or_insert_with(|| self.ask.round.into());
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
        let packet = Value::Object(packet);
        match FindingsPacket::deserialize(&packet) {
            Ok(read) if json!(read) == packet => render_packet(&read),
            // The validator reports what is wrong or unknown in it.
            Ok(_) | Err(_) => render_document(&packet),
        }
    }

    fn body(&self, blocking: usize, nits: &[Map<String, Value>]) -> Fields {
        let mut body = Fields::default();
        match self.verdict {
            ResponseKind::Feedback => {
                body.put("round", self.ask.round);
                body.put("blocking_count", blocking);
                body.put_given("escalation", self.loose.escalation.clone());
            }
            ResponseKind::Lgtm => {
                body.put("quality_gate_result", "pass");
                body.put(
                    "merge_ready",
                    self.loose.merge_ready.clone().unwrap_or(Value::Bool(true)),
                );
                body.put("round", self.ask.round);
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
