//! `codex exec --json`: `turn.started` and `turn.completed` around the items of a turn, of which an `agent_message`
//! is what it says.

use serde_json::Value;

use super::reads::printed_by;
use super::{StreamEvent, text};

/// Reads one line. Codex calls a turn all that it does for one prompt, so there is one in a run; the seconds are
/// what bounds it.
pub(super) fn read(value: &Value) -> StreamEvent {
    let item = &value["item"];
    match text(value, "type") {
        "turn.started" => StreamEvent {
            begins_turn: true,
            ..StreamEvent::default()
        },
        // Older versions call the item's type `item_type` and the message `assistant_message`.
        "item.completed"
            if ["type", "item_type"]
                .iter()
                .any(|name| matches!(text(item, name), "agent_message" | "assistant_message")) =>
        {
            StreamEvent {
                words: Some((text(item, "text").to_owned(), false)),
                ..StreamEvent::default()
            }
        }
        "item.completed" if text(item, "type") == "command_execution" => {
            let call = text(item, "id").to_owned();
            StreamEvent {
                asked: vec![(call.clone(), printed_by(text(item, "command")))],
                answered: vec![(call, item["exit_code"] == 0)],
                ..StreamEvent::default()
            }
        }
        "turn.completed" => StreamEvent {
            end: Some(Ok(())),
            ..StreamEvent::default()
        },
        "turn.failed" | "error" => StreamEvent {
            end: Some(Err("its turn failed".to_owned())),
            ..StreamEvent::default()
        },
        _ => StreamEvent::default(),
    }
}
