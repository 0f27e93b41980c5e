//! `gemini --output-format stream-json`: `message` lines with pieces of what is said, `tool_use` and `tool_result`,
//! and at the end one `result`.

use serde_json::Value;

use super::{Line, text};

/// Where the model is at work.
const AT_WORK: &str = "model";

/// Reads one line. A turn is what the model says and asks for between two answers of tools; `last` says whether one
/// is under way.
pub(super) fn read(value: &Value, last: &mut Option<String>) -> Line {
    let mut begin = || last.replace(AT_WORK.to_owned()).is_none();
    match text(value, "type") {
        "message" if text(value, "role") == "assistant" => {
            let begins_turn = begin();
            let goes_on = value["delta"].as_bool().unwrap_or(false) && !begins_turn;
            Line {
                begins_turn,
                words: Some((text(value, "content").to_owned(), goes_on)),
                end: None,
            }
        }
        "tool_use" => Line {
            begins_turn: begin(),
            ..Line::default()
        },
        "tool_result" => {
            *last = None;
            Line::default()
        }
        "result" => {
            let is_well = text(value, "status") == "success";
            let end = if is_well {
                Ok(())
            } else {
                Err("its result is an error".to_owned())
            };
            Line {
                end: Some(end),
                ..Line::default()
            }
        }
        _ => Line::default(),
    }
}
