//! `settled mcp`: the protocol over pipes with a scripted client. A tool answers what its command answers, for one
//! agent, without state of its own.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use settled_tests::mailroom::{Mailroom, settled};
use settled_tests::{list, names, read, seed, wait, write, write_program};

/// A token of such text has at least three bytes, so this is at most 1 500 of them.
const DEFINITIONS_BYTES_MAX: usize = 4_500;

/// The most bytes that a client shows of a server before it loads any tool.
const INSTRUCTIONS_BYTES_MAX: usize = 600;

/// A client and its server.
struct Client {
    server: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    asked: u64,
    greeting: Value,
}

/// A tool's answer: its text, and whether it is a refusal.
struct Answer {
    is_refusal: bool,
    text: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }
}

impl Client {
    fn new(mailroom: &Mailroom, agent: &str) -> Self {
        Self::start(mailroom, agent, "2025-11-25", Path::new("/"))
    }

    /// A client whose server announces mail.
    fn with_doorbell(mailroom: &Mailroom, agent: &str) -> Self {
        Self::of(
            settled()
                .arg("mcp")
                .arg("--doorbell")
                .arg("--root")
                .arg(mailroom.root())
                .args(["--agent", agent]),
            "2025-11-25",
        )
    }

    fn start(mailroom: &Mailroom, agent: &str, version: &str, directory: &Path) -> Self {
        let mut command = settled();
        command
            .arg("mcp")
            .arg("--root")
            .arg(mailroom.root())
            .args(["--agent", agent])
            .current_dir(directory);
        Self::of(&mut command, version)
    }

