//! `claude -p --output-format stream-json --verbose`: an `assistant` line for each piece of an answer of the model,
//! the pieces of one under the same message id, and at the end one `result`.

use serde_json::Value;

use super::{StreamEvent, text};

/// Reads one line. A turn is one answer of the model in the conversation itself; those of helpers it calls name the
/// tool they came by.
pub(super) fn read(value: &Value, last: &mut Option<String>) -> StreamEvent {
    match text(value, "type") {
        "assistant" if value.get("parent_tool_use_id").is_none_or(Value::is_null) => {
            let id = value["message"]["id"].as_str().map(str::to_owned);
            let begins_turn = id.is_none() || id != *last;
            *last = id;
            StreamEvent {
                begins_turn,
                ..StreamEvent::default()
            }
        }
        "result" => result(value),
        _ => StreamEvent::default(),
    }
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
