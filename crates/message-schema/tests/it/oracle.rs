//! A complete JSON Schema validator finds exactly the breaches that we find.

use std::sync::OnceLock;

use jsonschema::Validator;
use jsonschema::error::ValidationErrorKind;
use jsonschema::paths::LocationSegment;
use message_schema::Schema;
use message_schema::envelope::Timestamp;
use message_schema::packet::LineRange;
use message_schema::schema::{Breach, Step};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::agreement::{all_pointers, damages, document, examples, near_misses, renamed};

fn oracle(schema: Schema) -> &'static Validator {
    static ORACLES: [OnceLock<Validator>; 8] = [const { OnceLock::new() }; 8];
    ORACLES[schema as usize].get_or_init(|| built(schema))
}

fn built(schema: Schema) -> Validator {
    jsonschema::draft202012::options()
        .should_validate_formats(true)
        .with_format("date-time", |text: &str| Timestamp::parse(text).is_some())
        .with_format("line-range", |text: &str| LineRange::parse(text).is_some())
        .build(&document(schema))
        .expect("a schema of the draft")
}

/// Returns the breaches that the oracle finds, one a line.
fn by_oracle(oracle: &Validator, document: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for error in oracle.iter_errors(document) {
        let at: Vec<Step> = error
            .instance_path()
            .iter()
            .map(|segment| match segment {
                LocationSegment::Property(name) => Step::Key(name.into_owned()),
                LocationSegment::Index(index) => Step::Index(index),
            })
            .collect();
        if let ValidationErrorKind::Required { property } = error.kind() {
            let field = property.as_str().expect("a name");
            found.push(format!("{at:?} misses {field}"));
        } else if let ValidationErrorKind::AdditionalProperties { unexpected } = error.kind() {
            let unknown = unexpected.iter();
            found.extend(unknown.map(|field| format!("{at:?} does not know {field}")));
        } else {
            found.push(format!("{at:?} {}", error.kind().keyword()));
        }
    }
    found.sort();
    found
}

fn by_us(schema: Schema, document: &Value) -> Vec<String> {
    let told = |breach: Breach| match breach {
        Breach::Missing { at, field } => format!("{at:?} misses {field}"),
        Breach::Unknown { at, field } => format!("{at:?} does not know {field}"),
        Breach::Broken { at, keyword } => format!("{at:?} {keyword}"),
    };
    let mut found: Vec<String> = schema.breaches(document).into_iter().map(told).collect();
    found.sort();
    found
}

#[test]
fn of_damaged_examples_the_same_breaches_are_found() {
    let mut keywords = std::collections::BTreeSet::new();
    for &schema in Schema::ALL {
        let oracle = oracle(schema);
        let mut judge = |document: &Value| {
            let ours = by_us(schema, document);
            assert_eq!(
                ours,
                by_oracle(oracle, document),
                "{}: {document:#}",
                schema.name()
            );
            let words = ours.iter().filter_map(|breach| breach.rsplit(' ').next());
            keywords.extend(words.map(str::to_owned));
        };
        for example in examples(schema) {
            judge(&example);
            for (pointer, _) in &all_pointers(schema, &example) {
                for damage in damages() {
                    let mut damaged = example.clone();
                    *damaged.pointer_mut(pointer).expect("there") = damage;
                    judge(&damaged);
                }
                for name in [None, Some("strange")] {
                    if let Some(damaged) = renamed(&example, pointer, name) {
                        judge(&damaged);
                    }
                }
            }
        }
    }
    for keyword in [
        "type",
        "enum",
        "not",
        "pattern",
        "format",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
        "minItems",
        "maxItems",
    ] {
        assert!(keywords.contains(keyword), "no document breaks `{keyword}`");
    }
}

#[test]
fn a_nit_of_the_second_severity_says_whether_it_blocks() {
    let packet =
        json!({"findings": [{"id": "F-1", "severity": "P2", "status": "open"}], "round": 1});
    let ours = by_us(Schema::FindingsPacket, &packet);
    assert!(
        ours.iter()
            .any(|breach| breach.ends_with("misses blocking")),
        "{ours:?}"
    );
    assert_eq!(ours, by_oracle(oracle(Schema::FindingsPacket), &packet));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn of_random_texts_the_same_breaches_are_found(text in near_misses(), pick in any::<prop::sample::Index>()) {
        for &schema in Schema::ALL {
            let oracle = oracle(schema);
            for example in examples(schema) {
                let all = all_pointers(schema, &example);
                let (pointer, _) = pick.get(&all);
                let mut changed = example.clone();
                *changed.pointer_mut(pointer).expect("there") = json!(text);
                prop_assert_eq!(by_us(schema, &changed), by_oracle(oracle, &changed), "{:#}", changed);
            }
        }
    }
}
