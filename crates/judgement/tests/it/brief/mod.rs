//! Briefs: the rules accept whatever a brief's schema admits, as far as threads are concerned, and refuse what it does
//! not admit.

mod examples;
mod play;
mod schema;

use judgement::brief::{Brief, StructuredResponse, WireResponse, brief};
use message_schema::body::Body;
use message_schema::id::PacketPath;
use message_schema::render_packet;
use review::{Act, Event, PersonsDecision, ReportedEvent, Which, apply, on_event};
use serde_json::{Value, json};
use validate_message::{PacketInput, Valid, check};

use crate::table::{Note, Table, codex, text};

/// The brief of the open request, and its schema.
struct Asked {
    brief: Brief,
    schema: Value,
    validator: jsonschema::Validator,
}

impl Asked {
    fn of(table: &Table) -> Self {
        let (key, _) = table.state.reviews().next().expect("a review");
        let brief = brief(&table.state, &table.policy, key, table.now).expect("an open request");
        let schema = serde_json::from_str(&brief.response_schema).expect("a line of JSON");
        let validator = jsonschema::validator_for(&schema).expect("a schema");
        Self {
            brief,
            schema,
            validator,
        }
    }

    fn admits(&self, response: &Value) -> bool {
        self.validator.is_valid(response)
    }
}

/// Returns a checked message, or the codes with which a file is refused before any review judges it.
fn valid_or_codes(text: &str, packet: Option<&str>) -> Result<Valid, Vec<String>> {
    let message =
        message_schema::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let input = packet.map_or(PacketInput::NotNamed, |packet| {
        PacketInput::Bytes(packet.as_bytes())
    });
    check(&message, input)
        .map_err(|violations| violations.iter().map(|v| v.code.to_string()).collect())
}

/// The fate of a response; the table is left unchanged.
#[derive(Clone, Debug, PartialEq)]
enum Fate {
    /// The wire format cannot express it.
    Unwritable(String),
    /// It is refused, with these codes.
    Refused(Vec<String>),
    /// It is accepted, and leads to this phase.
    Accepted(String),
}

impl Fate {
    /// True if no rule about threads refuses it.
    fn is_fine_with_threads(&self) -> bool {
        let about_threads = |code: &String| {
            code.starts_with("action_")
                || code.starts_with("thread_")
                || ["p0", "blocking", "nits"]
                    .iter()
                    .any(|clause| code == &format!("quality_gate_violation {clause}"))
        };
        match self {
            Self::Unwritable(_) => false,
            Self::Refused(codes) => !codes.iter().any(about_threads),
            Self::Accepted(_) => true,
        }
    }
}

impl Fate {
    /// True if it is accepted, or refused only because it asks nothing, which the schema cannot express.
    fn is_heard(&self) -> bool {
        match self {
            Self::Accepted(_) => true,
            Self::Refused(codes) => codes == &["feedback_empty"],
            Self::Unwritable(_) => false,
        }
    }
}

fn write(table: &Table, response: &Value) -> Result<WireResponse, String> {
    let (key, review) = table.state.reviews().next().expect("a review");
    let path = PacketPath::new("packets/findings/p.yaml").expect("a path");
    let read = StructuredResponse::read(response);
    read.and_then(|read| read.write(key, review, &path))
        .map_err(|error| error.to_string())
}

fn fate(table: &mut Table, response: &Value) -> Fate {
    match write(table, response) {
        Ok(written) => {
            let packet = written.packet.as_ref().map(render_packet);
            fate_of(table, &written.body, packet.as_deref())
        }
        Err(why) => Fate::Unwritable(why),
    }
}

fn fate_of(table: &mut Table, body: &Body, packet: Option<&str>) -> Fate {
    let before = table.state.clone();
    let said = post(table, body, packet);
    table.state = before;
    said.map_or_else(Fate::Refused, Fate::Accepted)
}

/// Posts a response and keeps its effect on the table.
fn post(table: &mut Table, body: &Body, packet: Option<&str>) -> Result<String, Vec<String>> {
    let (kind, body) = match body {
        Body::Feedback(body) => ("review_feedback", json!(body)),
        Body::Lgtm(body) => ("review_lgtm", json!(body)),
        Body::Request(_) | Body::Addressed(_) | Body::Text(_) => unreachable!("no response"),
    };
    // JSON is YAML.
    let text = text(
        &Note {
            body: &body.to_string(),
            packet,
            ..codex(kind)
        },
        &format!("msg-response-{}", table.records.len()),
    );
    valid_or_codes(&text, packet)?;
    table.post("codex", &text, packet)
}

/// A person decides about the only review.
fn decide(table: &mut Table, act: Act) {
    let (key, _) = table.state.reviews().next().expect("a review");
    let decision = PersonsDecision {
        which: Which::of(key),
        by: "ada".to_owned(),
        reason: "so".to_owned(),
        act,
    };
    let event = Event::Person(decision);
    let mut ids = || "settled-decided".parse().expect("an id");
    let record = on_event(
        &table.state,
        &table.policy,
        ReportedEvent {
            order: None,
            event: &event,
        },
        table.now,
        &mut ids,
    );
    apply(&mut table.state, &record.into(), table.now);
}

/// Returns an answer to one thread.
fn deal(action: &str, stance: &str) -> Value {
    match action {
        "defer" => json!({ "action": "defer", "owner": "", "next_action": "" }),
        _ => json!({ "action": action, "stance": stance, "evidence": "" }),
    }
}

fn feedback(threads: &Value) -> Value {
    json!({ "response": {
        "type": "review_feedback", "threads": threads, "findings": [], "commands_run": [],
        "examined": { "diff_digest": "", "declared": [] },
        "escalation": "", "validated_head": "",
    } })
}

fn lgtm(threads: &Value) -> Value {
    json!({ "response": {
        "type": "review_lgtm", "threads": threads, "nits": [], "commands_run": [],
        "examined": { "diff_digest": "", "declared": [] },
        "merge_ready": true, "validated_head": "",
    } })
}

/// Returns the same verdict with everything else that its schema requires in this state.
fn completed(asked: &Asked, mut response: Value) -> Value {
    let verdicts = asked.schema["properties"]["response"]["anyOf"]
        .as_array()
        .expect("verdicts");
    for field in ["reopen", "escalate"] {
        let is_asked = verdicts[0]["properties"].get(field).is_some();
        if is_asked && response["response"]["type"] == "review_feedback" {
            response["response"][field] = json!([]);
        }
    }
    response
}
