//! A table with two agents: real messages in, the answers of the rules out.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};
use message_schema::id::{AgentName, MessageId};
use message_schema::packet::FindingsPacket;
use review::{
    Act, ContentDigest, Decision, Event, EventRecord, Fault, Judgement, PersonsDecision, Policy,
    Posted, PullAction, PullEvent, Rank, Record, Refused, ReportedEvent, Review, State, Undo,
    Which, apply, decide, due, on_event, refuse,
};
use validate_message::{PacketInput, Valid, check};

/// The state of play, with a clock that the test moves.
#[derive(Clone)]
pub(crate) struct Table {
    pub(crate) state: State,
    pub(crate) policy: Policy,
    pub(crate) now: DateTime<Utc>,
    /// Every record so far, for replay.
    pub(crate) records: Vec<(Record, DateTime<Utc>)>,
    /// The faults of the last refused message.
    pub(crate) faults: Vec<Fault>,
    /// True if a corrected version of the last refused message can be accepted.
    pub(crate) is_retryable: bool,
    /// The id of the order by which the next event is reported.
    pub(crate) order: Option<MessageId>,
    sent: u32,
}

pub(crate) fn agent(name: &str) -> AgentName {
    AgentName::new(name).expect("an agent name")
}

impl Default for Table {
    fn default() -> Self {
        let agents = ["claude", "codex", "gemini"].map(|name| (agent(name), BTreeSet::new()));
        let now = DateTime::parse_from_rfc3339("2026-02-13T10:00:00Z")
            .expect("an instant")
            .to_utc();
        Self {
            state: State::default(),
            policy: Policy {
                agents: BTreeMap::from(agents),
                ..Policy::default()
            },
            now,
            records: Vec::new(),
            faults: Vec::new(),
            is_retryable: true,
            order: None,
            sent: 0,
        }
    }
}

/// Writes a state as lines and reads it back.
pub(crate) fn kept(state: &State) -> State {
    state
        .through_snapshot()
        .unwrap_or_else(|error| panic!("{error:?}"))
}

/// A message to be sent; the envelope is filled in.
pub(crate) struct Note<'a> {
    pub(crate) from: &'a str,
    pub(crate) to: &'a str,
    pub(crate) kind: &'a str,
    /// Envelope lines in addition to the required ones.
    pub(crate) envelope: &'a str,
    /// The body's YAML, one field a line.
    pub(crate) body: &'a str,
    pub(crate) packet: Option<&'a str>,
}

impl Table {
    /// Sends a message with a fresh id; `Ok` is the phase's word, `Err` the codes of the refusal.
    pub(crate) fn send(&mut self, note: &Note<'_>) -> Result<String, Vec<String>> {
        self.sent += 1;
        let id = format!("msg-{}", self.sent);
        let text = text(note, &id);
        self.post(note.from, &text, note.packet)
    }

    /// Posts a whole file from an outbox.
    pub(crate) fn post(
        &mut self,
        outbox: &str,
        text: &str,
        packet: Option<&str>,
    ) -> Result<String, Vec<String>> {
        self.now += TimeDelta::seconds(1);
        let valid = valid(text, packet);
        let outbox = agent(outbox);
        let posted = Posted {
            outbox: &outbox,
            digest: digest(text),
            valid: &valid,
        };
        let answer = decide(&self.state, &self.policy, posted, self.now);
        let (record, said) = match answer {
            Ok(Decision::Duplicate(duplicate)) => {
                (Judgement::Duplicate(duplicate), Ok("duplicate".to_owned()))
            }
            Ok(Decision::Accept(accepted)) => {
                let word = accepted
                    .step
                    .as_ref()
                    .map_or("delivered", |step| step.phase.word());
                let word = word.to_owned();
                (Judgement::Accepted(accepted), Ok(word))
            }
            Err(refusal) => {
                let ids = ["notice", "word"].map(|word| {
                    MessageId::new(format!("settled-{word}-{}", self.records.len())).expect("an id")
                });
                let refused = Refused {
                    outbox: &outbox,
                    code: refusal.code(),
                    costs: refusal.review.as_deref().map(|key| (key, refusal.costs)),
                    to_daemon: false,
                    is_review: valid.envelope().kind.is_review(),
                    parent: valid.envelope().parent_message_id.as_deref(),
                    notice: &ids[0],
                    announcement: &ids[1],
                };
                let codes = refusal.faults.iter().map(|fault| match fault.clause {
                    Some(clause) => format!("{} {}", fault.code, clause.as_str()),
                    None => fault.code.to_string(),
                });
                let codes = codes.collect();
                let record = refuse(&self.state, &refused, self.now);
                self.is_retryable = refusal.retryable;
                self.faults = refusal.faults;
                (Judgement::Refused(record), Err(codes))
            }
        };
        self.keep(record);
        said
    }

