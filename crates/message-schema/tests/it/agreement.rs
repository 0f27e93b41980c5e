//! Checks that schemas and types agree: examples pass both, damaged examples get the same verdict from both, and lists
//! here name the differences.

use message_schema::Schema;
use message_schema::body::{
    Escalation, GateResult, NitTier, ReviewAddressed, ReviewFeedback, ReviewLgtm, ReviewRequest,
    RunTrigger,
};
use message_schema::envelope::{Envelope, MessageType, Priority, Timestamp};
use message_schema::id::{
    AgentName, CommitSha, ConversationId, FindingId, MessageId, PacketPath, PrNumber, Repo,
    RepoPath,
};
use message_schema::limit::{BODY_CHARS_MAX, SUBJECT_CHARS_MAX};
use message_schema::packet::{
    Action, ChangesPacket, CommandResult, FindingsPacket, LineRange, Severity, Stance, Status,
};
use message_schema::{Level, Report};
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Demands that only the schema makes: `name of the schema . path without indexes`. The validator reads a document into
/// a type only after the schema has passed it.
const ONLY_SCHEMA: &[&str] = &[
    "envelope.autonomy_hint",
    "envelope.body",
    "envelope.channel",
    "envelope.est_cost_usd",
    "envelope.from",
    "envelope.model",
    "envelope.parent_message_id",
    "envelope.subject",
    "envelope.to",
    "envelope.wall_time_s",
    "findings_packet.findings.blocking",
    "findings_packet.findings.line",
    "findings_packet.findings.severity",
    "findings_packet.qa_validation.commands_run.command",
    "findings_packet.round",
    "report.digest",
    "report.file",
    "report.schema_version",
    "report.violations.column",
    "report.violations.line",
    "review_addressed.changes_summary",
    "review_addressed.round",
    "review_feedback.round",
    "review_lgtm.nits.next_action",
    "review_lgtm.nits.nit_id",
    "review_lgtm.nits.owner",
    "review_lgtm.nits.summary",
    "review_lgtm.round",
    "review_request.branch",
    "review_request.diff_summary",
    "review_request.round",
    "review_request.validation_commands",
];

/// Demands that only the types make: the list of codes grows.
const ONLY_TYPES: &[&str] = &["report.refused", "report.violations.code"];

pub(crate) fn document(schema: Schema) -> Value {
    serde_json::from_str(schema.source()).expect("JSON")
}

pub(crate) fn examples(schema: Schema) -> Vec<Value> {
    document(schema)["examples"]
        .as_array()
        .expect("examples")
        .clone()
}

fn through<T: DeserializeOwned + Serialize>(value: &Value) -> Result<Value, String> {
    let read: T = serde_json::from_value(value.clone()).map_err(|error| error.to_string())?;
    Ok(serde_json::to_value(read).expect("serialises"))
}

fn through_types(schema: Schema, value: &Value) -> Result<Value, String> {
    match schema {
        Schema::Envelope => through::<Envelope>(value),
        Schema::ReviewRequest => through::<ReviewRequest>(value),
        Schema::ReviewFeedback => through::<ReviewFeedback>(value),
        Schema::ReviewAddressed => through::<ReviewAddressed>(value),
        Schema::ReviewLgtm => through::<ReviewLgtm>(value),
        Schema::FindingsPacket => through::<FindingsPacket>(value),
        Schema::ChangesPacket => through::<ChangesPacket>(value),
        Schema::Report => through::<Report>(value),
    }
}

#[test]
fn every_example_passes_the_schema_and_comes_back_equal_from_the_types() {
    for &schema in Schema::ALL {
        for example in examples(schema) {
            assert_eq!(
                schema.breaches(&example),
                [],
                "{} {example:#}",
                schema.name()
            );
            assert_eq!(
                through_types(schema, &example),
                Ok(example.clone()),
                "{}",
                schema.name()
            );
        }
    }
}

/// Returns the example with every field: the second, except for the report, which people meet most often.
fn full_example(schema: Schema) -> Value {
    examples(schema)[usize::from(schema != Schema::Report)].clone()
}

#[test]
fn one_example_of_each_schema_uses_every_field() {
    fn walk(schema: &Value, example: &Value, path: &str) {
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}.{name}");
            let (mut field, mut value) = (field, &example[name]);
            assert!(!value.is_null(), "{path} is not in the example");
            while field["items"].is_object() && value.is_array() {
                field = &field["items"];
                value = value
                    .as_array()
                    .and_then(|items| items.last())
                    .expect("an item");
            }
            walk(field, value, &path);
        }
    }
    for &schema in Schema::ALL {
        walk(&document(schema), &full_example(schema), schema.name());
    }
}