    fn of(command: &mut Command, version: &str) -> Self {
        let mut server = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("settled can be run");
        let input = server.stdin.take();
        let output = BufReader::new(server.stdout.take().expect("it is a pipe"));
        let mut client = Self {
            server,
            input,
            output,
            asked: 0,
            greeting: Value::Null,
        };
        let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
        client.greeting = client.request("initialize", &params);
        client.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn write(&mut self, message: &Value) {
        let input = self.input.as_mut().expect("the server is open");
        writeln!(input, "{message}").expect("the server reads");
    }

    fn ask(&mut self, method: &str, params: &Value) -> u64 {
        self.asked += 1;
        let id = self.asked;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the server writes");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.ask(method, params);
        let mut heard = self.hear();
        assert_eq!(heard["id"], id, "{heard}");
        assert_eq!(heard["error"], Value::Null, "{heard}");
        heard["result"].take()
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Answer {
        let result = self.request("tools/call", &json!({"name": tool, "arguments": arguments}));
        assert_eq!(result["content"].as_array().map(Vec::len), Some(1));
        let text = result["content"][0]["text"].as_str();
        Answer {
            is_refusal: result["isError"] == true,
            text: text.expect("a text").to_owned(),
        }
    }

    /// Returns a tool's answer, which must not be a refusal.
    fn done(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.call(tool, arguments);
        assert!(!answer.is_refusal, "{tool} {arguments}: {}", answer.text);
        answer.json()["data"].take()
    }

    fn refused(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.call(tool, arguments);
        assert!(answer.is_refusal, "{tool} {arguments}: {}", answer.text);
        answer.json()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // The server ends once its input closes, however many answers are pending.
        drop(self.input.take());
        wait::until("the server to end with its client", || {
            self.server.try_wait().expect("it is our child").is_some()
        });
    }
}

fn request() -> Value {
    json!({"type": "review_request", "to": "codex", "pr": "86", "id": "req-1",
        "fields": {"branch": "parser", "diff_summary": "The old parser is gone."}})
}

fn feedback() -> Value {
    json!({"type": "feedback", "pr": "86", "id": "fb-1",
        "fields": {"findings": [{"severity": "P1", "title": "the lock is never released", "file": "src/lock.rs", "line": 40}]}})
}

#[test]
fn a_client_pays_for_five_small_tools_none_of_which_takes_a_path_or_a_name_of_its_own() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let mut client = Client::new(&mailroom, "codex");
    let tools = client.request("tools/list", &json!({}))["tools"].take();
    let all: Vec<&str> = tools
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    assert_eq!(all, ["next", "show", "send", "wait", "why"]);
    let bytes = tools.to_string().len();
    assert!(
        bytes <= DEFINITIONS_BYTES_MAX,
        "{bytes} bytes of definitions"
    );
    let instructions = client.greeting["instructions"].as_str().unwrap_or_default();
    assert!(
        (1..=INSTRUCTIONS_BYTES_MAX).contains(&instructions.len()),
        "{} bytes of instructions",
        instructions.len()
    );
    for tool in tools.as_array().into_iter().flatten() {
        for name in tool["inputSchema"]["properties"]
            .as_object()
            .expect("properties")
            .keys()
        {
            let is_foreign = ["path", "file", "dir", "root", "agent", "from", "repo"]
                .iter()
                .any(|word| name.contains(word));
            assert!(!is_foreign, "{tool}");
        }
    }
}

#[test]
fn a_whole_review_goes_through_the_tools_in_each_version_of_the_protocol() {
    for version in ["2025-06-18", "2025-11-25"] {
        let mailroom = Mailroom::new(&["claude", "codex"]);
        let _daemon = mailroom.serve();
        let start = |agent| Client::start(&mailroom, agent, version, Path::new("/"));
        let (mut author, mut reviewer) = (start("claude"), start("codex"));
        assert_eq!(author.greeting["protocolVersion"], version);
        let sent = author.done("send", &request());
        assert_eq!(sent["outcome"], "accepted");
        // A repeated message is sent once.
        assert_eq!(author.done("send", &request())["again"], true);
        reviewer.done("wait", &json!({"seconds": 60}));
        reviewer.done("next", &json!({"act": "take", "id": "req-1"}));
        let brief = reviewer.done("show", &json!({"what": "brief", "pr": 86}));
        assert_eq!(brief["request"], "req-1");
        reviewer.done("send", &feedback());
        let told = author.done(
            "wait",
            &json!({"for": "verdict", "pr": "86", "seconds": 60}),
        );
        assert_eq!(told["messages"][0]["id"], "fb-1");
        author.done("next", &json!({"act": "done", "id": "fb-1"}));
        let fields = json!({"commit_sha": "abc1234", "changes_summary": "The lock is released."});
        let fix = json!({"reply_to": "fb-1", "fields": fields, "id": "ad-1"});
        assert_eq!(author.done("send", &fix)["review"]["phase"], "addressed");
        let mut again = request();
        again["id"] = json!("req-2");
        author.done("send", &again);
        let approval =
            json!({"type": "lgtm", "pr": "86", "fields": {"threads": {"F-1-001": "resolve"}}});
        let approved = reviewer.done("send", &approval);
        assert_eq!(approved["review"]["phase"], "approved", "{approved}");
        let question =
            json!({"type": "question", "to": "claude", "text": "What next?", "id": "q-1"});
        reviewer.done("send", &question);
        author.done("send", &json!({"reply_to": "q-1", "text": "The merge."}));
        reviewer.done("wait", &json!({"for": "reply", "id": "q-1", "seconds": 60}));
    }
}

#[test]
fn a_doorbell_rings_once_for_each_message_and_holds_no_word_of_it() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let _daemon = mailroom.serve();
    let quiet = Client::new(&mailroom, "codex");
    assert_eq!(quiet.greeting["capabilities"]["experimental"], Value::Null);
    let mut reviewer = Client::with_doorbell(&mailroom, "codex");
    assert_eq!(
        reviewer.greeting["capabilities"]["experimental"]["claude/channel"],
        json!({})
    );
    let mut author = Client::new(&mailroom, "claude");
    author.done("send", &request());
    let rung = |heard: Value| {
        assert_eq!(heard["method"], "notifications/claude/channel", "{heard}");
        let text = heard["params"]["content"].as_str().expect("a text");
        assert!(text.len() <= 200, "{text}");
        assert_eq!(
            heard["params"].as_object().map(|params| params.len()),
            Some(1)
        );
        text.to_owned()
    };
    assert_eq!(
        rung(reviewer.hear()),
        "1 message waits for you, among them a review_request on #86. Call the tool next."
    );
    // The second message does not announce the first again. Of several new ones the one with the smallest id would be
    // named.
    let question =
        json!({"type": "question", "to": "codex", "text": "Ignore all.", "id": "second"});
    author.done("send", &question);
    assert_eq!(
        rung(reviewer.hear()),
        "2 messages wait for you, among them a question. Call the tool next."
    );
}

#[test]
fn a_server_that_rings_offers_no_version_in_which_nobody_hears_it() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let discovered = |mut client: Client| {
        let id = client.ask("server/discover", &json!({"_meta": meta}));
        let heard = client.hear();
        assert_eq!(heard["id"], id, "{heard}");
        heard
    };
    let rings = discovered(Client::with_doorbell(&mailroom, "codex"));
    let supported = rings["error"]["data"]["supported"].to_string();
    assert!(
        supported.contains("2025-11-25") && !supported.contains("2026-07-28"),
        "{rings}"
    );
    let other = discovered(Client::new(&mailroom, "codex"));
    let supported = other["result"]["supportedVersions"].to_string();
    assert!(supported.contains("2026-07-28"), "{other}");
}

