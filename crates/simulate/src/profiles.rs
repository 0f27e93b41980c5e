//! Plays the profiles that exercise one part alone: the threads of one reviewer, the quality gate, the handoff of
//! findings, the run of a pair of commands.

use std::collections::BTreeMap;

use message_schema::Code;
use message_schema::body::Body;
use message_schema::envelope::{MessageType, ReviewKind};
use message_schema::id::{FindingId, MessageId};
use message_schema::yaml::{Content, Node};
use review::{
    Accepted, ContentDigest, Cycle, EscalationReason, Fault, Generation, Judgement, Pair,
    PairEvent, Phase, Policy, ReviewKey, ReviewStep, RunState, Signal, Thread,
};

use super::compose::{findings_path, packet_text};
use super::facts::{self, Fact};
use super::findings::{self, FindingDraft};
use super::format::{PairSetup, Setup};
use super::reader::{ParseError, Parsed, fields, one_or_many, parsed, text, value};
use super::steps::PairAction;
use super::yaml::Writer;

/// The threads of one reviewer, and the number of cycles played.
#[derive(Default)]
pub(super) struct ThreadsProfile {
    pub(super) all: BTreeMap<FindingId, Thread>,
    cycles: u32,
}

impl ThreadsProfile {
    /// Reads the threads with which a scenario begins.
    pub(super) fn of(setup: &Setup) -> Parsed<Self> {
        let all = setup
            .threads
            .as_ref()
            .map_or(Ok(BTreeMap::new()), findings::threads)?;
        Ok(Self { all, cycles: 0 })
    }

    /// Plays one response of the reviewer: the threads it opens, and its actions on existing ones.
    pub(super) fn cycle(&mut self, node: &Node, policy: &Policy) -> Parsed<Vec<Fact>> {
        fields(node, "cycle", &["open", "act", "addressed"])?;
        let mut lines = Vec::new();
        for field in value(node, "open").map_or(&[][..], Node::fields) {
            let (fields, filled) = findings::opened(&field.value)?;
            lines.push(FindingDraft {
                id: &field.key,
                fields,
                filled,
            });
        }
        for field in value(node, "act").map_or(&[][..], Node::fields) {
            lines.push(self.act(&field.key, &field.value)?);
        }
        let addressed = match node.field("addressed") {
            Some(field) => Some(
                one_or_many(&field.value)
                    .iter()
                    .map(parsed)
                    .collect::<Parsed<Vec<FindingId>>>()?,
            ),
            None => None,
        };
        let packet = match findings::check(&findings::packet(&lines)) {
            Ok(packet) => packet,
            Err(list) => return Ok(list),
        };
        let number = self.cycles + 1;
        let cycle = Cycle {
            number,
            packet: &packet,
            policy,
            addressed: addressed.as_deref(),
        };
        Ok(match review::threads(&self.all, &cycle) {
            Ok(after) => {
                self.cycles = number;
                let before = std::mem::replace(&mut self.all, after);
                let verdict = Fact::yes(format!("accepted -> cycle {number}"));
                std::iter::once(verdict)
                    .chain(changed(&before, &self.all))
                    .collect()
            }
            Err(faults) => refused(&faults),
        })
    }

    /// A finding on a known thread; a bare word is the action.
    fn act<'a>(&self, id: &'a str, node: &'a Node) -> Parsed<FindingDraft<'a>> {
        let known = id.parse().ok().and_then(|id: FindingId| self.all.get(&id));
        let mut filled = vec![("status", "open".to_owned())];
        filled.push((
            "severity",
            known
                .map_or("P1", |thread| thread.severity.as_str())
                .to_owned(),
        ));
        // A P2 must say whether it blocks; for other severities that is fixed.
        let said = node
            .field("severity")
            .and_then(|field| text(&field.value).ok())
            .map(str::trim);
        let is_p2 = |thread: &&Thread| said.unwrap_or(thread.severity.as_str()) == "P2";
        if let Some(thread) = known.filter(is_p2) {
            filled.push(("blocking", thread.blocking.to_string()));
        }
        match &node.content {
            Content::Scalar(_) => {
                filled.push(("action", text(node)?.trim().to_owned()));
                Ok(FindingDraft {
                    id,
                    fields: &[],
                    filled,
                })
            }
            Content::Map(fields) => Ok(FindingDraft { id, fields, filled }),
            Content::List(_) => Err(ParseError::at(
                node.place,
                "expected one action, or the fields of a finding",
            )),
        }
    }

