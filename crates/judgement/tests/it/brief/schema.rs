//! Compares what the schema admits with what the rules accept.

use std::collections::BTreeSet;

use judgement::brief::Brief;
use message_schema::body::Body;
use message_schema::id::FindingId;
use message_schema::packet::{Action, Finding};
use message_schema::render_packet;
use proptest::prelude::*;
use review::{Phase, ThreadMode};
use serde_json::{Map, Value, json};

use super::play::play;
use super::{Asked, Fate, completed, deal, fate, fate_of, feedback, lgtm, write};
use crate::table::Table;

/// The four actions, the additional one of an lgtm, and one that does not exist.
const WORDS: [&str; 6] = ["resolve", "veto", "escalate", "reply", "defer", "approve"];
const STANCES: [&str; 2] = ["seeks_change", "accepts"];

fn open(brief: &Brief) -> Vec<String> {
    brief
        .open_threads
        .iter()
        .map(|thread| thread.id.to_string())
        .collect()
}

/// Gives every thread the choice of its index.
fn dealt(brief: &Brief, choices: &[(&str, &str)]) -> Value {
    let deals = open(brief)
        .into_iter()
        .zip(choices)
        .map(|(id, (action, stance))| (id, deal(action, stance)));
    Value::Object(deals.collect::<Map<_, _>>())
}

/// Returns the responses of both kinds with the same choices.
fn both(asked: &Asked, choices: &[(&str, &str)]) -> [Value; 2] {
    let threads = dealt(&asked.brief, choices);
    [feedback(&threads), lgtm(&threads)].map(|response| completed(asked, response))
}

fn choices() -> impl Strategy<Value = Vec<(&'static str, &'static str)>> {
    let choice = (
        prop::sample::select(WORDS.to_vec()),
        prop::sample::select(STANCES.to_vec()),
    );
    prop::collection::vec(choice, 4)
}

/// Returns some response that the schema admits.
fn admitted(asked: &Asked) -> Value {
    let all_resolved = both(asked, &[("resolve", "accepts"); 4]);
    let found = all_resolved
        .into_iter()
        .find(|response| asked.admits(response));
    found.expect("resolving everything in a feedback is always admitted")
}

