//! `claude -p --output-format stream-json --verbose`: an `assistant` line for each piece of a model's answer, all
//! pieces under the same message id, and at the end one `result`.

use message_schema::spend::Spend;
use serde_json::Value;

use super::cause::{Cause, failure, retry_in_document};
use super::reads::printed_by;
use super::spend::{SpendReport, dollars, sum};
use super::{StreamEvent, text};

/// The model of messages that the program itself writes about an error.
const NO_MODEL: &str = "<synthetic>";

/// Reads one line. A turn is one answer of the model in the main conversation; answers of helpers name the tool call
/// that started them.
pub(super) fn read(value: &Value, last: &mut Option<String>) -> StreamEvent {
    let asked = asked(value);
    match text(value, "type") {
        "assistant" if value["message"]["model"] == NO_MODEL => StreamEvent::default(),
        "assistant" if value.get("parent_tool_use_id").is_none_or(Value::is_null) => {
            let id = value["message"]["id"].as_str().map(str::to_owned);
            let begins_turn = id.is_none() || id != *last;
            *last = id;
            StreamEvent {
                begins_turn,
                asked,
                spend: answer(value),
                ..StreamEvent::default()
            }
        }
        // Files that a helper reads count for the agent that called it.
        "assistant" => StreamEvent {
            asked,
            spend: answer(value),
            ..StreamEvent::default()
        },
        "user" => StreamEvent {
            answered: answered(value),
            ..StreamEvent::default()
        },
        "rate_limit_event" if value["rate_limit_info"]["status"] == "rejected" => StreamEvent {
            cause: Some(Cause::Quota {
                retry: retry_in_document(value),
            }),
            ..StreamEvent::default()
        },
        "result" => result(value),
        _ => StreamEvent::default(),
    }
}

/// The tokens of an answer. The program reports them at its beginning, before most of it is written.
fn answer(value: &Value) -> Option<SpendReport> {
    Some(SpendReport::Answer {
        helper: text(value, "parent_tool_use_id").to_owned(),
        id: value["message"]["id"].as_str()?.to_owned(),
        spend: used(&value["message"]["usage"]),
    })
}

fn used(usage: &Value) -> Spend {
    let fields = [
        "input_tokens",
        "cache_creation_input_tokens",
        "cache_read_input_tokens",
        "output_tokens",
    ];
    Spend::tokens(sum(usage, &fields))
}

/// `usage` in the result leaves helpers out; `modelUsage` and the cost include them.
fn total(value: &Value) -> SpendReport {
    let fields = [
        "inputTokens",
        "cacheCreationInputTokens",
        "cacheReadInputTokens",
        "outputTokens",
    ];
    let models = value["modelUsage"].as_object().into_iter().flatten();
    let tokens = models.map(|(_, model)| sum(model, &fields));
    SpendReport::Total {
        own: used(&value["usage"]),
        whole: Spend {
            tokens: tokens.fold(0, u64::saturating_add),
            micro_usd: dollars(&value["total_cost_usd"]),
        },
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

/// Reads the result. Structured output has its own field, which takes precedence.
fn result(value: &Value) -> StreamEvent {
    let is_error =
        value["is_error"].as_bool().unwrap_or(false) || text(value, "subtype") != "success";
    let end = if is_error {
        let status = value["api_error_status"].as_u64();
        let words = value["errors"][0].as_str().unwrap_or(text(value, "result"));
        Err(failure(status, words))
    } else {
        Ok(())
    };
    let structured = value
        .get("structured_output")
        .filter(|output| output.is_object());
    let words = structured.map_or_else(|| text(value, "result").to_owned(), Value::to_string);
    // The program's words about an error are no answer.
    let words = if is_error { String::new() } else { words };
    StreamEvent {
        words: Some((words, false)),
        end: Some(end),
        spend: Some(total(value)),
        ..StreamEvent::default()
    }
}
