//! The three wire formats in which services stream an answer: Anthropic Messages, OpenAI Responses and Gemini. The
//! script decides the content.

use serde_json::{Value, json};

use super::script::{Answer, Call, Failure};

/// The wire format of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    Anthropic,
    OpenAi,
    Gemini,
}

impl Wire {
    /// Returns the format of a request to this path, if it asks for a streamed answer.
    pub(super) fn of(path: &str) -> Option<Self> {
        let path = path.split('?').next().unwrap_or_default();
        if path.ends_with("/messages") {
            Some(Self::Anthropic)
        } else if path.ends_with("/responses") {
            Some(Self::OpenAi)
        } else if path.ends_with(":streamGenerateContent") {
            Some(Self::Gemini)
        } else {
            None
        }
    }

    /// Counts the answers in the conversation of a request: consecutive items of the model count as one.
    pub(super) fn answers(self, request: &Value) -> usize {
        let (items, is_models): (_, fn(&Value) -> bool) = match self {
            Self::Anthropic => (&request["messages"], |item| item["role"] == "assistant"),
            Self::OpenAi => (&request["input"], |item| {
                item["role"] == "assistant"
                    || matches!(
                        item["type"].as_str(),
                        Some("function_call" | "custom_tool_call" | "reasoning")
                    )
            }),
            Self::Gemini => (&request["contents"], |item| item["role"] == "model"),
        };
        let mut count = 0;
        let mut was_models = false;
        for item in items.as_array().into_iter().flatten() {
            let is_models = is_models(item);
            count += usize::from(is_models && !was_models);
            was_models = is_models;
        }
        count
    }

    /// Returns the names of the tools that a request offers. A request without tools is internal to the program.
    pub(super) fn tools(self, request: &Value) -> Vec<String> {
        let lists: Vec<&Value> = match self {
            Self::Anthropic | Self::OpenAi => vec![&request["tools"]],
            Self::Gemini => {
                let tools = request["tools"].as_array().into_iter().flatten();
                tools.map(|tool| &tool["functionDeclarations"]).collect()
            }
        };
        let named = lists.into_iter().filter_map(Value::as_array).flatten();
        let mut names = Vec::new();
        for tool in named {
            let name = tool["name"].as_str().or(tool["type"].as_str());
            names.extend(name.map(str::to_owned));
            // Codex puts the tools of a server into a namespace.
            for inner in tool["tools"].as_array().into_iter().flatten() {
                if let (Some(outer), Some(inner)) = (name, inner["name"].as_str()) {
                    names.push(format!("{outer}{NAMESPACE}{inner}"));
                }
            }
        }
        names
    }

    /// Returns the document of an error.
    pub(super) fn failure(self, failure: &Failure) -> Value {
        let Failure {
            status,
            kind,
            message,
        } = failure;
        match self {
            Self::Anthropic => {
                json!({"type": "error", "error": {"type": kind, "message": message}})
            }
            Self::OpenAi => {
                json!({"error": {"type": kind, "message": message, "code": kind,
                "plan_type": "plus", "resets_in_seconds": 3600}})
            }
            Self::Gemini if *status == 429 => {
                json!({"error": {"code": status, "status": kind, "message": message, "details": [{
                    "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                    "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}]
                }]}})
            }
            Self::Gemini => {
                json!({"error": {"code": status, "status": kind, "message": message}})
            }
        }
    }

    /// Returns the streamed events of an answer.
    pub(super) fn events(self, answer: &Answer, tools: &[String], id: usize) -> Vec<String> {
        let text = answer.say.join("\n");
        match self {
            Self::Anthropic => anthropic(&text, answer, tools, id),
            Self::OpenAi => open_ai(&text, answer, tools, id),
            Self::Gemini => gemini(&text, answer, tools),
        }
    }
}

/// The separator between a namespace and a tool in it.
const NAMESPACE: &str = "::";

/// The name under which a program offers a tool of `settled mcp`.
fn mcp_name(tools: &[String], tool: &str) -> String {
    let is_it = |name: &&String| name.ends_with(tool) && name.contains("settled");
    let found = tools.iter().find(is_it);
    found.cloned().unwrap_or_else(|| tool.to_owned())
}

fn arguments(json: &str) -> Value {
    serde_json::from_str(json).expect("a script holds JSON")
}

