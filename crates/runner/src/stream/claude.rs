//! `claude -p --output-format stream-json --verbose`: an `assistant` line for each piece of an answer of the model,
//! the pieces of one under the same message id, and at the end one `result`.

use serde_json::Value;

use super::reads::printed_by;
use super::{StreamEvent, text};

/// Reads one line. A turn is one answer of the model in the conversation itself; those of helpers it calls name the
/// tool they came by.
pub(super) fn read(value: &Value, last: &mut Option<String>) -> StreamEvent {
    let asked = asked(value);
    match text(value, "type") {
        "assistant" if value.get("parent_tool_use_id").is_none_or(Value::is_null) => {
            let id = value["message"]["id"].as_str().map(str::to_owned);
            let begins_turn = id.is_none() || id != *last;
            *last = id;
            StreamEvent {
                begins_turn,
                asked,
                ..StreamEvent::default()
            }
        }
        // A helper reads for the agent that called it.
        "assistant" => StreamEvent {
            asked,
            ..StreamEvent::default()
        },
        "user" => StreamEvent {
            answered: answered(value),
            ..StreamEvent::default()
        },
        "result" => result(value),
        _ => StreamEvent::default(),
    }
}

fn parts<'v>(value: &'v Value, kind: &'static str) -> impl Iterator<Item = &'v Value> {
    let content = value["message"]["content"].as_array();
    content
        .into_iter()
        .flatten()
        .filter(move |part| text(part, "type") == kind)
}

fn asked(value: &Value) -> Vec<(String, Vec<String>)> {
    parts(value, "tool_use")
        .map(|call| {
            let input = &call["input"];
            let files = match text(call, "name") {
                "Read" => vec![text(input, "file_path").to_owned()],
                "Bash" => printed_by(text(input, "command")),
                _ => Vec::new(),
            };
            (text(call, "id").to_owned(), files)
        })
        .filter(|(_, files)| !files.is_empty())
        .collect()
}

fn answered(value: &Value) -> Vec<(String, bool)> {
    parts(value, "tool_result")
        .map(|result| {
            let is_error = result["is_error"].as_bool().unwrap_or(false);
            (text(result, "tool_use_id").to_owned(), !is_error)
        })
        .collect()
}

/// What was asked for by a schema stands in a field of its own, and is the answer.
fn result(value: &Value) -> StreamEvent {
    let is_error =
        value["is_error"].as_bool().unwrap_or(false) || text(value, "subtype") != "success";
    let end = if is_error {
        Err("its result is an error".to_owned())
    } else {
        Ok(())
    };
    let structured = value
        .get("structured_output")
        .filter(|output| output.is_object());
    let words = structured.map_or_else(|| text(value, "result").to_owned(), Value::to_string);
    StreamEvent {
        words: Some((words, false)),
        end: Some(end),
        ..StreamEvent::default()
    }
}