    /// Reports an event to the rules; `Ok` is the phase's word afterwards, `Err` the code with which it was declined.
    pub(crate) fn on_event(&mut self, event: &Event) -> Result<String, String> {
        self.tell(event).map(|()| self.phase())
    }

    /// Reports an event to the rules; `Err` is the code with which it was declined.
    pub(crate) fn tell(&mut self, event: &Event) -> Result<(), String> {
        self.now += TimeDelta::seconds(1);
        let order = self.order.take();
        let told = ReportedEvent {
            order: order.as_ref(),
            event,
        };
        let record = on_event(&self.state, &self.policy, told, self.now, &mut self.ids());
        let declined = match &record {
            EventRecord::Happened(_) => None,
            EventRecord::Declined(declined) => Some(declined.code.to_string()),
        };
        self.keep(record);
        declined.map_or(Ok(()), Err)
    }

    /// Lets time pass, and every deadline within it.
    pub(crate) fn wait(&mut self, time: TimeDelta) -> String {
        let until = self.now + time;
        while let Some((at, _)) = self.state.next_deadline().filter(|(at, _)| *at <= until) {
            self.now = at.max(self.now);
            let record = due(&self.state, &self.policy, self.now, &mut self.ids());
            self.keep(record.expect("a deadline that has come makes a record"));
        }
        self.now = until;
        self.phase()
    }

    fn ids(&self) -> impl FnMut() -> MessageId + use<> {
        let (number, mut count) = (self.records.len(), 0);
        move || {
            count += 1;
            MessageId::new(format!("settled-{number}-{count}")).expect("an id")
        }
    }

    /// Applies a record, after checking that it can be taken back without a trace.
    fn keep(&mut self, record: impl Into<Record>) {
        let record = record.into();
        let (before, undo) = (self.state.clone(), Undo::of(&self.state, &record, self.now));
        apply(&mut self.state, &record, self.now);
        let mut after = self.state.clone();
        undo.revert(&mut after);
        assert_eq!(after, before, "{record:#?}");
        self.records.push((record, self.now));
    }

    fn phase(&self) -> String {
        self.state
            .reviews()
            .next()
            .map_or("none", |(_, review)| review.phase.word())
            .to_owned()
    }

    pub(crate) fn person(&mut self, act: Act) -> Result<String, String> {
        let (by, reason) = ("ada".to_owned(), "seen".to_owned());
        self.on_event(&Event::Person(PersonsDecision {
            which: which(),
            by,
            reason,
            act,
        }))
    }

    pub(crate) fn pull(
        &mut self,
        action: PullAction,
        head: Option<&str>,
    ) -> Result<String, String> {
        self.pull_by("claude-dev", action, head)
    }

    pub(crate) fn pull_by(
        &mut self,
        author: &str,
        action: PullAction,
        head: Option<&str>,
    ) -> Result<String, String> {
        let head = head.map(|head| head.parse().expect("a commit"));
        let (pr, author) = ("86".parse().expect("a number"), Some(author.to_owned()));
        self.on_event(&Event::Pull(PullEvent {
            repo: None,
            pr,
            action,
            author,
            head,
        }))
    }

