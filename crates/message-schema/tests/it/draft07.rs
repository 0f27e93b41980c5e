//! Both forms of a schema are equivalent: draft 07 and 2020-12 give every document the same verdict, in the corpus and
//! damaged.

use std::path::{Path, PathBuf};

use jsonschema::{Draft, Validator};
use message_schema::{ReadBody, Schema, coerce, parse};
use proptest::prelude::*;
use serde_json::{Value, json};

/// The keywords that both drafts read alike; before using another, look it up in both.
const ALIKE: [&str; 25] = [
    "$id",
    "$schema",
    "additionalProperties",
    "const",
    "default",
    "description",
    "enum",
    "errorMessage",
    "examples",
    "format",
    "if",
    "items",
    "maxItems",
    "maxLength",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "not",
    "pattern",
    "properties",
    "required",
    "then",
    "title",
    "type",
];

fn validator(document: &Value, draft: Draft) -> Validator {
    jsonschema::options()
        .with_draft(draft)
        .should_validate_formats(true)
        .with_format("line-range", |_: &str| true)
        .build(document)
        .expect("a schema of the draft")
}

fn read(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// Both forms of a schema as validators.
struct Forms(Schema, Validator, Validator);

impl Forms {
    fn of(schema: Schema) -> Self {
        let newer = validator(&read(schema.source()), Draft::Draft202012);
        Self(
            schema,
            newer,
            validator(&read(&schema.draft07()), Draft::Draft7),
        )
    }

    /// Returns the verdict of both, which must agree.
    fn judge(&self, document: &Value) -> bool {
        let Self(schema, newer, older) = self;
        let places = |validator: &Validator| -> Vec<String> {
            validator
                .iter_errors(document)
                .map(|error| error.instance_path().to_string())
                .collect()
        };
        assert_eq!(
            places(newer),
            places(older),
            "{}: {document:#}",
            schema.name()
        );
        newer.is_valid(document)
    }
}

#[test]
fn only_keywords_that_both_drafts_read_alike_are_used() {
    fn walk(schema: &Value, path: &str) {
        for (keyword, value) in schema.as_object().into_iter().flatten() {
            let is_note = keyword.starts_with("x-");
            assert!(
                is_note || ALIKE.contains(&keyword.as_str()),
                "{path} uses `{keyword}`"
            );
            // The drafts differ for a list of schemas in `items`, and for a schema that is no mapping.
            let is_list = keyword == "items" && value.is_array();
            assert!(!is_list, "{path} lists its items one by one");
            match keyword.as_str() {
                "properties" => value
                    .as_object()
                    .into_iter()
                    .flatten()
                    .for_each(|(name, field)| walk(field, &format!("{path}.{name}"))),
                "items" | "if" | "then" | "not" => walk(value, &format!("{path}.{keyword}")),
                _ => {}
            }
        }
    }
    for &schema in Schema::ALL {
        let document = read(&schema.draft07());
        walk(&document, schema.name());
        assert_eq!(
            document["$schema"],
            "http://json-schema.org/draft-07/schema#"
        );
        assert!(!schema.draft07().contains("2020-12") && !schema.draft07().contains("x-expected"));
        jsonschema::draft7::meta::validate(&document).expect("a schema of draft 07");
    }
}

fn packets() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packets")
}

fn files(directory: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("the corpus") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, into);
        } else if path
            .extension()
            .is_some_and(|extension| extension != "expected")
        {
            into.push(path);
        }
    }
}

#[test]
fn both_drafts_give_the_corpus_the_same_verdicts() {
    let forms: Vec<Forms> = Schema::ALL
        .iter()
        .map(|schema| Forms::of(*schema))
        .collect();
    let form = |schema: Schema| &forms[schema as usize];
    let mut paths = Vec::new();
    files(&packets(), &mut paths);
    let (mut right, mut wrong) = (0, 0);
    let mut judge = |schema: Schema, document: &Value| match form(schema).judge(document) {
        true => right += 1,
        false => wrong += 1,
    };
    for path in paths {
        let Ok(message) = parse(&std::fs::read(&path).expect("readable")) else {
            continue;
        };
        if message.root().field("findings").is_some() {
            judge(
                Schema::FindingsPacket,
                &coerce(message.root(), Schema::FindingsPacket.shape()),
            );
            continue;
        }
        judge(
            Schema::Envelope,
            &coerce(message.root(), Schema::Envelope.shape()),
        );
        let schema = message.kind().and_then(Schema::of_body);
        if let (Some(schema), ReadBody::Mapping(body)) = (schema, message.read_body()) {
            judge(schema, &coerce(body, schema.shape()));
        }
    }
    assert!(
        right > 60 && wrong > 40,
        "{right} right ones, {wrong} wrong ones: the corpus was not met"
    );
}

/// Generates a document of a schema, damaged in a few places.
fn damaged() -> impl Strategy<Value = (Schema, Value)> {
    let value = prop::sample::select(vec![
        json!(null),
        json!(0),
        json!(-1),
        json!(4_294_967_296_u64),
        json!(1.5),
        json!(true),
        json!(""),
        json!("P2"),
        json!("settled"),
        json!("2026-02-30T10:00:00Z"),
        json!("a\u{202e}b"),
        json!([]),
        json!({}),
        json!(["x", "x"]),
    ]);
    let damage = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), value), 0..4);
    (
        prop::sample::select(Schema::ALL),
        any::<prop::sample::Index>(),
        damage,
    )
        .prop_map(|(schema, example, damage)| {
            let document = read(schema.source());
            let examples = document["examples"].as_array().expect("examples");
            let mut changed = example.get(examples).clone();
            for (at, how, value) in damage {
                let mut all = Vec::new();
                pointers(&changed, String::new(), &mut all);
                let at: &String = at.get(&all);
                harm(&mut changed, at, how, value);
            }
            (schema, changed)
        })
}

fn pointers(value: &Value, at: String, into: &mut Vec<String>) {
    for (name, value) in value.as_object().into_iter().flatten() {
        pointers(value, format!("{at}/{name}"), into);
    }
    for (index, value) in value.as_array().into_iter().flatten().enumerate() {
        pointers(value, format!("{at}/{index}"), into);
    }
    into.push(at);
}

fn harm(document: &mut Value, at: &str, how: u8, value: Value) {
    let (parent, name) = at.rsplit_once('/').unwrap_or_default();
    let parent = document
        .pointer_mut(parent)
        .expect("a pointer of this document");
    match parent {
        Value::Object(fields) => match how % 3 {
            0 => drop(fields.remove(name)),
            1 => drop(fields.insert(format!("{name}s"), value)),
            _ => drop(fields.insert(name.to_owned(), value)),
        },
        Value::Array(items) => items.push(value),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => *parent = value,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_drafts_give_damaged_documents_the_same_verdict((schema, document) in damaged()) {
        thread_local! {
            static FORMS: Vec<Forms> = Schema::ALL.iter().map(|schema| Forms::of(*schema)).collect();
        }
        let verdict = FORMS.with(|forms| forms[schema as usize].judge(&document));
        // The 2020-12 validators check a few formats more strictly and none less.
        prop_assert!(verdict || !schema.breaches(&document).is_empty(), "{:#}", document);
    }
}