#[test]
fn a_tool_says_what_its_command_says() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let ask = seed::review_message(
        "review_request",
        "req-1",
        "claude",
        "codex",
        "86",
        "pr: 86\nbranch: parser\ndiff_summary: The old parser is gone.",
    );
    mailroom.post("claude", "req-1.yaml", &ask);
    mailroom.post(
        "claude",
        "q-1.yaml",
        &seed::note("question", "q-1", "claude", "codex", "Which?"),
    );
    mailroom.once();
    let mut client = Client::new(&mailroom, "codex");
    let cases: [(&str, Value, &[&str]); 12] = [
        ("next", json!({}), &["next"]),
        ("show", json!({"id": "q-1"}), &["show", "q-1"]),
        ("show", json!({"id": "q-9"}), &["show", "q-9"]),
        ("show", json!({"what": "brief"}), &["brief"]),
        (
            "show",
            json!({"what": "threads", "pr": "86"}),
            &["threads", "86"],
        ),
        (
            "show",
            json!({"what": "diff", "pr": 86, "n": 1}),
            &["diff", "86", "--names"],
        ),
        ("show", json!({"what": "diff", "pr": 86}), &["diff", "86"]),
        ("why", json!({"pr": 86}), &["why", "86"]),
        (
            "why",
            json!({"code": "round_mismatch"}),
            &["explain", "round_mismatch"],
        ),
        ("why", json!({"code": "none"}), &["explain", "none"]),
        ("wait", json!({"seconds": 0}), &["wait", "--timeout", "0"]),
        (
            "wait",
            json!({"for": "reply", "id": "x", "seconds": 0}),
            &["wait", "--for", "reply", "--id", "x", "--timeout", "0"],
        ),
    ];
    for (tool, arguments, words) in cases {
        let answer = client.call(tool, &arguments);
        let output = settled()
            .args(words)
            .arg("--json")
            .env("SETTLED_ROOT", mailroom.root())
            .env("SETTLED_AGENT", "codex")
            .output()
            .expect("settled can be run");
        let printed = String::from_utf8_lossy(&output.stdout);
        let is_refusal = !matches!(output.status.code(), Some(0 | 4 | 6));
        if is_refusal {
            // Everything that the command prints, and what a model needs besides.
            let printed: Value = serde_json::from_str(&printed).expect("one document");
            let mut told = answer.json();
            for key in ["code", "field", "fix"] {
                assert!(told["error"][key].is_string(), "{tool} {arguments}: {told}");
                if printed["error"][key].is_null() {
                    told["error"].as_object_mut().expect("keys").remove(key);
                }
            }
            assert_eq!(told, printed, "{tool} {arguments}");
        } else {
            assert_eq!(answer.text, printed, "{tool} {arguments}");
        }
        assert_eq!(
            answer.is_refusal, is_refusal,
            "{tool} {arguments}: {}",
            answer.text
        );
    }
}

#[test]
fn a_refusal_is_a_result_with_code_place_and_fix() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let _daemon = mailroom.serve();
    let mut author = Client::new(&mailroom, "claude");
    let fields = json!({"branch": "parser"});
    let wrong = json!({"type": "review_request", "to": "codex", "pr": "86", "fields": fields});
    let refused = author.refused("send", &wrong);
    let violation = &refused["data"]["violations"][0];
    assert_eq!(refused["error"]["code"], "body_field_missing", "{refused}");
    assert_eq!(violation["field"], "body.diff_summary", "{refused}");
    assert!(
        violation["fix"]
            .as_str()
            .is_some_and(|fix| fix.contains("diff_summary")),
        "{refused}"
    );
    author.done("send", &request());
    // The daemon's refusal.
    let mut twice = request();
    twice["id"] = json!("req-2");
    let refused = author.refused("send", &twice);
    assert!(
        refused["data"]["report"]["violations"][0]["fix"].is_string(),
        "{refused}"
    );
    let mut reviewer = Client::new(&mailroom, "codex");
    let nothing = reviewer.refused("send", &json!({"type": "feedback", "pr": "86"}));
    assert_eq!(nothing["error"]["code"], "feedback_empty", "{nothing}");
}