    /// Returns what the last record handed off, as `task -> target ids`, and what stayed, as `id why`.
    pub(crate) fn handoff(&self) -> (Vec<String>, Vec<String>) {
        let Some(happened) = self.last_record().happened() else {
            return Default::default();
        };
        let handoff = happened.handoff.clone().unwrap_or_default();
        let task = |task: &review::Task| {
            let ids: Vec<_> = task
                .findings
                .iter()
                .map(|finding| finding.id.to_string())
                .collect();
            format!("{} -> {} {}", task.id, task.target, ids.join(" "))
        };
        let left = handoff
            .left
            .iter()
            .map(|left| format!("{} {}", left.id, left.why.word()));
        (handoff.tasks.iter().map(task).collect(), left.collect())
    }

    pub(crate) fn review(&self) -> &Review {
        self.state.reviews().next().expect("a review").1
    }

    pub(crate) fn rank(&self) -> Rank {
        self.state
            .reviews()
            .next()
            .map_or(Rank::UNOPENED, |(_, review)| review.rank())
    }

    /// Returns the fold of the records, each read back from its JSON form.
    pub(crate) fn replayed(&self) -> State {
        let mut state = State::default();
        for (record, at) in &self.records {
            let json = serde_json::to_string(record).expect("records are JSON");
            let record: Record = serde_json::from_str(&json).expect("a record reads back");
            apply(&mut state, &record, *at);
        }
        state
    }

    /// Returns the state from a snapshot after `taken_after` records and the records behind it.
    pub(crate) fn restored(&self, taken_after: usize) -> State {
        let mut state = State::default();
        let (before, behind) = self.records.split_at(taken_after);
        before
            .iter()
            .for_each(|(record, at)| apply(&mut state, record, *at));
        let mut restored = kept(&state);
        assert_eq!(restored, state, "a snapshot after {taken_after} records");
        behind
            .iter()
            .for_each(|(record, at)| apply(&mut restored, record, *at));
        restored
    }

    pub(crate) fn last_record(&self) -> &Record {
        &self.records.last().expect("a record").0
    }

    // The usual moves of a review of pull request 86 by claude with codex.

    pub(crate) fn request(&mut self) -> Result<String, Vec<String>> {
        self.request_with("")
    }

    pub(crate) fn request_with(&mut self, fields: &str) -> Result<String, Vec<String>> {
        let body = format!("pr: 86\nbranch: fix\ndiff_summary: a fix\n{fields}");
        self.send(&Note {
            body: &body,
            ..claude("review_request")
        })
    }

    /// Replaces the open request, or a request that nobody knows if none is open.
    pub(crate) fn supersede(&mut self) -> Result<String, Vec<String>> {
        let open = self
            .state
            .reviews()
            .find_map(|(_, review)| Some(review.phase.invocation()?.request.to_string()));
        self.request_with(&format!(
            "supersedes_message_id: {}",
            open.unwrap_or_else(|| "msg-0".to_owned())
        ))
    }

    pub(crate) fn feedback(&mut self, round: u32, findings: &str) -> Result<String, Vec<String>> {
        self.feedback_with(round, "", findings)
    }

    pub(crate) fn feedback_with(
        &mut self,
        round: u32,
        fields: &str,
        findings: &str,
    ) -> Result<String, Vec<String>> {
        let packet = packet(findings);
        let blocking = blocking_count(&packet);
        let body = format!(
            "findings_packet: packets/findings/p.yaml\nround: {round}\nblocking_count: {blocking}\n{fields}"
        );
        self.send(&Note {
            body: &body,
            packet: Some(&packet),
            ..codex("review_feedback")
        })
    }

    pub(crate) fn addressed(&mut self, round: u32, ids: &[&str]) -> Result<String, Vec<String>> {
        let ids = if ids.is_empty() {
            String::new()
        } else {
            format!("addressed_finding_ids: [{}]\n", ids.join(", "))
        };
        let body = format!("commit_sha: abc1234\nchanges_summary: fixed\nround: {round}\n{ids}");
        self.send(&Note {
            body: &body,
            ..claude("review_addressed")
        })
    }