    /// Checks an approval against the quality gate. Findings that its nits cover become deferred.
    pub(super) fn lgtm(&mut self, step: &Node, policy: &Policy) -> Parsed<Vec<Fact>> {
        let packet = step.field("packet").map(|field| packet_text(&field.value));
        let given = step.field("lgtm").map(|field| &field.value);
        let mut body = Writer::default();
        let has = |key: &str| given.is_some_and(|body| body.field(key).is_some());
        for (key, text) in [("quality_gate_result", "pass"), ("merge_ready", "true")] {
            if !has(key) {
                body.plain(key, text);
            }
        }
        if packet.is_some() && !has("findings_packet") {
            body.plain("findings_packet", &findings_path(1));
        }
        given
            .map_or(&[][..], Node::fields)
            .iter()
            .for_each(|field| body.field(0, &field.key, &field.value));
        let valid =
            match findings::check_message("review_lgtm", &body.into_text(), packet.as_deref()) {
                Ok(valid) => valid,
                Err(list) => return Ok(list),
            };
        let Body::Lgtm(lgtm) = valid.body() else {
            unreachable!("the message was written as a review_lgtm")
        };
        let packet = valid.findings();
        Ok(match review::gate(&self.all, lgtm, packet, &policy.gate) {
            Ok(deferred) => {
                let before = self.all.clone();
                self.all.extend(deferred);
                std::iter::once(Fact::yes("accepted -> pass"))
                    .chain(changed(&before, &self.all))
                    .collect()
            }
            Err(faults) => refused(&faults),
        })
    }

    /// Lists the state of every thread.
    pub(super) fn lines(&self) -> Vec<String> {
        self.all
            .iter()
            .map(|(id, thread)| facts::thread(id.as_str(), thread))
            .collect()
    }
}

fn changed(before: &BTreeMap<FindingId, Thread>, after: &BTreeMap<FindingId, Thread>) -> Vec<Fact> {
    let new = after
        .iter()
        .filter(|(id, thread)| before.get(*id) != Some(*thread));
    new.map(|(id, thread)| Fact::note(facts::thread(id.as_str(), thread)))
        .collect()
}

fn refused(faults: &[Fault]) -> Vec<Fact> {
    faults.iter().map(facts::fault).collect()
}

/// The record of a review that ended with these threads, so that its pull request can be merged.
pub(super) fn ended_with(setup: &Setup) -> Parsed<Option<Judgement>> {
    let Some(node) = &setup.threads else {
        return Ok(None);
    };
    let (author, reviewer) = (setup.author().clone(), setup.reviewer().clone());
    let key = ReviewKey::new(None, &setup.pr, author.clone(), reviewer.clone());
    let phase = Phase::Escalated(EscalationReason::MaxRoundsExceeded);
    let opens = Generation {
        number: 1,
        rounds: setup.config.rounds.max,
    };
    let step = ReviewStep {
        opens: Some(opens),
        threads: findings::threads(node)?,
        ..ReviewStep::to(&key, 1, phase)
    };
    Ok(Some(Judgement::Accepted(Box::new(Accepted {
        from: author,
        id: MessageId::new("msg-0").expect("letters and digits are an id"),
        digest: ContentDigest([0; 32]),
        to: vec![reviewer],
        kind: MessageType::Review(ReviewKind::Request),
        conversation: None,
        step: Some(step),
        alerts: Vec::new(),
        warnings: Vec::new(),
        packet: None,
    }))))
}

/// Moves a run from one state to another, if that is legal.
pub(super) fn transition(from: RunState, to: RunState) -> Vec<Fact> {
    vec![match from.go(to) {
        Ok(to) => Fact::yes(format!("accepted -> {}", to.word())),
        Err(invalid) => invalid_transition(&invalid),
    }]
}

fn invalid_transition(invalid: &review::InvalidTransition) -> Fact {
    let code = Code::InvalidTransition;
    Fact::no(
        format!(
            "refused {code} from={} to={}",
            invalid.from.word(),
            invalid.to.word()
        ),
        code,
    )
    .with(None, invalid.to_string())
}

/// A pair of commands, and the words that end its turns.
pub(super) struct PairProfile {
    pair: Pair,
    setup: PairSetup,
}

impl PairProfile {
    pub(super) fn new(setup: &PairSetup) -> Self {
        Self {
            pair: Pair::new(setup.has_reviewer, setup.iterations),
            setup: setup.clone(),
        }
    }

    /// Plays an action of the commands.
    pub(super) fn act(&mut self, action: &PairAction) -> Vec<Fact> {
        let (event, signal) = match action {
            PairAction::Started => (PairEvent::Started, None),
            PairAction::StartFailed => (PairEvent::StartFailed, None),
            PairAction::Crashed => (PairEvent::Crashed, None),
            PairAction::Interrupted => (PairEvent::Interrupted, None),
            PairAction::Output(output) => {
                let signal = Signal::of_turn(self.pair.run(), output, &self.setup.words);
                (
                    PairEvent::Ended(signal),
                    Some(format!("signal {}", signal.word())),
                )
            }
        };
        let signal = signal.map(Fact::note);
        let verdict = match self.pair.after(event) {
            Ok(pair) => {
                self.pair = pair;
                Fact::yes(format!("accepted -> {}", self.state_text()))
            }
            Err(invalid) => invalid_transition(&invalid),
        };
        std::iter::once(verdict).chain(signal).collect()
    }

    fn state_text(&self) -> String {
        let why = self
            .pair
            .failure()
            .map_or_else(String::new, |failure| format!(" {}", failure.word()));
        format!(
            "{} iteration {}{why}",
            self.pair.run().word(),
            self.pair.iteration()
        )
    }

    /// Describes the state of the pair.
    pub(super) fn lines(&self) -> Vec<String> {
        vec![format!("pair {}", self.state_text())]
    }
}
