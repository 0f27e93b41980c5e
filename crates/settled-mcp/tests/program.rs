//! The program as a client starts it, with a stand-in for `settled`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

const SETTLED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/settled");

/// The file in which the stand-in counts.
fn asked() -> PathBuf {
    let name = format!("asked-{}", std::process::id());
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn start(words: &[&str]) -> Child {
    let mut server = Command::new(env!("CARGO_BIN_EXE_settled-mcp"));
    server
        .args(words)
        .env("ASKED", asked())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    server.spawn().expect("the program can be run")
}

fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn initialize() -> Value {
    let client = json!({"name": "t", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    request(0, "initialize", &params)
}

fn notification(method: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": method})
}

/// Writes the messages, one on a line.
fn write(server: &mut Child, messages: &[Value]) {
    let lines: String = messages.iter().map(|line| format!("{line}\n")).collect();
    let input = server.stdin.as_mut().expect("it was piped");
    input.write_all(lines.as_bytes()).expect("it reads");
}

/// The replies to these messages, by their id, after which the server ends well.
fn replies(words: &[&str], messages: &[Value]) -> Vec<Value> {
    let mut server = start(words);
    write(&mut server, messages);
    let output = server.wait_with_output().expect("it is our child");
    assert!(output.status.success(), "{output:?}");
    let lines = String::from_utf8(output.stdout).expect("text");
    let mut replies: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    replies.sort_by_key(|reply| reply["id"].as_u64());
    replies
}

#[test]
fn every_request_is_answered_although_the_client_sends_nothing_more() {
    let call = |id, tool: &str, arguments: &Value| {
        let params = json!({"name": tool, "arguments": arguments});
        request(id, "tools/call", &params)
    };
    let file = |pr: u64, n: u64| json!({"pr": pr, "what": "diff", "n": n});
    let replies = replies(
        &[SETTLED],
        &[
            initialize(),
            notification("notifications/initialized"),
            request(1, "tools/list", &json!({})),
            call(2, "next", &json!({})),
            call(3, "show", &file(86, 2)),
            call(4, "show", &file(86, 3)),
            call(5, "show", &file(87, 1)),
            call(6, "next", &json!({"act": "take"})),
            request(7, "tools/call", &json!({"name": 5})),
            request(8, "prompts/none", &json!({})),
        ],
    );
    assert_eq!(replies.len(), 9, "{replies:#?}");
    assert_eq!(replies[0]["result"]["capabilities"], json!({"tools": {}}));
    let tools = replies[1]["result"]["tools"].as_array().expect("tools");
    let names: Vec<&Value> = tools.iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["next", "show", "send", "wait", "why"]);

    let answer = |id: usize| {
        let result = &replies[id]["result"];
        let text = result["content"][0]["text"].as_str().expect("a text");
        let document: Value = serde_json::from_str(text).expect("JSON");
        (result["isError"] == true, document)
    };
    let data = |data: Value| (false, json!({"ok": true, "data": data}));
    assert_eq!(answer(2), data(json!({"agent": "codex"})));
    assert_eq!(answer(3), data(json!("the second file")));
    let refusal = |id| {
        let (is_error, document) = answer(id);
        assert!(is_error, "{document}");
        ["code", "field", "message"].map(|key| document["error"][key].clone())
    };
    assert_eq!(
        refusal(4),
        ["not_found", "n", "the change has no file number 3"]
    );
    assert_eq!(refusal(5), ["not_found", "pr", "no such pull request"]);
    assert_eq!(
        refusal(6),
        ["argument_invalid", "id", "`act` and `id` go together"]
    );
    let error = |id: usize| &replies[id]["error"]["code"];
    assert_eq!([error(7), error(8)], [-32602, -32601]);
}

#[test]
fn a_session_with_a_doorbell_is_told_of_the_mail_that_waits() {
    let _ = std::fs::remove_file(asked());
    let mut server = start(&[SETTLED, "--doorbell"]);
    let first = [initialize(), notification("notifications/initialized")];
    write(&mut server, &first);
    let output = server.stdout.take().expect("it was piped");
    let lines = BufReader::new(output).lines();
    let told: Vec<Value> = lines
        .take(2)
        .map(|line| serde_json::from_str(&line.expect("text")).expect("JSON"))
        .collect();
    let channel = json!({"claude/channel": {}});
    assert_eq!(
        told[0]["result"]["capabilities"],
        json!({"tools": {}, "experimental": channel})
    );
    // Not the second ring, which would come to two.
    assert_eq!(
        told[1],
        json!({
            "jsonrpc": "2.0",
            "method": "notifications/claude/channel",
            "params": {"content": "1 message waits for you, among them a question on #86. Call the tool next."},
        })
    );
    let output = server.wait_with_output().expect("it is our child");
    assert!(output.status.success(), "{output:?}");
    std::fs::remove_file(asked()).expect("the stand-in counted there");
}

#[test]
fn a_program_that_is_not_started_by_settled_says_how_to() {
    for words in [&[][..], &[SETTLED, "--bell"], &[SETTLED, "--doorbell", "x"]] {
        let output = start(words).wait_with_output().expect("it is our child");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            (output.status.code(), &*said),
            (Some(1), "settled-mcp: start it as `settled mcp`\n"),
            "{words:?}"
        );
    }
}
