//! Reads a reviewer's own file: a list of findings; a mapping with findings, actions on open threads, nits and commands
//! run; a whole findings packet; or structured output by a brief's schema. YAML or JSON, with scalars kept as written.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use judgement::brief::{NotAResponse, StructuredResponse};
use message_schema::body::Examined;
use message_schema::packet::{Action, Stance};
use message_schema::schema::Schema;
use message_schema::yaml::{Content, Node};
use message_schema::{Malformed, Place, coerce, parse_packet};
use serde::Deserialize as _;
use serde_json::{Map, Value};

/// The keys allowed at the top level.
const KEYS: &[&str] = &[
    "findings",
    "threads",
    "nits",
    "commands_run",
    "escalation",
    "validated_head",
    "merge_ready",
    "examined",
];

/// The keys allowed in an action.
const OF_AN_ACTION: [&str; 5] = ["action", "stance", "evidence", "owner", "next_action"];

/// A reviewer's file.
#[derive(Clone, Debug)]
pub enum ResponseFile {
    /// Structured output by the schema of a brief.
    Structured(Box<StructuredResponse>),
    /// Findings and actions in the reviewer's own form.
    Loose(Box<LooseResponse>),
    /// One word: an approval that names no thread.
    Word,
}

/// Findings, actions and nits as written; any value may be wrong.
#[derive(Clone, Debug, Default)]
pub struct LooseResponse {
    /// New findings, and open threads named again.
    pub findings: Vec<Map<String, Value>>,
    /// The actions on open threads, by id.
    pub actions: BTreeMap<String, ThreadAction>,
    /// The threads with more than one action.
    pub twice: BTreeSet<String>,
    /// The items left for later.
    pub nits: Vec<Map<String, Value>>,
    /// The commands run to check the change.
    pub commands_run: Vec<Value>,
    /// The reason a person should continue.
    pub escalation: Option<String>,
    /// The commit that was reviewed.
    pub validated_head: Option<String>,
    /// The claim that the pull request may be merged now.
    pub merge_ready: Option<Value>,
    /// The files that the reviewer declares as read.
    pub examined: Option<Examined>,
    /// The other fields of a packet.
    pub header: Map<String, Value>,
}

/// An action on one open thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadAction {
    /// The action, or `defer`.
    pub action: String,
    /// The reviewer's current stance.
    pub stance: Option<String>,
    /// The observation that supports it.
    pub evidence: Option<String>,
    /// The agent or person that takes a deferred thread.
    pub owner: Option<String>,
    /// The next step for a deferred thread.
    pub next_action: Option<String>,
}