#[test]
fn every_property_is_described_and_its_examples_are_accepted() {
    fn walk(schema: &Value, path: &str) {
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            explained(field, &format!("{path}.{name}"));
        }
        if schema["items"].is_object() {
            explained(&schema["items"], &format!("{path}[]"));
        }
    }
    fn explained(field: &Value, path: &str) {
        for key in ["title", "description"] {
            assert!(
                field[key].as_str().is_some_and(|text| !text.is_empty()),
                "{path} has no {key}"
            );
        }
        assert!(
            field["examples"]
                .as_array()
                .is_some_and(|list| !list.is_empty()),
            "{path} has no examples"
        );
        walk(field, path);
    }
    for &schema in Schema::ALL {
        let document = document(schema);
        walk(&document, schema.name());
        for (name, field) in document["properties"].as_object().expect("properties") {
            for example in field["examples"].as_array().expect("examples") {
                let mut changed = full_example(schema);
                changed[name] = example.clone();
                assert_eq!(
                    schema.breaches(&changed),
                    [],
                    "{}.{name}: {example}",
                    schema.name()
                );
            }
        }
    }
}

#[test]
fn the_schemas_are_correct_schemas() {
    for &schema in Schema::ALL {
        let document = document(schema);
        assert!(jsonschema::meta::is_valid(&document), "{}", schema.name());
        assert_eq!(
            document["$id"],
            format!("urn:settled:schema:{}:1", schema.name())
        );
    }
}

#[test]
fn enumerations_list_the_words_of_their_types() {
    fn assert_words<T: std::fmt::Display>(schema: Schema, pointer: &str, all: &[T]) {
        let document = document(schema);
        let words: Vec<&str> = document
            .pointer(&format!("/properties/{pointer}/enum"))
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        assert_eq!(
            words,
            all.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "{pointer}"
        );
    }
    assert_words(
        Schema::Envelope,
        "type",
        &MessageType::all().collect::<Vec<_>>(),
    );
    assert_words(Schema::Envelope, "priority", Priority::ALL);
    assert_words(Schema::ReviewRequest, "run_trigger", RunTrigger::ALL);
    assert_words(Schema::ReviewLgtm, "quality_gate_result", GateResult::ALL);
    assert_words(
        Schema::ReviewLgtm,
        "nits/items/properties/tier",
        NitTier::ALL,
    );
    assert_words(
        Schema::FindingsPacket,
        "findings/items/properties/severity",
        Severity::ALL,
    );
    assert_words(
        Schema::FindingsPacket,
        "findings/items/properties/status",
        Status::ALL,
    );
    assert_words(
        Schema::FindingsPacket,
        "findings/items/properties/stance",
        Stance::ALL,
    );
    assert_words(
        Schema::FindingsPacket,
        "findings/items/properties/action",
        Action::ALL,
    );
    let result = "qa_validation/properties/commands_run/items/properties/result";
    assert_words(Schema::FindingsPacket, result, CommandResult::ALL);
    assert_words(
        Schema::Report,
        "violations/items/properties/level",
        Level::ALL,
    );
}

#[test]
fn people_are_told_the_same_by_schema_and_type() {
    let assert_told = |schema: Schema, pointer: &str, expected: &str| {
        let pointer = format!("/properties/{pointer}/x-expected");
        assert_eq!(
            document(schema).pointer(&pointer),
            Some(&json!(expected)),
            "{pointer}"
        );
    };
    assert_told(Schema::Envelope, "id", MessageId::EXPECTED);
    assert_told(Schema::Envelope, "to/items", AgentName::EXPECTED);
    assert_told(Schema::Envelope, "created_at_utc", Timestamp::EXPECTED);
    assert_told(
        Schema::Envelope,
        "conversation_id",
        ConversationId::EXPECTED,
    );
    assert_told(Schema::ReviewRequest, "pr", PrNumber::EXPECTED);
    assert_told(Schema::ReviewRequest, "repo", Repo::EXPECTED);
    assert_told(Schema::ReviewRequest, "base_sha", CommitSha::EXPECTED);
    assert_told(
        Schema::ReviewFeedback,
        "findings_packet",
        PacketPath::EXPECTED,
    );
    assert_told(Schema::ReviewFeedback, "escalation", Escalation::EXPECTED);
    assert_told(
        Schema::ReviewAddressed,
        "touched_files/items",
        RepoPath::EXPECTED,
    );
    assert_told(
        Schema::FindingsPacket,
        "findings/items/properties/id",
        FindingId::EXPECTED,
    );
    assert_told(
        Schema::FindingsPacket,
        "findings/items/properties/lines",
        LineRange::EXPECTED,
    );
}

