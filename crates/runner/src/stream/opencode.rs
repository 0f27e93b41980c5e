//! `opencode run --format json`: `step_start` and `step_finish` around each answer of the model, with `text` and
//! `tool_use` in between.

use message_schema::spend::Spend;
use serde_json::Value;

use super::cause::{failure, retry_in_document};
use super::reads::printed_by;
use super::spend::{SpendReport, dollars, sum};
use super::{StreamEvent, text};

/// Reads one line. A turn is one step; the step without a tool call is the last.
pub(super) fn read(value: &Value) -> StreamEvent {
    let part = &value["part"];
    match text(value, "type") {
        "step_start" => StreamEvent {
            begins_turn: true,
            ..StreamEvent::default()
        },
        "text" => StreamEvent {
            words: Some((text(part, "text").to_owned(), false)),
            ..StreamEvent::default()
        },
        "tool_use" => tool(part),
        "step_finish" => StreamEvent {
            end: (text(part, "reason") == "stop").then_some(Ok(())),
            spend: Some(step(part)),
            ..StreamEvent::default()
        },
        "error" => {
            let error = &value["error"];
            let data = &error["data"];
            let words = match text(data, "message") {
                "" => text(error, "name"),
                words => words,
            };
            StreamEvent {
                end: Some(Err(
                    failure(data["statusCode"].as_u64(), words).with_retry(retry_in_document(data))
                )),
                ..StreamEvent::default()
            }
        }
        _ => StreamEvent::default(),
    }
}

/// The spend of one step.
fn step(part: &Value) -> SpendReport {
    let tokens = &part["tokens"];
    let counted = sum(tokens, &["input", "output", "reasoning"]);
    let cached = sum(&tokens["cache"], &["read", "write"]);
    SpendReport::Step(Spend {
        tokens: tokens["total"].as_u64().unwrap_or(counted + cached),
        micro_usd: dollars(&part["cost"]),
    })
}

fn tool(part: &Value) -> StreamEvent {
    let state = &part["state"];
    let input = &state["input"];
    let files = match text(part, "tool") {
        "read" => vec![text(input, "filePath").to_owned()],
        "bash" => printed_by(text(input, "command")),
        _ => Vec::new(),
    };
    let exit = state["metadata"]["exit"].as_i64().unwrap_or(0);
    let is_well = text(state, "status") == "completed" && exit == 0;
    let call = text(part, "callID").to_owned();
    StreamEvent {
        asked: vec![(call.clone(), files)],
        answered: vec![(call, is_well)],
        ..StreamEvent::default()
    }
}
