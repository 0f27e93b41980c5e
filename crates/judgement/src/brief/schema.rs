//! The JSON Schema of the response to one request. It admits no illegal action: every open thread is a required key
//! whose value admits only what is legal now, and an lgtm is left out if no response could pass the gate.
//!
//! Keywords: `type`, `properties`, `required`, `additionalProperties: false`, `enum`, `const`, `anyOf`, `items`, which
//! vendors' structured outputs accept. Beyond those `maxItems` (not everywhere: the daemon counts again) and `$ref` to
//! `$defs` (local, never recursive). The root is an object and every property is required, because some vendors demand
//! it: an empty text means none. [`StructuredResponse`](super::StructuredResponse) checks what no such keyword can
//! express (the form of a commit, a digest, a path, lines).

use std::collections::BTreeMap;
use std::sync::LazyLock;

use message_schema::body::NitTier;
use message_schema::id::FindingId;
use message_schema::packet::{CommandResult, Severity};

use super::assignment::{Assignment, only_escalatable, reopenable};
use super::choice::Choice;
use super::json::{BOOLEAN, TEXT, json, list, object, one_of, only, reference, short_list};
use review::NEW_FINDINGS_MAX;
use review::Thread;

/// The schema's description of itself.
const ABOUT: &str = "The response to one review_request. Every open thread gets exactly one action; an empty text means none. A stance says what you want now: seeks_change if the author should change something, else accepts.";

/// The parts that are the same for every review, made once.
static COMMANDS_RUN: LazyLock<String> = LazyLock::new(commands_run);
static EXAMINED: LazyLock<String> =
    LazyLock::new(|| object(&[("diff_digest", TEXT), ("declared", &list(TEXT))]));
static NEW_FINDINGS: LazyLock<String> = LazyLock::new(new_findings);
static NITS: LazyLock<String> = LazyLock::new(nits);

/// Definitions that a schema refers to, by name.
type Definitions = BTreeMap<&'static str, &'static str>;

/// Returns the schema of the response to an assignment. It names no dialect: Claude Code refuses a schema that names
/// this one.
pub(super) fn of(assignment: &Assignment<'_>) -> String {
    let mut definitions = Definitions::from([
        ("commands_run", COMMANDS_RUN.as_str()),
        ("examined", EXAMINED.as_str()),
    ]);
    let mut verdicts = vec![feedback(assignment, &mut definitions)];
    if assignment.may_approve {
        verdicts.push(lgtm(assignment, &mut definitions));
    }
    let verdicts = format!(r#"{{"anyOf":[{}]}}"#, verdicts.join(","));
    let definitions: Vec<String> = definitions
        .iter()
        .map(|(name, schema)| format!("{}:{schema}", json(name)))
        .collect();
    format!(
        r#"{{"description":{},"$defs":{{{}}},{}"#,
        json(ABOUT),
        definitions.join(","),
        // Append the rest of the root without its opening brace.
        &object(&[("response", &verdicts)])[1..]
    )
}

fn feedback(assignment: &Assignment<'_>, definitions: &mut Definitions) -> String {
    let (kind, threads) = (
        only("review_feedback"),
        threads(assignment, Choice::in_feedback, definitions),
    );
    let ids: [(_, Vec<&FindingId>); 2] = [
        ("reopen", reopenable(assignment.review).collect()),
        ("escalate", only_escalatable(assignment.review).collect()),
    ];
    let back = ids.map(|(field, ids)| (field, (!ids.is_empty()).then(|| list(&one_of(&ids)))));
    let (commands_run, examined) = (reference("commands_run"), reference("examined"));
    let mut fields = vec![
        ("type", kind.as_str()),
        ("commands_run", &commands_run),
        ("examined", &examined),
        ("threads", &threads),
        ("findings", &NEW_FINDINGS),
        ("validated_head", TEXT),
        ("escalation", TEXT),
    ];
    fields.extend(
        back.iter()
            .filter_map(|(field, ids)| Some((*field, ids.as_deref()?))),
    );
    object(&fields)
}

fn lgtm(assignment: &Assignment<'_>, definitions: &mut Definitions) -> String {
    object(&[
        ("type", &only("review_lgtm")),
        ("commands_run", &reference("commands_run")),
        ("examined", &reference("examined")),
        (
            "threads",
            &threads(assignment, Choice::in_lgtm, definitions),
        ),
        ("nits", &NITS),
        ("validated_head", TEXT),
        ("merge_ready", BOOLEAN),
    ])
}

fn threads(
    assignment: &Assignment<'_>,
    choice: fn(&Thread, &Assignment<'_>) -> Choice,
    definitions: &mut Definitions,
) -> String {
    let keys: Vec<(&str, String)> = assignment
        .review
        .open_threads()
        .map(|(id, thread)| {
            let (name, schema) = choice(thread, assignment).definition();
            definitions.insert(name, schema);
            (id.as_str(), reference(name))
        })
        .collect();
    let keys: Vec<(&str, &str)> = keys
        .iter()
        .map(|(id, schema)| (*id, schema.as_str()))
        .collect();
    object(&keys)
}

/// The schema of findings that no thread covers. They have no id: the packet's author gives each a free one. Only a P2
/// uses the `blocking` that it states; the other severities determine it.
fn new_findings() -> String {
    let severity = one_of(Severity::ALL);
    let texts = [
        "title",
        "file",
        "lines",
        "category",
        "evidence",
        "recommendation",
        "introduced_by",
    ];
    let mut fields = vec![("severity", severity.as_str()), ("blocking", BOOLEAN)];
    fields.extend(texts.map(|text| (text, TEXT)));
    short_list(NEW_FINDINGS_MAX, &object(&fields))
}

fn commands_run() -> String {
    let result = one_of(CommandResult::ALL);
    list(&object(&[
        ("command", TEXT),
        ("result", &result),
        ("notes", TEXT),
    ]))
}

fn nits() -> String {
    let tier = one_of(NitTier::ALL);
    list(&object(&[
        ("tier", &tier),
        ("summary", TEXT),
        ("owner", TEXT),
        ("next_action", TEXT),
    ]))
}