/// The reason a file has none of these forms.
#[derive(Debug, thiserror::Error)]
pub enum NotAResponseFile {
    /// It cannot be read.
    #[error("{0}")]
    Malformed(#[from] Malformed),
    /// Its `response` is not a response.
    #[error(transparent)]
    Response(#[from] NotAResponse),
    /// It is empty, or has a key or value that is not allowed.
    #[error("{0}")]
    Unknown(String),
}

impl ResponseFile {
    /// The nodes of the file's findings with their places, in file order.
    pub fn places(text: &str) -> Vec<Node> {
        let text = text.trim_start_matches('\u{feff}');
        let root = match is_list(text) {
            true => parse_packet(indented(text).as_bytes()),
            false => parse_packet(text.as_bytes()),
        };
        let Ok(root) = root else { return Vec::new() };
        let root = root.field("response").map_or(&root, |field| &field.value);
        let items = root.field("findings").map(|field| field.value.items());
        items.unwrap_or_default().to_vec()
    }

    /// The line and column in the file's text of a place in what is parsed, where a list is the value of a key: one line
    /// further down, and indented.
    pub fn own_place(text: &str, place: Place) -> (u32, u32) {
        let Place { line, column } = place;
        match is_list(text.trim_start_matches('\u{feff}')) {
            true => (line.saturating_sub(1), column.saturating_sub(INDENT)),
            false => (line, column),
        }
    }

    /// Reads the file's text.
    pub fn read(text: &str) -> Result<Self, NotAResponseFile> {
        let text = text.trim_start_matches('\u{feff}');
        if text.trim().is_empty() {
            return Err(NotAResponseFile::Unknown(
                "it is empty, expected findings; `findings: []` says there are none".to_owned(),
            ));
        }
        // A document must be a mapping, so a list becomes a value in one.
        let root = match is_list(text) {
            true => parse_packet(indented(text).as_bytes())?,
            false => parse_packet(text.as_bytes())?,
        };
        if root.field("response").is_some() {
            return Self::structured(text, &root);
        }
        LooseResponse::read(&root).map(|loose| Self::Loose(Box::new(loose)))
    }

    fn structured(text: &str, root: &Node) -> Result<Self, NotAResponseFile> {
        // A model that follows a schema writes JSON; YAML texts are kept unchanged.
        let value = serde_json::from_str(text).unwrap_or_else(|_| typed(root));
        if value["response"].is_object() && value["response"]["type"].is_null() {
            let message = "`response` has no `type`, expected review_feedback or review_lgtm as in `settled brief --schema`; \
                           without that schema write `findings` and `threads` alone";
            return Err(NotAResponseFile::Unknown(message.to_owned()));
        }
        Ok(Self::Structured(Box::new(StructuredResponse::read(
            &value,
        )?)))
    }
}

fn typed(node: &Node) -> Value {
    match &node.content {
        Content::Scalar(scalar) if scalar.style == message_schema::yaml::Style::Plain => {
            match scalar.text.as_str() {
                "true" => Value::Bool(true),
                "false" => Value::Bool(false),
                text => Value::String(text.to_owned()),
            }
        }
        Content::Scalar(scalar) => Value::String(scalar.text.clone()),
        Content::List(items) => items.iter().map(typed).collect(),
        Content::Map(fields) => Value::Object(
            fields
                .iter()
                .map(|field| (field.key.clone(), typed(&field.value)))
                .collect(),
        ),
    }
}

fn is_list(text: &str) -> bool {
    let lines = text.lines().map(str::trim_start);
    let mut said =
        lines.filter(|line| !line.is_empty() && !line.starts_with('#') && !line.starts_with("---"));
    said.next().is_some_and(|line| line.starts_with(['-', '[']))
}

/// The columns by which [`indented`] moves a list to the right.
const INDENT: u32 = 2;

fn indented(text: &str) -> String {
    text.lines().fold("findings:\n".to_owned(), |all, line| {
        // An empty line in place of the mark keeps the lines after it in their places.
        let line = if line.starts_with("---") { "" } else { line };
        all + "  " + line + "\n"
    })
}

impl LooseResponse {
    fn read(root: &Node) -> Result<Self, NotAResponseFile> {
        let packet = object(coerce(root, Schema::FindingsPacket.shape()));
        let lgtm = object(coerce(root, Schema::ReviewLgtm.shape()));
        let text = |key: &str| {
            root.field_text(key)
                .filter(|text| !text.is_empty())
                .map(str::to_owned)
        };
        let mut loose = Self {
            findings: maps(packet.get("findings"), "findings")?,
            nits: maps(lgtm.get("nits"), "nits")?,
            escalation: text("escalation"),
            validated_head: text("validated_head").or_else(|| text("reviewed_sha")),
            merge_ready: lgtm.get("merge_ready").cloned(),
            examined: lgtm
                .get("examined")
                .map(Examined::deserialize)
                .transpose()
                .map_err(|error| NotAResponseFile::Unknown(format!("`examined`: {error}")))?,
            ..Self::default()
        };
        for (id, action) in actions(root)? {
            loose.act(id, action);
        }
        let runs = packet
            .get("qa_validation")
            .and_then(|qa| qa.get("commands_run"));
        loose.commands_run = runs
            .or(packet.get("commands_run"))
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        for (key, value) in packet {
            let is_header = Schema::FindingsPacket.shape().field(&key).is_some();
            match key.as_str() {
                // A count given in the file would be wrong once something is added.
                "summary" | "qa_validation" | "reviewed_sha" => {}
                known if KEYS.contains(&known) => {}
                _ if is_header => {
                    loose.header.insert(key, value);
                }
                "actions" => {
                    let message = "`actions` has no meaning here: write `threads`".to_owned();
                    return Err(NotAResponseFile::Unknown(message));
                }
                "type" => {
                    let message = "`type` belongs under `response`, in an answer that follows `settled brief --schema`";
                    return Err(NotAResponseFile::Unknown(message.to_owned()));
                }
                _ => {
                    let message =
                        format!("`{key}` has no meaning here, expected {}", KEYS.join(", "));
                    return Err(NotAResponseFile::Unknown(message));
                }
            }
        }
        Ok(loose)
    }

    /// Adds an action on a thread. Notes a second one on the same thread: we must not choose between them.
    pub fn act(&mut self, id: String, action: ThreadAction) {
        match self.actions.entry(id) {
            Entry::Occupied(first) => {
                self.twice.insert(first.key().clone());
            }
            Entry::Vacant(none) => {
                none.insert(action);
            }
        }
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    }
}

fn maps(list: Option<&Value>, what: &str) -> Result<Vec<Map<String, Value>>, NotAResponseFile> {
    let unfit = || NotAResponseFile::Unknown(format!("`{what}` must be a list of mappings"));
    let Some(list) = list else {
        return Ok(Vec::new());
    };
    let items = list.as_array().ok_or_else(unfit)?;
    items
        .iter()
        .map(|item| item.as_object().cloned().ok_or_else(unfit))
        .collect()
}

/// Reads `threads`: a mapping from thread ids to an action or to a mapping with its fields, or a list with ids.
fn actions(root: &Node) -> Result<Vec<(String, ThreadAction)>, NotAResponseFile> {
    let mut actions = Vec::new();
    let given = || root.field("threads").into_iter();
    let named = given().flat_map(|field| field.value.fields());
    let named = named.map(|field| (Some(field.key.as_str()), &field.value));
    let listed = given()
        .flat_map(|field| field.value.items())
        .map(|item| (item.field_text("id"), item));
    for (id, said) in named.chain(listed) {
        let unfit = || {
            NotAResponseFile::Unknown(
                "`threads` needs an id and an action for each thread".to_owned(),
            )
        };
        let text = |key: &str| {
            said.field_text(key)
                .filter(|text| !text.is_empty())
                .map(str::to_owned)
        };
        let deed = match said.text() {
            Some(action) => ThreadAction {
                action: action.trim().to_owned(),
                ..ThreadAction::default()
            },
            None => ThreadAction {
                action: text("action").ok_or_else(unfit)?,
                stance: text("stance"),
                evidence: text("evidence"),
                owner: text("owner"),
                next_action: text("next_action"),
            },
        };
        let id = id.ok_or_else(unfit)?.to_owned();
        let mut keys = said.fields().iter().map(|field| field.key.as_str());
        if let Some(key) = keys.find(|key| *key != "id" && !OF_AN_ACTION.contains(key)) {
            let expected = OF_AN_ACTION.join(", ");
            return Err(NotAResponseFile::Unknown(format!(
                "`{key}` has no meaning in the action on `{id}`, expected {expected}"
            )));
        }
        actions.push((id, deed));
    }
    Ok(actions)
}

impl ThreadAction {
    /// The action, if it is one of the four.
    pub fn act(&self) -> Option<Action> {
        Action::from_word(&self.action)
    }

    /// The first given key that has no effect beside the action: an owner needs a deferred thread, a stance and
    /// evidence one that is not.
    pub fn meaningless(&self) -> Option<&'static str> {
        let said = match self.action.as_str() {
            "defer" => [("stance", &self.stance), ("evidence", &self.evidence)],
            _ => [("owner", &self.owner), ("next_action", &self.next_action)],
        };
        let mut said = said.into_iter();
        said.find(|(_, text)| text.is_some()).map(|(key, _)| key)
    }

    /// The stance, if one is given and valid.
    pub fn stance(&self) -> Option<Stance> {
        self.stance.as_deref().and_then(Stance::from_word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loose(text: &str) -> LooseResponse {
        match ResponseFile::read(text).expect("a sheet") {
            ResponseFile::Loose(loose) => *loose,
            ResponseFile::Structured(_) | ResponseFile::Word => panic!("not loose: {text}"),
        }
    }

    #[test]
    fn findings_may_be_a_list_or_a_field_in_yaml_or_json() {
        for text in [
            "- severity: P1\n  title: a\n",
            "# mine\n---\n- severity: P1\n  title: a\n",
            "findings:\n- severity: P1\n  title: a\n",
            "[{\"severity\": \"P1\",\n\"title\": \"a\"}]",
            "{\"findings\": [{\"severity\": \"P1\", \"title\": \"a\"}]}",
        ] {
            let findings = loose(text).findings;
            assert_eq!(
                (findings.len(), &findings[0]["title"]),
                (1, &Value::from("a")),
                "{text}"
            );
        }
    }

    #[test]
    fn actions_are_words_or_mappings() {
        let named =
            loose("threads:\n  F-1: resolve\n  F-2: {action: defer, owner: claude}\n").actions;
        assert_eq!(
            (named["F-1"].act(), named["F-2"].owner.as_deref()),
            (Some(Action::Resolve), Some("claude"))
        );
        assert_eq!(
            loose("threads:\n- {id: F-1, action: resolve}\n").actions["F-1"],
            named["F-1"]
        );
    }

    #[test]
    fn another_word_for_threads_is_answered_with_the_right_one() {
        let error = ResponseFile::read("actions: {F-1: veto}\n").expect_err("an old word");
        assert!(error.to_string().contains("write `threads`"), "{error}");
    }

    #[test]
    fn an_argument_is_never_dropped() {
        let error = ResponseFile::read("threads:\n  F-2: {action: veto, reply: it is wrong}\n")
            .expect_err("an unknown key")
            .to_string();
        assert_eq!(
            error,
            "`reply` has no meaning in the action on `F-2`, expected action, stance, evidence, owner, next_action"
        );
        let twice = loose("threads:\n- {id: F-1, action: veto}\n- {id: F-1, action: resolve}\n");
        assert!(twice.twice.contains("F-1"), "{twice:?}");
    }

    #[test]
    fn what_has_no_meaning_is_named() {
        let error = ResponseFile::read("finding: []\n")
            .expect_err("a slip")
            .to_string();
        assert!(
            error.starts_with("`finding` has no meaning here, expected findings, threads"),
            "{error}"
        );
    }
}