/// Checks that the rules and the schema agree about a response, as far as threads are concerned.
fn agree(table: &mut Table, asked: &Asked, response: &Value) -> Result<(), TestCaseError> {
    let (admitted, fate) = (asked.admits(response), fate(table, response));
    prop_assert_eq!(
        admitted,
        fate.is_fine_with_threads(),
        "{:?}\n{}\n{}",
        fate,
        response,
        asked.schema
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_schema_admits_exactly_what_the_rules_accept_of_threads(
        play in play(),
        samples in prop::collection::vec(choices(), 8),
    ) {
        let Some(mut table) = play.table() else { return Ok(()) };
        let asked = Asked::of(&table);
        for choices in &samples {
            for response in both(&asked, choices) {
                agree(&mut table, &asked, &response)?;
            }
        }
    }

    #[test]
    fn the_schema_admits_exactly_what_the_rules_accept_of_one_thread_beside_resolved_ones(play in play()) {
        let Some(mut table) = play.table() else { return Ok(()) };
        let asked = Asked::of(&table);
        let brief = &asked.brief;
        for place in 0..open(brief).len() {
            for choice in WORDS.iter().flat_map(|word| STANCES.map(|stance| (*word, stance))) {
                let mut choices = [("resolve", "seeks_change"); 4];
                choices[place] = choice;
                for response in both(&asked, &choices) {
                    agree(&mut table, &asked, &response)?;
                }
            }
        }
    }

    #[test]
    fn an_admitted_response_without_new_findings_is_accepted(play in play(), choices in choices()) {
        let Some(mut table) = play.table() else { return Ok(()) };
        let asked = Asked::of(&table);
        for response in both(&asked, &choices) {
            if asked.admits(&response) {
                prop_assert!(fate(&mut table, &response).is_heard(), "{response}");
            }
        }
    }

    #[test]
    fn what_is_raised_or_raised_again_speaks_against_no_thread(
        play in play(),
        severities in prop::collection::vec(prop::sample::select(vec!["P0", "P1", "P2", "P3"]), 0..4),
        back in any::<bool>(),
    ) {
        let Some(mut table) = play.table() else { return Ok(()) };
        let asked = Asked::of(&table);
        let brief = &asked.brief;
        let mut response = completed(&asked, feedback(&dealt(brief, &[("escalate", "accepts"); 4])));
        let found = severities.iter().enumerate().map(|(n, severity)| {
            let mut finding = json!({ "severity": severity, "blocking": back });
            for field in ["title", "file", "lines", "category", "evidence", "recommendation", "introduced_by"] {
                finding[field] = "".into();
            }
            finding["file"] = format!("new{n}.rs").into();
            finding
        });
        response["response"]["findings"] = found.collect();
        for field in ["reopen", "escalate"] {
            let ids = &asked.schema["properties"]["response"]["anyOf"][0]["properties"][field]["items"]["enum"];
            if back && ids.is_array() {
                // A repeated id counts once.
                let twice = ids.as_array().into_iter().flatten().flat_map(|id| [id, id]);
                response["response"][field] = twice.cloned().collect();
            }
        }
        prop_assert!(asked.admits(&response), "{response}\n{}", asked.schema);
        prop_assert!(fate(&mut table, &response).is_heard(), "{response}");
    }

    #[test]
    fn every_breach_of_the_thread_rules_is_refused_by_the_schema_and_by_the_rules(play in play()) {
        let Some(mut table) = play.table() else { return Ok(()) };
        let asked = Asked::of(&table);
        let brief = &asked.brief;
        let right = admitted(&asked);
        let written = write(&table, &right).expect("it is admitted");
        let mut breaches = vec![];

        let mut stranger = right.clone();
        stranger["response"]["threads"]["F-999"] = deal("resolve", "accepts");
        breaches.push(stranger);
        for id in open(brief) {
            let broken = |change: &dyn Fn(&mut Value)| {
                let mut broken = right.clone();
                change(&mut broken["response"]["threads"]);
                broken
            };
            breaches.push(broken(&|threads| { threads.as_object_mut().expect("an object").remove(&id); }));
            breaches.push(broken(&|threads| threads[&id]["action"] = "approve".into()));
            breaches.push(broken(&|threads| threads[&id]["action"] = json!(["resolve", "veto"])));
            breaches.push(broken(&|threads| threads[&id]["also"] = "veto".into()));
        }
        for broken in breaches {
            prop_assert!(!asked.admits(&broken), "{broken}");
            prop_assert!(matches!(fate(&mut table, &broken), Fate::Unwritable(_)), "{broken}");
        }

        // The same, written by hand: the wire format can express some of it.
        let Some(packet) = &written.packet else { return Ok(()) };
        let refused = |table: &mut Table, findings: Vec<Finding>, code: &str| {
            let mut packet = packet.clone();
            packet.findings = findings;
            let fate = fate_of(table, &counted(&written.body, &packet.findings), Some(&render_packet(&packet)));
            let is_so = matches!(&fate, Fate::Refused(codes) if codes.contains(&code.to_owned()));
            prop_assert!(is_so, "{fate:?}, expected {code}:\n{}", render_packet(&packet));
            Ok(())
        };
        for (place, finding) in packet.findings.iter().enumerate() {
            let mut fewer = packet.findings.clone();
            fewer.remove(place);
            if !is_silence_read(&table, &finding.id) {
                refused(&mut table, fewer, "action_missing")?;
            }
            let other = |id: &str| FindingId::new(id).expect("an id");
            let with = |more: Finding| [packet.findings.clone(), vec![more]].concat();
            let unknown = Finding { id: other("F-999"), title: None, ..finding.clone() };
            refused(&mut table, with(unknown.clone()), "thread_unknown")?;
            let twice = Finding { same_as: Some(finding.id.clone()), action: Some(Action::Veto), ..unknown };
            refused(&mut table, with(twice), "action_multiple")?;
        }
    }

    #[test]
    fn a_schema_keeps_to_the_keywords_vendors_take(play in play()) {
        let Some(table) = play.table() else { return Ok(()) };
        let asked = Asked::of(&table);
        prop_assert!(jsonschema::draft202012::meta::is_valid(&asked.schema));
        let mut used = BTreeSet::new();
        walk(&asked.schema, &mut used);
        let allowed = [
            "$defs", "$ref", "additionalProperties", "anyOf", "const", "description", "enum", "items",
            "maxItems", "properties", "required", "type",
        ];
        let beyond: Vec<_> = used.iter().filter(|keyword| !allowed.contains(&keyword.as_str())).collect();
        prop_assert!(beyond.is_empty(), "{beyond:?}");
    }
}

/// Returns the body of a response whose packet now holds other findings.
fn counted(body: &Body, findings: &[Finding]) -> Body {
    let mut body = body.clone();
    if let Body::Feedback(feedback) = &mut body {
        let blocking = findings
            .iter()
            .filter(|finding| finding.counts_as_blocking())
            .count();
        feedback.blocking_count = u32::try_from(blocking).expect("few findings");
    }
    body
}

/// True if silence about the thread resolves it, so that leaving it out breaks no rule.
fn is_silence_read(table: &Table, id: &FindingId) -> bool {
    let Phase::Reviewing(open) = &table.review().phase else {
        return false;
    };
    let report = open
        .addressed
        .as_ref()
        .filter(|_| table.policy.threads == ThreadMode::Inferred);
    report.is_some_and(|report| report.findings.is_empty() || report.findings.contains(id))
}

/// Collects the keywords of a schema; every object in it must be closed and require all its properties.
fn walk(schema: &Value, used: &mut BTreeSet<String>) {
    let fields = schema.as_object().expect("a schema is an object");
    used.extend(fields.keys().cloned());
    let named = |key: &str| {
        fields
            .get(key)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
    };
    named("properties")
        .chain(named("$defs"))
        .for_each(|(_, schema)| walk(schema, used));
    fields
        .get("items")
        .iter()
        .for_each(|schema| walk(schema, used));
    fields
        .get("anyOf")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .for_each(|schema| walk(schema, used));
    if schema["type"] == "object" {
        assert_eq!(schema["additionalProperties"], false, "{schema}");
        let names: BTreeSet<&str> = named("properties").map(|(name, _)| name.as_str()).collect();
        let required = schema["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        assert_eq!(required.collect::<BTreeSet<_>>(), names, "{schema}");
    }
}