fn event(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

fn anthropic(text: &str, answer: &Answer, tools: &[String], id: usize) -> Vec<String> {
    let is_offered = |name: &str| tools.iter().any(|tool| tool == name);
    let mut blocks: Vec<(Value, Value)> = Vec::new();
    let by_schema = answer
        .json
        .as_deref()
        .filter(|_| is_offered("StructuredOutput"));
    let text = match (&answer.json, by_schema) {
        (Some(json), None) => json,
        _ => text,
    };
    if !text.is_empty() {
        blocks.push((
            json!({"type": "text", "text": ""}),
            json!({"type": "text_delta", "text": text}),
        ));
    }
    let claude = is_offered("Bash") || is_offered("Read");
    let mcp = match &answer.call {
        Some(Call::Mcp(tool, _)) => mcp_name(tools, tool),
        Some(Call::Shell(_) | Call::Read(_) | Call::Write(..)) | None => String::new(),
    };
    let call = match &answer.call {
        Some(Call::Mcp(_, json)) => Some((mcp.as_str(), arguments(json))),
        Some(Call::Shell(command)) => Some((
            if claude { "Bash" } else { "bash" },
            json!({"command": command, "description": "scripted"}),
        )),
        Some(Call::Read(file)) if claude => Some(("Read", json!({"file_path": file}))),
        Some(Call::Read(file)) => Some(("read", json!({"filePath": file}))),
        Some(Call::Write(file, text)) if claude => {
            Some(("Write", json!({"file_path": file, "content": text})))
        }
        Some(Call::Write(file, text)) => {
            Some(("write", json!({"filePath": file, "content": text})))
        }
        None => None,
    };
    let structured = by_schema.map(|json| {
        let document = serde_json::from_str(json).unwrap_or(Value::Null);
        ("StructuredOutput", document)
    });
    for (at, (name, input)) in call.into_iter().chain(structured).enumerate() {
        blocks.push((
            json!({"type": "tool_use", "id": format!("toolu_{id:04}{at}"), "name": name, "input": {}}),
            json!({"type": "input_json_delta", "partial_json": input.to_string()}),
        ));
    }
    let is_call = blocks.iter().any(|(begin, _)| begin["type"] == "tool_use");
    let usage = json!({"input_tokens": 10, "output_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0});
    let mut events = vec![event(
        "message_start",
        &json!({"type": "message_start", "message": {
            "id": format!("msg_{id:04}"), "type": "message", "role": "assistant", "model": "claude-opus-5-5",
            "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage}}),
    )];
    for (index, (begin, delta)) in blocks.iter().enumerate() {
        for (name, part, value) in [
            ("content_block_start", "content_block", Some(begin)),
            ("content_block_delta", "delta", Some(delta)),
            ("content_block_stop", "", None),
        ] {
            let mut data = json!({"type": name, "index": index});
            if let Some(value) = value {
                data[part] = value.clone();
            }
            events.push(event(name, &data));
        }
    }
    let reason = if is_call { "tool_use" } else { "end_turn" };
    events.push(event(
        "message_delta",
        &json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null},
            "usage": {"output_tokens": 5}}),
    ));
    events.push(event("message_stop", &json!({"type": "message_stop"})));
    events
}

fn open_ai(text: &str, answer: &Answer, tools: &[String], id: usize) -> Vec<String> {
    let mut items = Vec::new();
    let text = answer.json.as_deref().unwrap_or(text);
    if !text.is_empty() {
        items.push(json!({"type": "message", "role": "assistant", "id": format!("msg_{id}"), "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}]}));
    }
    let line = match &answer.call {
        Some(Call::Shell(command)) => Some(command.clone()),
        Some(Call::Read(file)) => Some(format!("cat {file}")),
        Some(Call::Write(file, text)) => Some(format!("printf '%s\\n' '{text}' > {file}")),
        Some(Call::Mcp(tool, json)) => {
            let name = mcp_name(tools, tool);
            let mut item = json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": format!("call_{id}"),
                "name": name, "arguments": json, "status": "completed"});
            if let Some((namespace, name)) = name.split_once(NAMESPACE) {
                item["namespace"] = namespace.into();
                item["name"] = name.into();
            }
            items.push(item);
            None
        }
        None => None,
    };
    if let Some(line) = line {
        let is_offered = |name: &str| tools.iter().any(|tool| tool == name);
        let (name, arguments) = if is_offered("exec_command") {
            ("exec_command", json!({"cmd": line}))
        } else if is_offered("shell_command") {
            ("shell_command", json!({"command": line}))
        } else {
            ("shell", json!({"command": ["bash", "-lc", line]}))
        };
        items.push(json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": format!("call_{id}"),
            "name": name, "arguments": arguments.to_string(), "status": "completed"}));
    }
    let response = format!("resp_{id}");
    let mut events = vec![event(
        "response.created",
        &json!({"type": "response.created", "response": {"id": response}}),
    )];
    for (index, item) in items.iter().enumerate() {
        for name in ["response.output_item.added", "response.output_item.done"] {
            events.push(event(
                name,
                &json!({"type": name, "output_index": index, "item": item}),
            ));
        }
    }
    events.push(event(
        "response.completed",
        &json!({"type": "response.completed", "response": {"id": response, "status": "completed", "output": items,
            "usage": {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 5,
                "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 15}}}),
    ));
    events
}

fn gemini(text: &str, answer: &Answer, tools: &[String]) -> Vec<String> {
    let chunk = |parts: &Value, reason: Option<&str>| {
        let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
        if let Some(reason) = reason {
            candidate["finishReason"] = reason.into();
        }
        let data = json!({"candidates": [candidate], "modelVersion": "gemini-2.5-pro",
            "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}});
        format!("data: {data}\r\n\r\n")
    };
    let text = answer.json.as_deref().unwrap_or(text);
    let mut events = Vec::new();
    // In two pieces, as the real service sends it.
    let half = (text.len() / 2..text.len())
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0);
    let (begin, rest) = text.split_at(half);
    for piece in [begin, rest].into_iter().filter(|piece| !piece.is_empty()) {
        events.push(chunk(&json!([{"text": piece}]), None));
    }
    let call = answer.call.as_ref().map(|call| match call {
        Call::Shell(command) => json!({"name": "run_shell_command",
            "args": {"command": command, "description": "scripted"}}),
        Call::Read(file) => json!({"name": "read_file", "args": {"file_path": file}}),
        Call::Write(file, text) => {
            json!({"name": "write_file", "args": {"file_path": file, "content": text}})
        }
        Call::Mcp(tool, json) => json!({"name": mcp_name(tools, tool), "args": arguments(json)}),
    });
    let parts = call.map_or_else(|| json!([]), |call| json!([{"functionCall": call}]));
    events.push(chunk(&parts, Some("STOP")));
    events
}