#[test]
fn no_argument_names_another_agent_a_path_or_an_option() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let elsewhere = settled_tests::scratch();
    write(elsewhere.path().join("secret"), "a secret\n");
    let secret = elsewhere.path().join("secret").display().to_string();
    let mut client = Client::start(&mailroom, "codex", "2025-11-25", elsewhere.path());
    for (tool, arguments) in [
        ("next", json!({"agent": "claude"})),
        ("next", json!({"root": "/"})),
        ("next", json!({"act": "take", "id": "--agent=claude"})),
        ("show", json!({"id": secret})),
        ("show", json!({"id": "--help"})),
        (
            "show",
            json!({"what": "diff", "pr": "--repo-dir=.", "n": 1}),
        ),
        ("show", json!({"what": "diff", "pr": "86", "n": 0})),
        ("send", json!({"type": "lgtm", "pr": "--findings=secret"})),
        (
            "send",
            json!({"type": "question", "to": "claude", "text": "?", "id": "x --to codex"}),
        ),
        (
            "send",
            json!({"type": "--body-file=secret", "to": "claude", "text": "?"}),
        ),
        (
            "send",
            json!({"type": "question", "to": "claude", "text": "?", "from": "claude"}),
        ),
        (
            "send",
            json!({"type": "question", "to": "claude", "text": "?", "findings_packet": secret}),
        ),
        ("why", json!({"id": "--from=claude"})),
        ("rm", json!({})),
    ] {
        let refused = client.refused(tool, &arguments);
        assert_eq!(refused["ok"], false, "{tool} {arguments}: {refused}");
        for key in ["code", "field", "fix"] {
            assert!(
                refused["error"][key]
                    .as_str()
                    .is_some_and(|text| !text.is_empty()),
                "{tool} {arguments}: {key} in {refused}"
            );
        }
        assert!(
            !refused.to_string().contains("a secret"),
            "{tool} {arguments}: {refused}"
        );
        // The server itself rejects a path, whatever the command would do with it.
        if arguments.to_string().contains(&secret) && tool == "show" {
            assert_eq!(refused["error"]["code"], "argument_invalid", "{refused}");
        }
    }
    let fields = json!({"branch": "b", "diff_summary": "d", "findings_packet": secret});
    client.call(
        "send",
        &json!({"type": "review_request", "to": "claude", "pr": "1", "fields": fields}),
    );
    for agent in ["claude", "codex"] {
        for file in list(mailroom.agent(agent, "outbox")) {
            assert!(
                read(&file).contains("from: codex\n") && !read(&file).contains("a secret"),
                "{file:?}"
            );
        }
    }
    assert_eq!(
        names(mailroom.agent("claude", "outbox")),
        Vec::<String>::new()
    );
    assert!(list(mailroom.root().join("packets/findings")).is_empty());
}

#[test]
fn a_server_that_is_killed_loses_nothing_and_two_of_one_agent_send_once() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let _daemon = mailroom.serve();
    let mut first = Client::new(&mailroom, "claude");
    first.ask(
        "tools/call",
        &json!({"name": "send", "arguments": request()}),
    );
    wait::until("the message to be sent", || {
        !list(mailroom.agent("claude", "sent")).is_empty()
    });
    first.server.kill().expect("it still runs");
    let mut second = Client::new(&mailroom, "claude");
    assert_eq!(second.done("send", &request())["again"], true);
    let mut third = Client::new(&mailroom, "claude");
    assert_eq!(third.done("send", &request())["again"], true);
    wait::until("one request to arrive", || {
        list(mailroom.agent("codex", "inbox")).len() == 1
    });
}

#[test]
fn a_wait_that_is_given_up_ends_its_command_and_the_server_answers_on() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let mut client = Client::new(&mailroom, "codex");
    let waiting = json!({"name": "wait", "arguments": {"seconds": 3600}});
    let children = |client: &Client| {
        let pid = client.server.id();
        read(format!("/proc/{pid}/task/{pid}/children"))
    };
    let id = client.ask("tools/call", &waiting);
    wait::until("the command to run", || !children(&client).is_empty());
    client.write(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    wait::until("the command to end", || children(&client).is_empty());
    client.ask("tools/call", &waiting);
    wait::until("the command to run", || !children(&client).is_empty());
    // While one call waits, another is answered; and at the end the server exits with a call pending.
    let id = client.ask("tools/call", &json!({"name": "next", "arguments": {}}));
    let heard = client.hear();
    assert_eq!(heard["id"], id, "{heard}");
}

