//! Makes the findings packet and the message body of a reviewer's answer from the reviewer's file and the request, and
//! writes nothing that the rules would refuse. Changes none of the reviewer's words. `loose` completes a file that is
//! not structured output.

mod loose;

use std::fmt;

use chrono::{DateTime, Utc};
use judgement::brief::OpenThread;
use judgement::brief::{
    Deal, NotAResponse, StructuredResponse, TerminalResponse, ThreadAnswer, WireResponse,
};
use message_schema::body::{Body, Examined};
use message_schema::id::PacketPath;
use message_schema::line::escaped;
use message_schema::packet::FindingsPacket;
use message_schema::{Code, render_packet};
use serde::Serialize;
use serde_json::{Value, json};

use self::loose::Scribe;
use super::ask::{Ask, ResolvedUnnamed};
use super::draft::{MessageDraft, PacketGiven};
use super::message::Fields;
use super::omissions::{self, Dealt, Omission, ResponseKind};
use super::response_file::{LooseResponse, ResponseFile};
use super::words_from::WordsFrom;

/// The place of a packet that has none yet.
const UNPLACED: &str = "packets/findings/x";

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
    /// New findings have no title; a line for each.
    Untitled(Vec<String>),
    /// Open threads are not dealt with, or not legally.
    Gaps(Vec<Omission>),
    /// The quality gate would refuse the lgtm; the reasons, one phrase each.
    Gate(Vec<String>),
    /// It cannot be written at all.
    Response(NotAResponse),
    /// It is a feedback that asks for nothing.
    Empty,
    /// It is the other kind of response.
    Other(ResponseKind),
}

impl Unwritten {
    /// The code of the refusal that this spares the reviewer, if the rules have one for it.
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Untitled(_) => Some(Code::FindingInvalid),
            Self::Gaps(gaps) => gaps.first().map(|gap| gap.code),
            Self::Gate(_) => Some(Code::QualityGateViolation),
            Self::Response(NotAResponse::Missing(_)) => Some(Code::ActionMissing),
            Self::Response(NotAResponse::NotOpen(_)) => Some(Code::ThreadNotOpen),
            Self::Response(
                NotAResponse::Form(_)
                | NotAResponse::NotResolved(_)
                | NotAResponse::NotDeferrable(_)
                | NotAResponse::Field { .. },
            )
            | Self::Other(_) => None,
            Self::Empty => Some(Code::FeedbackEmpty),
        }
    }
}

impl fmt::Display for Unwritten {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("nothing was written")?;
        match self {
            Self::Untitled(lines) => write!(out, ":\n{}", lines.join("\n")),
            Self::Gaps(gaps) => {
                out.write_str(", because these threads need something else:")?;
                gaps.iter().try_for_each(|gap| write!(out, "\n{}", gap.line()))
            }
            Self::Gate(broken) => write!(
                out,
                ", because the quality gate would refuse an lgtm:\n{}",
                broken.join("\n")
            ),
            Self::Response(error) => write!(out, ": {}", escaped(&error.to_string())),
            Self::Empty => out.write_str(
                ": the feedback raises no finding, keeps no thread open and escalates none to a person",
            ),
            Self::Other(ResponseKind::Feedback) => {
                out.write_str(": the structured output is feedback; use `settled feedback`")
            }
            Self::Other(ResponseKind::Lgtm) => {
                out.write_str(": the structured output is an lgtm; use `settled lgtm`")
            }
        }
    }
}

impl Response {
    /// The message to the author of the request.
    pub fn draft(self, ask: &Ask, verdict: ResponseKind) -> MessageDraft {
        let mut draft = MessageDraft::new(verdict.message_type());
        draft.to = vec![ask.brief.author.clone()];
        draft.pr = Some(ask.brief.pr.clone());
        draft
            .envelope
            .put("parent_message_id", ask.brief.request.as_str());
        draft.body = self.body;
        draft.packet = self.packet.map_or(PacketGiven::None, PacketGiven::Text);
        draft
    }
}

/// Makes a response from the reviewer's file. `origin` names the places of its findings, `turns` is what it declares.
pub fn write(
    ask: &Ask,
    sheet: &ResponseFile,
    verdict: ResponseKind,
    origin: WordsFrom<'_>,
    turns: Option<u64>,
    now: DateTime<Utc>,
) -> Result<Response, Unwritten> {
    match sheet {
        ResponseFile::Structured(response) => structured(ask, response, verdict, turns, now),
        ResponseFile::Loose(loose) => {
            let untitled = omissions::untitled(ask, &loose.findings, origin);
            if !untitled.is_empty() {
                return Err(Unwritten::Untitled(untitled));
            }
            Scribe {
                ask,
                loose,
                verdict,
                turns,
            }
            .write()
        }
        ResponseFile::Word => Scribe {
            ask: &for_a_word(ask),
            // The daemon names the commit in the run's tree, which is that of the request.
            loose: &LooseResponse::default(),
            verdict,
            turns,
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
    turns: Option<u64>,
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
    let place = PacketPath::new(UNPLACED).expect("a path within the workspace");
    let written = response
        .write(&ask.key(), &ask.review(now), &place)
        .map_err(Unwritten::Response)?;
    let findings = written
        .packet
        .as_ref()
        .map_or(&[][..], |packet| &packet.findings);
    passes(ask, (&written.body, turns), written.packet.as_ref())?;
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

/// Fails if the rules would refuse the response for its threads or its commands.
fn passes(
    ask: &Ask,
    (body, turns): (&Body, Option<u64>),
    packet: Option<&FindingsPacket>,
) -> Result<(), Unwritten> {
    // Without the ledger only the daemon can say.
    let Some((review, policy)) = ask.known().filter(|_| !ask.advised) else {
        return Ok(());
    };
    match body {
        Body::Feedback(body)
            if review::feedback_is_empty(review, policy, (body, turns), packet) =>
        {
            Err(Unwritten::Empty)
        }
        Body::Lgtm(body) => match review::gate_faults(review, policy, body, packet) {
            faults if faults.is_empty() => Ok(()),
            faults => Err(Unwritten::Gate(omissions::gate(ask, &faults))),
        },
        Body::Feedback(_) | Body::Request(_) | Body::Addressed(_) | Body::Text(_) => Ok(()),
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
        .brief
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