    pub(crate) fn lgtm(
        &mut self,
        fields: &str,
        findings: Option<&str>,
    ) -> Result<String, Vec<String>> {
        let packet = findings.map(packet);
        let named = if packet.is_some() {
            "findings_packet: packets/findings/p.yaml\n"
        } else {
            ""
        };
        let body = format!("quality_gate_result: pass\nmerge_ready: true\n{named}{fields}");
        self.send(&Note {
            body: &body,
            packet: packet.as_deref(),
            ..codex("review_lgtm")
        })
    }
}

pub(crate) fn which() -> Which {
    Which {
        pr: "86".parse().expect("a number"),
        repo: None,
        reviewer: None,
    }
}

pub(crate) fn claude(kind: &str) -> Note<'_> {
    Note {
        from: "claude",
        to: "codex",
        kind,
        envelope: "related_pr: 86\n",
        body: "",
        packet: None,
    }
}

pub(crate) fn codex(kind: &str) -> Note<'_> {
    Note {
        from: "codex",
        to: "claude",
        kind,
        envelope: "related_pr: 86\n",
        body: "",
        packet: None,
    }
}

/// Builds a packet from one finding a line: `F-001 P1 open`, then further YAML fields separated by `; `.
pub(crate) fn packet(findings: &str) -> String {
    let mut text = "findings:".to_owned();
    let mut any = false;
    for line in findings
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        if let Some(command) = line.strip_prefix("ran ") {
            let (result, command) = command.split_once(' ').expect("ran RESULT COMMAND");
            if !text.contains("qa_validation") {
                text += &format!(
                    "{}\nqa_validation:\n  commands_run:",
                    if any { "" } else { " []" }
                );
                any = true;
            }
            text += &format!("\n    - {{command: \"{command}\", result: {result}}}");
            continue;
        }
        let mut words = line.splitn(4, ' ');
        let mut word = || words.next().unwrap_or_default();
        let (id, severity, status) = (word(), word(), word());
        text += &format!("\n  - id: {id}\n    severity: {severity}\n    status: {status}");
        for field in word().split("; ").filter(|field| !field.is_empty()) {
            text += &format!("\n    {field}");
        }
        any = true;
    }
    if any { text + "\n" } else { text + " []\n" }
}

/// Reads the text of a packet, as a feedback that names it would.
pub(crate) fn read_packet(packet: &str) -> FindingsPacket {
    let tree = message_schema::parse_packet(packet.as_bytes()).expect("a packet");
    let value = message_schema::coerce(&tree, message_schema::Schema::FindingsPacket.shape());
    serde_json::from_value(value).expect("a packet")
}

pub(crate) fn blocking_count(packet: &str) -> usize {
    read_packet(packet)
        .findings
        .iter()
        .filter(|finding| finding.counts_as_blocking())
        .count()
}

pub(crate) fn text(note: &Note<'_>, id: &str) -> String {
    let body: String = note
        .body
        .lines()
        .map(|line| format!("  {line}\n"))
        .collect();
    format!(
        "id: {id}\nfrom: {}\nto: {}\ntype: {}\npriority: P1\ncreated_at_utc: 2026-02-13T10:00:00Z\n\
         subject: a subject\n{}body: |\n{body}",
        note.from, note.to, note.kind, note.envelope
    )
}

pub(crate) fn valid(text: &str, packet: Option<&str>) -> Valid {
    let message =
        message_schema::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let input = packet.map_or(PacketInput::NotNamed, |packet| {
        PacketInput::Bytes(packet.as_bytes())
    });
    check(&message, input).unwrap_or_else(|violations| panic!("{violations:#?}\n{text}"))
}

/// Stands in for SHA-256: distinct texts get distinct digests.
pub(crate) fn digest(text: &str) -> ContentDigest {
    let mut bytes = [0_u8; 32];
    for (place, byte) in text.bytes().enumerate() {
        bytes[place % 32] = bytes[place % 32].wrapping_mul(31).wrapping_add(byte);
    }
    ContentDigest(bytes)
}