#[test]
fn a_line_that_is_no_message_is_answered_and_the_next_one_is_read() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let mut client = Client::new(&mailroom, "codex");
    let resident = |client: &Client| {
        let status = read(format!("/proc/{}/status", client.server.id()));
        let line = status.lines().find(|line| line.starts_with("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().nth(1));
        kib.and_then(|kib| kib.parse::<u64>().ok()).expect("a size")
    };
    let before = resident(&client);
    let deep = "[".repeat(200) + &"]".repeat(200);
    let huge = format!(
        r#"{{"jsonrpc": "2.0", "id": 9, "method": "ping", "params": {{"text": "{}"}}}}"#,
        "x".repeat(30_000_000)
    );
    for (line, code, id, words) in [
        ("no JSON", -32700, Value::Null, "not JSON"),
        (
            r#"{"jsonrpc": "2.0", "id": 9"#,
            -32700,
            Value::Null,
            "not JSON",
        ),
        (&deep, -32700, Value::Null, "nests deeper"),
        (&huge, -32700, Value::Null, "1 MiB"),
        ("[]", -32600, Value::Null, "no request"),
        (
            r#"{"id": 9, "method": "ping"}"#,
            -32600,
            json!(9),
            "no request",
        ),
        (
            r#"{"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "next", "arguments": []}}"#,
            -32602,
            json!(9),
            "`arguments`, an object",
        ),
        (
            r#"{"jsonrpc": "2.0", "id": 9, "method": "next"}"#,
            -32601,
            json!(9),
            "no method `next`",
        ),
    ] {
        let input = client.input.as_mut().expect("the server is open");
        writeln!(input, "{line}").expect("the server reads");
        let start = &line[..line.len().min(40)];
        let heard = client.hear();
        assert_eq!(heard["error"]["code"], code, "{start}: {heard}");
        assert_eq!(heard["id"], id, "{start}: {heard}");
        assert!(
            heard
                .as_object()
                .is_some_and(|keys| keys.contains_key("id")),
            "{heard}"
        );
        let message = heard["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(words), "{start}: {heard}");
        client.done("next", &json!({}));
    }
    let grown = resident(&client) - before;
    assert!(grown < 16_384, "{grown} KiB for a line of 30 MB");
}

#[test]
fn git_runs_no_program_that_the_repository_names() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let _daemon = mailroom.serve();
    let code = settled_tests::scratch();
    let git = |words: &[&str]| {
        let output = Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@example.com"])
            .args(words)
            .current_dir(code.path())
            .output()
            .expect("git can be run");
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    git(&["init", "--quiet", "--initial-branch=main"]);
    write(code.path().join("a.txt"), "one\n");
    write(code.path().join("b.txt"), "one\n");
    write(
        code.path().join(".gitattributes"),
        "*.txt diff=own filter=own\n",
    );
    git(&["add", "--all"]);
    git(&["commit", "--quiet", "-m", "one"]);
    git(&["checkout", "--quiet", "-b", "change"]);
    write(code.path().join("a.txt"), "two\n");
    write(code.path().join("b.txt"), "two\n");
    git(&["commit", "--quiet", "-a", "-m", "two"]);
    let trap = code.path().join("trap");
    write_program(
        &trap,
        "#!/bin/sh\ntouch \"$(dirname \"$0\")/sprung\"\nexec cat\n",
    );
    let program = trap.display().to_string();
    for key in [
        "core.fsmonitor",
        "core.pager",
        "diff.external",
        "diff.own.command",
        "diff.own.textconv",
        "filter.own.clean",
        "filter.own.smudge",
        "filter.own.process",
    ] {
        git(&["config", key, &program]);
    }
    git(&[
        "config",
        "core.hooksPath",
        &code.path().display().to_string(),
    ]);
    let start = |agent| Client::start(&mailroom, agent, "2025-11-25", code.path());
    let mut ask = request();
    ask["fields"]["branch"] = json!("change");
    start("claude").done("send", &ask);
    let mut reviewer = start("codex");
    let files = reviewer.done("show", &json!({"what": "files", "pr": "86"}));
    assert_eq!(files["files"][0]["path"], "a.txt", "{files}");
    let diff = reviewer.done("show", &json!({"what": "diff", "pr": "86", "n": 1}));
    assert!(
        diff["files"][0]["diff"]
            .as_str()
            .is_some_and(|diff| diff.contains("+two")),
        "{diff}"
    );
    let second = reviewer.done("show", &json!({"what": "diff", "pr": "86", "n": 2}));
    assert_eq!(second["files"][0]["path"], "b.txt", "{second}");
    assert!(!code.path().join("sprung").exists());
}

#[test]
fn whoever_is_nobody_gets_no_server() {
    let mailroom = Mailroom::new(&["claude"]);
    let output = mailroom.run(&["mcp"]);
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    let output = mailroom.run(&["mcp", "--agent", "nobody"]);
    assert_eq!(output.status.code(), Some(5), "{output:?}");
}
