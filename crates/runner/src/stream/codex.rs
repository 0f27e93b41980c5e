//! `codex exec --json`: `turn.started` and `turn.completed` around the items of a turn; `agent_message` has the text.

use message_schema::spend::Spend;
use serde_json::Value;

use super::cause::{failure, retry_in_document};
use super::reads::printed_by;
use super::spend::{SpendReport, sum};
use super::{StreamEvent, text};

/// The value of `last` while a turn of the model is in progress.
const AT_WORK: &str = "model";

/// Items that are tool calls; the model continues when they are completed.
const TOOLS: [&str; 5] = [
    "command_execution",
    "file_change",
    "mcp_tool_call",
    "collab_tool_call",
    "web_search",
];

/// Reads one line. Codex calls everything it does for one prompt a turn. Here, as for the other programs, a turn is
/// what the model says and asks for between two tool results; `last` says if one is in progress.
pub(super) fn read(value: &Value, last: &mut Option<String>) -> StreamEvent {
    let mut begin = || last.replace(AT_WORK.to_owned()).is_none();
    let item = &value["item"];
    // Older versions call the item's type `item_type` and the message `assistant_message`.
    let kind = ["type", "item_type"]
        .iter()
        .map(|name| text(item, name))
        .find(|kind| !kind.is_empty())
        .unwrap_or_default();
    match (text(value, "type"), kind) {
        ("turn.started", _) => StreamEvent {
            begins_turn: begin(),
            ..StreamEvent::default()
        },
        ("item.completed", "agent_message" | "assistant_message") => StreamEvent {
            begins_turn: begin(),
            words: Some((text(item, "text").to_owned(), false)),
            ..StreamEvent::default()
        },
        ("item.started", tool) if TOOLS.contains(&tool) => StreamEvent {
            begins_turn: begin(),
            ..StreamEvent::default()
        },
        ("item.completed", tool) if TOOLS.contains(&tool) => {
            let begins_turn = begin();
            *last = None;
            let call = text(item, "id").to_owned();
            let command = text(item, "command");
            StreamEvent {
                begins_turn,
                asked: vec![(call.clone(), printed_by(command))],
                answered: vec![(call, item["exit_code"] == 0)],
                ..StreamEvent::default()
            }
        }
        ("turn.completed", _) => StreamEvent {
            end: Some(Ok(())),
            spend: Some(total(value)),
            ..StreamEvent::default()
        },
        // A connection that is restored also reports an `error`; a turn that completes afterwards counts.
        ("turn.failed", _) => failed(text(&value["error"], "message")),
        ("error", _) => failed(text(value, "message")),
        _ => StreamEvent::default(),
    }
}

/// The usage covers the whole run; both numbers include cached and reasoning tokens.
fn total(value: &Value) -> SpendReport {
    let own = Spend::tokens(sum(&value["usage"], &["input_tokens", "output_tokens"]));
    SpendReport::Total { own, whole: own }
}

/// The message is often the service's document.
fn failed(message: &str) -> StreamEvent {
    let document: Value = serde_json::from_str(message).unwrap_or_default();
    let words = document["error"]["message"].as_str().unwrap_or(message);
    StreamEvent {
        end: Some(Err(
            failure(document["status"].as_u64(), words).with_retry(retry_in_document(&document))
        )),
        ..StreamEvent::default()
    }
}