/// Collects every pointer into the value, with its path in the form of the lists above.
fn pointers(value: &Value, pointer: &str, path: &str, into: &mut Vec<(String, String)>) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                let (pointer, path) = (format!("{pointer}/{key}"), format!("{path}.{key}"));
                into.push((pointer.clone(), path.clone()));
                pointers(inner, &pointer, &path, into);
            }
        }
        Value::Array(items) => {
            for (index, inner) in items.iter().enumerate() {
                let pointer = format!("{pointer}/{index}");
                into.push((pointer.clone(), path.to_owned()));
                pointers(inner, &pointer, path, into);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

pub(crate) fn all_pointers(schema: Schema, example: &Value) -> Vec<(String, String)> {
    let mut all = Vec::new();
    pointers(example, "", schema.name(), &mut all);
    all
}

pub(crate) fn damages() -> Vec<Value> {
    let words = "x 0 1 86 no true settled P2 P5 reply 45-40 40-45 .. a/../b /abs a//b owner/. a/b/c abc123 \
                 ABCDEF0 packet_missing error conv-20260213-a-1 2026-02-29T10:00:00Z 2028-02-29T10:00:00Z \
                 2026-02-13T10:00:60Z";
    let mut damages: Vec<Value> = words.split_whitespace().map(|text| json!(text)).collect();
    damages.extend(["", "a b", "a\nb", "a\u{202e}b", "40 - 45"].map(|text| json!(text)));
    damages.extend(
        [64, 65, 200, 201, 1024, 1025, 20_000, 20_001].map(|length| json!("a".repeat(length))),
    );
    damages.extend(
        [
            0,
            1,
            3,
            4,
            1000,
            1001,
            86400,
            86401,
            u64::from(u32::MAX),
            1 << 32,
        ]
        .map(|n| json!(n)),
    );
    let eleven = vec!["a"; 11];
    let others =
        json!([-1, 0.5, -0.5, u64::MAX, true, false, [], ["a"], eleven, [[]], [1], {}, {"a": "b"}]);
    damages.extend(others.as_array().expect("a list").clone());
    damages
}

/// Returns the path if the schema and the types disagree and the difference is listed.
fn listed_difference(schema: Schema, value: &Value, path: &str) -> Option<String> {
    let by_schema = schema.breaches(value).is_empty();
    let by_types = through_types(schema, value);
    let list = match (by_schema, by_types.is_ok()) {
        (true, true) | (false, false) => return None,
        (false, true) => ONLY_SCHEMA,
        (true, false) => ONLY_TYPES,
    };
    assert!(
        list.contains(&path),
        "{path}: schema says {by_schema}, types {by_types:?} of {value:#}"
    );
    Some(path.to_owned())
}

#[test]
fn damaged_examples_are_judged_alike_but_for_what_is_listed() {
    let mut seen = std::collections::BTreeSet::new();
    for &schema in Schema::ALL {
        for example in examples(schema) {
            for (pointer, path) in &all_pointers(schema, &example) {
                for damage in damages() {
                    let mut damaged = example.clone();
                    let value = damaged.pointer_mut(pointer).expect("there");
                    let is_list_for_mapping = value.is_object() && damage.is_array();
                    *value = damage;
                    // serde reads a struct from a list of its fields too; the schema never does.
                    if is_list_for_mapping {
                        let is_free = path.contains("human_direction");
                        assert!(
                            is_free || !schema.breaches(&damaged).is_empty(),
                            "{path}: a list for a mapping"
                        );
                        continue;
                    }
                    seen.extend(listed_difference(schema, &damaged, path));
                }
                for name in [None, Some("strange")] {
                    let damaged = renamed(&example, pointer, name);
                    seen.extend(
                        damaged.and_then(|damaged| listed_difference(schema, &damaged, path)),
                    );
                }
            }
        }
    }
    for listed in ONLY_SCHEMA.iter().chain(ONLY_TYPES) {
        assert!(seen.contains(*listed), "{listed} is listed for nothing");
    }
}

/// Returns the example with one field of a mapping renamed or removed.
pub(crate) fn renamed(example: &Value, pointer: &str, name: Option<&str>) -> Option<Value> {
    let (parent, key) = pointer.rsplit_once('/')?;
    let mut damaged = example.clone();
    let map = damaged.pointer_mut(parent)?.as_object_mut()?;
    let value = map.remove(key)?;
    if let Some(name) = name {
        map.insert(name.to_owned(), value);
    }
    Some(damaged)
}

pub(crate) fn near_misses() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-c0-9._:@+-]{0,12}",
        "[/.a]{0,9}",
        "[a/.~\u{7f}\u{85}\u{e9} ]{0,8}",
        "conv-[0-9]{7,9}-[a.-]{0,3}-?[0-9]{0,7}",
        "[0-9]{1,2}( ?- ?)?[0-9]{0,11}",
        "20[0-9]{2}-[01][0-9]-[0-3][0-9]T[012][0-9]:[0-6][0-9]:[0-6][0-9]Z",
        "\\PC{0,6}",
        "[0-9A-Ga-g]{5,9}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_texts_are_judged_alike(text in near_misses(), pick in any::<prop::sample::Index>()) {
        for &schema in Schema::ALL {
            for example in examples(schema) {
                let all = all_pointers(schema, &example);
                let (pointer, path) = pick.get(&all);
                let mut changed = example.clone();
                *changed.pointer_mut(pointer).expect("there") = json!(text);
                listed_difference(schema, &changed, path);
            }
        }
    }
}

#[test]
fn the_lengths_of_a_subject_and_a_body_are_those_of_the_schema() {
    let envelope = document(Schema::Envelope);
    for (field, max) in [("subject", SUBJECT_CHARS_MAX), ("body", BODY_CHARS_MAX)] {
        assert_eq!(
            envelope.pointer(&format!("/properties/{field}/maxLength")),
            Some(&json!(max)),
            "{field}"
        );
    }
}
