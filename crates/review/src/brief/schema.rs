//! The JSON Schema of the response to one request. An illegal action has no place in it: every open
//! thread is a required key whose value admits only what is legal now, and an lgtm is left out
//! where no response could pass the gate.
//!
//! Keywords: `type`, `properties`, `required`, `additionalProperties: false`, `enum`, `const`,
//! `anyOf`, `items`, which vendors' structured outputs take. Beyond those `maxItems` (not everywhere:
//! the daemon counts again) and `$ref` to `$defs` (local, never recursive). The root is an object
//! and every property is required, because some vendors want it so: an empty text means none. What
//! no such keyword can say (the form of a commit, of a path, of lines) is checked by
//! [`StructuredResponse`](super::StructuredResponse).

use std::collections::BTreeMap;

use message_schema::id::FindingId;
use message_schema::packet::{CommandResult, Severity};
use serde_json::{Map, Value, json};

use super::choice::Choice;
use super::{Asked, resolved};
use crate::response::NEW_FINDINGS_MAX;

/// The schema's own language.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// What a reader of the schema is told beside it.
const ABOUT: &str = "The response to one review_request. Every open thread is given exactly one action; \
a text that is empty means none.";

/// The schema of the response to what is asked.
pub(super) fn of(asked: &Asked<'_>) -> Value {
    let mut defs = BTreeMap::from([("commands_run".to_owned(), commands_run())]);
    let mut verdicts = vec![feedback(asked, &mut defs)];
    if asked.may_approve() {
        verdicts.push(lgtm(asked, &mut defs));
    }
    let mut root = object(json!({ "response": { "anyOf": verdicts } }));
    root["$schema"] = DIALECT.into();
    root["description"] = ABOUT.into();
    root["$defs"] = json!(defs);
    root
}

/// An object that has these properties, all of them, and no other.
pub(super) fn object(properties: Value) -> Value {
    let names: Vec<&String> = properties.as_object().into_iter().flat_map(Map::keys).collect();
    let mut object = json!({ "type": "object", "required": names, "additionalProperties": false });
    object["properties"] = properties;
    object
}

fn feedback(asked: &Asked<'_>, defs: &mut BTreeMap<String, Value>) -> Value {
    let mut fields = json!({
        "type": { "type": "string", "const": "review_feedback" },
        "threads": threads(asked, Choice::in_feedback, defs),
        "new_findings": { "type": "array", "maxItems": NEW_FINDINGS_MAX, "items": new_finding() },
        "commands_run": reference("commands_run"),
        "escalation": { "type": "string" },
        "validated_head": { "type": "string" },
    });
    for (field, for_good) in [("reopen", false), ("escalate", true)] {
        let ids: Vec<&FindingId> = resolved(asked.review, for_good).collect();
        if !ids.is_empty() {
            fields[field] = json!({ "type": "array", "items": { "type": "string", "enum": ids } });
        }
    }
    object(fields)
}

fn lgtm(asked: &Asked<'_>, defs: &mut BTreeMap<String, Value>) -> Value {
    let nit = object(json!({
        "tier": { "type": "string", "enum": [Severity::P2, Severity::P3] },
        "summary": { "type": "string" },
        "owner": { "type": "string" },
        "next_action": { "type": "string" },
    }));
    object(json!({
        "type": { "type": "string", "const": "review_lgtm" },
        "threads": threads(asked, Choice::in_lgtm, defs),
        "nits": { "type": "array", "items": nit },
        "commands_run": reference("commands_run"),
        "merge_ready": { "type": "boolean" },
        "validated_head": { "type": "string" },
    }))
}

fn threads(
    asked: &Asked<'_>,
    choice: fn(&crate::thread::Thread, &Asked<'_>) -> Choice,
    defs: &mut BTreeMap<String, Value>,
) -> Value {
    let mut keys = Map::new();
    for (id, thread) in asked.review.open_threads() {
        let choice = choice(thread, asked);
        let name = choice.name();
        keys.insert(id.to_string(), reference(&name));
        defs.entry(name).or_insert_with(|| choice.schema());
    }
    object(Value::Object(keys))
}

/// A finding that no thread is about. It has no id: whoever writes the packet gives it one that is
/// free. What it says of blocking counts for a P2; the other severities decide by themselves.
fn new_finding() -> Value {
    let mut fields = json!({
        "severity": { "type": "string", "enum": Severity::ALL },
        "blocking": { "type": "boolean" },
    });
    for text in ["title", "file", "lines", "category", "evidence", "recommendation", "introduced_by"] {
        fields[text] = json!({ "type": "string" });
    }
    object(fields)
}

fn commands_run() -> Value {
    let run = object(json!({
        "command": { "type": "string" },
        "result": { "type": "string", "enum": CommandResult::ALL },
        "notes": { "type": "string" },
    }));
    json!({ "type": "array", "items": run })
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}
