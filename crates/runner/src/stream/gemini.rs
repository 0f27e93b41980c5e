//! `gemini --output-format stream-json`: `message` lines with pieces of the text, `tool_use` and `tool_result`, and
//! at the end one `result`.

use message_schema::spend::Spend;
use serde_json::Value;

use super::cause::{failure, retry_in_document};
use super::reads::printed_by;
use super::spend::{SpendReport, sum};
use super::{StreamEvent, text};

/// The value of `last` while a turn of the model is in progress.
const AT_WORK: &str = "model";

/// The beginning of the message that the program stopped because the model repeats its steps.
const LOOP: &str = "Loop detected";

/// Reads one line. A turn is what the model says and asks for between two tool results; `last` is set during one.
pub(super) fn read(value: &Value, last: &mut Option<String>) -> StreamEvent {
    let mut begin = || last.replace(AT_WORK.to_owned()).is_none();
    match text(value, "type") {
        "message" if text(value, "role") == "assistant" => {
            let begins_turn = begin();
            let goes_on = value["delta"].as_bool().unwrap_or(false) && !begins_turn;
            StreamEvent {
                begins_turn,
                words: Some((text(value, "content").to_owned(), goes_on)),
                ..StreamEvent::default()
            }
        }
        "tool_use" => StreamEvent {
            begins_turn: begin(),
            asked: asked(value).into_iter().collect(),
            ..StreamEvent::default()
        },
        "tool_result" => {
            *last = None;
            let is_well = text(value, "status") == "success";
            StreamEvent {
                answered: vec![(text(value, "tool_id").to_owned(), is_well)],
                ..StreamEvent::default()
            }
        }
        // An interrupted answer is over; what comes next is another.
        "error" => {
            *last = None;
            let words = text(value, "message");
            // The result of a run that was stopped still reports success.
            let is_stopped = text(value, "severity") == "error" || words.starts_with(LOOP);
            StreamEvent {
                stopped: is_stopped.then(|| failure(None, words)),
                ..StreamEvent::default()
            }
        }
        "result" => {
            let is_well = text(value, "status") == "success";
            let end = if is_well {
                Ok(())
            } else {
                Err(failure(None, text(&value["error"], "message"))
                    .with_retry(retry_in_document(&value["error"])))
            };
            StreamEvent {
                end: Some(end),
                spend: Some(total(value)),
                ..StreamEvent::default()
            }
        }
        _ => StreamEvent::default(),
    }
}

/// The statistics cover the whole run, even a failed one.
fn total(value: &Value) -> SpendReport {
    let own = Spend::tokens(sum(&value["stats"], &["total_tokens"]));
    SpendReport::Total { own, whole: own }
}

/// The id of a tool call and the files it reads, if any.
fn asked(value: &Value) -> Option<(String, Vec<String>)> {
    let given = &value["parameters"];
    let files = match text(value, "tool_name") {
        "read_file" => ["path", "file_path", "absolute_path"]
            .iter()
            .map(|name| text(given, name).to_owned())
            .filter(|path| !path.is_empty())
            .collect(),
        "run_shell_command" => printed_by(text(given, "command")),
        _ => Vec::new(),
    };
    (!files.is_empty()).then(|| (text(value, "tool_id").to_owned(), files))
}
