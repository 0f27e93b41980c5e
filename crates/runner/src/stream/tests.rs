//! Tests outputs in the documented formats (`tests/fixtures/stream`), whole and in pieces.

use super::cause::Retry;
use super::*;

const CLAUDE: &str = include_str!("../../../../tests/fixtures/stream/claude.jsonl");
const CODEX: &str = include_str!("../../../../tests/fixtures/stream/codex.jsonl");
const GEMINI: &str = include_str!("../../../../tests/fixtures/stream/gemini.jsonl");

/// Reads an output in pieces of `piece` bytes; returns the result and the number of turns completed before its end.
fn read(form: OutputFormat, output: &str, piece: usize) -> (AgentOutput, u16) {
    let mut reader = OutputReader::new(form);
    output
        .as_bytes()
        .chunks(piece)
        .for_each(|bytes| reader.read(bytes));
    let completed = reader.completed();
    (reader.finish(), completed)
}

fn whole(form: OutputFormat, output: &str) -> AgentOutput {
    read(form, output, usize::MAX).0
}

#[test]
fn turns_and_last_words_are_read_whatever_pieces_they_come_in() {
    for (form, output, turns, text, (tokens, micro_usd)) in [
        (
            OutputFormat::Claude,
            CLAUDE,
            2,
            "Nothing is left.\n\nPASS",
            (30, 10_000),
        ),
        (
            OutputFormat::Codex,
            CODEX,
            2,
            "Nothing is left.\nPASS",
            (24_885, 0),
        ),
        (
            OutputFormat::Gemini,
            GEMINI,
            2,
            "Nothing is left.\nPASS",
            (250, 0),
        ),
    ] {
        for piece in [1, 7, 100, usize::MAX] {
            let said = AgentOutput {
                text: text.to_owned(),
                turns,
                spend: Spend { tokens, micro_usd },
                ..AgentOutput::default()
            };
            assert_eq!(
                read(form, output, piece),
                (said, turns - 1),
                "{form:?} in pieces of {piece}"
            );
        }
    }
}

#[test]
fn an_output_by_a_schema_is_the_answer() {
    let output = include_str!("../../../../tests/fixtures/stream/claude_schema.jsonl");
    assert_eq!(
        whole(OutputFormat::Claude, output).text,
        r#"{"response":{"verdict":"lgtm"}}"#
    );
}

#[test]
fn an_older_codex_is_read_too() {
    let output = include_str!("../../../../tests/fixtures/stream/codex_old.jsonl");
    assert_eq!(whole(OutputFormat::Codex, output).text, "FAIL");
}

#[test]
fn an_output_that_ends_in_an_error_or_not_at_all_is_unreadable_whatever_it_says() {
    let cut = |output: &str| {
        output
            .rsplit_once('{')
            .map_or_else(String::new, |(head, _)| head.to_owned())
    };
    for (form, output) in [
        (
            OutputFormat::Claude,
            include_str!("../../../../tests/fixtures/stream/claude_error.jsonl").to_owned(),
        ),
        (
            OutputFormat::Codex,
            include_str!("../../../../tests/fixtures/stream/codex_failed.jsonl").to_owned(),
        ),
        (
            OutputFormat::Gemini,
            include_str!("../../../../tests/fixtures/stream/gemini_failed.jsonl").to_owned(),
        ),
        (OutputFormat::Claude, cut(CLAUDE)),
        (OutputFormat::Gemini, cut(GEMINI)),
        (OutputFormat::Codex, "PASS\n".to_owned()),
        (OutputFormat::Claude, String::new()),
    ] {
        assert!(
            whole(form, &output).unreadable.is_some(),
            "{form:?}: {output}"
        );
    }
}

#[test]
fn of_text_the_last_is_kept_and_a_cut_is_told() {
    let said = whole(OutputFormat::Text, "all good\nPASS\n");
    assert_eq!(
        (said.text.as_str(), said.unreadable),
        ("all good\nPASS\n", None)
    );
    let full = "x".repeat(SAID_MAX);
    assert_eq!(whole(OutputFormat::Text, &full).unreadable, None);
    let flood = "x".repeat(SAID_MAX + 5);
    let said = whole(OutputFormat::Text, &flood);
    assert!(said.text.len() == SAID_MAX && said.unreadable.is_some());
    assert!(
        OutputReader::new(OutputFormat::Text)
            .finish()
            .unreadable
            .is_none(),
        "silence is no output to be read"
    );
}

#[test]
fn a_line_without_end_costs_no_memory_and_hides_nothing_behind_it() {
    const MIB: usize = 1024 * 1024;
    let output = format!("{}\n{CLAUDE}", "x".repeat(4 * MIB + 1));
    assert_eq!(read(OutputFormat::Claude, &output, 64 * 1024).0.turns, 2);
    for (length, turns) in [(4 * MIB, 1), (4 * MIB + 1, 0)] {
        let turn = r#"{"type":"turn.started"}"#;
        let line = format!("{turn}{}\n", " ".repeat(length - turn.len()));
        let said = read(OutputFormat::Codex, &line, 64 * 1024).0;
        assert_eq!(said.turns, turns, "a line of {length} bytes");
    }
}

/// The lines that Claude Code prints for a call that reads a file, and for its end.
fn claude_call(id: usize) -> (String, String) {
    let asked = format!(
        r#"{{"type":"assistant","message":{{"content":[{{"type":"tool_use","id":"{id}","name":"Read","input":{{"file_path":"{id}.rs"}}}}]}}}}"#
    );
    let answered = format!(
        r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"{id}"}}]}}}}"#
    );
    (asked, answered)
}

#[test]
fn of_endless_open_calls_the_first_thousand_are_remembered() {
    let (asked, answered): (Vec<_>, Vec<_>) = (0..CALLS_MAX + 5).map(claude_call).unzip();
    let mut reader = OutputReader::new(OutputFormat::Claude);
    for line in [asked, answered].concat() {
        reader.read(format!("{line}\n").as_bytes());
    }
    let reads = reader.take_reads();
    assert_eq!(reads.len(), CALLS_MAX);
    assert_eq!(reads.last().map(String::as_str), Some("999.rs"));
}

#[test]
fn each_program_tells_what_its_format_has() {
    for (form, tokens, cost) in [
        (OutputFormat::Text, false, false),
        (OutputFormat::Claude, true, true),
        (OutputFormat::Codex, true, false),
        (OutputFormat::Gemini, true, false),
        (OutputFormat::OpenCode, true, true),
    ] {
        let told = (form.tells_tokens(), form.tells_cost());
        assert_eq!(told, (tokens, cost), "{form:?}");
    }
}

/// A tool call without a word of the model is a turn too, whether or not the program reports its beginning.
#[test]
fn a_turn_of_codex_ends_with_the_result_of_its_tool() {
    let started = r#"{"type":"item.started","item":{"id":"1","type":"web_search"}}"#;
    let completed = r#"{"type":"item.completed","item":{"id":"1","type":"web_search"}}"#;
    let words = r#"{"type":"item.completed","item":{"type":"agent_message","text":"PASS"}}"#;
    let turn = r#"{"type":"turn.started"}"#;
    // A list of things to do is neither words nor a tool call.
    let listed = r#"{"type":"item.started","item":{"id":"2","type":"todo_list"}}"#;
    let done = r#"{"type":"item.completed","item":{"id":"2","type":"todo_list"}}"#;
    for (lines, turns) in [
        (&[turn, started, completed][..], 1),
        (&[turn, started, completed, started], 2),
        (&[turn, completed, completed], 2),
        (&[turn, completed, words, started, completed], 2),
        (&[words, words], 1),
        (&[turn, completed, listed], 1),
        (&[turn, listed, done, words], 1),
    ] {
        let said = whole(OutputFormat::Codex, &lines.join("\n"));
        assert_eq!(said.turns, turns, "{lines:?}");
    }
}

#[test]
fn a_turn_of_gemini_begins_with_words_or_a_call_and_ends_with_a_result() {
    let words = r#"{"type":"message","role":"assistant","content":"PASS","delta":true}"#;
    let asked = r#"{"type":"message","role":"user","content":"Review it."}"#;
    let call = r#"{"type":"tool_use","tool_id":"c","tool_name":"list_directory"}"#;
    let result = r#"{"type":"tool_result","tool_id":"c","status":"success"}"#;
    for (lines, turns) in [
        (&[asked][..], 0),
        (&[asked, words, words], 1),
        (&[words, call, call], 1),
        (&[call, result], 1),
        (&[call, result, call, result, words], 3),
    ] {
        let said = whole(OutputFormat::Gemini, &lines.join("\n"));
        assert_eq!(said.turns, turns, "{lines:?}");
    }
}

#[test]
fn files_that_a_tool_or_a_plain_command_reads_are_told_once_it_went_well() {
    let reads = |form, output: &str| {
        let mut reader = OutputReader::new(form);
        reader.read(output.as_bytes());
        let reads = reader.take_reads();
        assert!(reader.take_reads().is_empty(), "told once");
        reads
    };
    for (form, output) in [
        (OutputFormat::Claude, CLAUDE),
        (OutputFormat::Codex, CODEX),
        (OutputFormat::Gemini, GEMINI),
    ] {
        assert_eq!(reads(form, output), ["brief.yaml"], "{form:?}");
        let failed = output
            .replace(
                "\"tool_use_id\":\"toolu_01\"",
                "\"tool_use_id\":\"toolu_01\",\"is_error\":true",
            )
            .replace("\"exit_code\":0", "\"exit_code\":1")
            .replace(
                "\"tool_1\",\"status\":\"success\"",
                "\"tool_1\",\"status\":\"error\"",
            );
        assert!(reads(form, &failed).is_empty(), "{form:?}");
    }
}

#[test]
fn the_tools_of_each_program_that_read_a_file_are_known() {
    let claude = |tool: &str, helper: &str| {
        format!(
            r#"{{"type":"assistant","parent_tool_use_id":{helper},"message":{{"id":"m","content":[{{"type":"tool_use","id":"c",{tool}}}]}}}}
{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"c"}}]}}}}
"#
        )
    };
    let gemini = |tool: &str| {
        format!(
            r#"{{"type":"tool_use","tool_id":"c",{tool}}}
{{"type":"tool_result","tool_id":"c","status":"success"}}
"#
        )
    };
    let opencode = |tool: &str, status: &str, exit: &str| {
        format!(
            r#"{{"type":"tool_use","part":{{"callID":"c","tool":{tool},"metadata":{{"exit":{exit}}},"status":"{status}"}}}}}}
"#
        )
    };
    let read = r#""name":"Read","input":{"file_path":"a.rs"}"#;
    let bash = r#""name":"Bash","input":{"command":"cat a.rs"}"#;
    let write = r#""name":"Write","input":{"file_path":"a.rs"}"#;
    let (file, shell) = (
        r#""read","state":{"input":{"filePath":"a.rs"}"#,
        r#""bash","state":{"input":{"command":"cat a.rs"}"#,
    );
    for (form, output, is_read) in [
        (OutputFormat::Claude, claude(read, "null"), true),
        (OutputFormat::Claude, claude(read, "\"t\""), true),
        (OutputFormat::Claude, claude(bash, "null"), true),
        (OutputFormat::Claude, claude(write, "null"), false),
        (
            OutputFormat::Gemini,
            gemini(r#""tool_name":"read_file","parameters":{"absolute_path":"a.rs"}"#),
            true,
        ),
        (
            OutputFormat::Gemini,
            gemini(r#""tool_name":"run_shell_command","parameters":{"command":"cat a.rs"}"#),
            true,
        ),
        (
            OutputFormat::Gemini,
            gemini(r#""tool_name":"write_file","parameters":{"file_path":"a.rs"}"#),
            false,
        ),
        (
            OutputFormat::OpenCode,
            opencode(file, "completed", "null"),
            true,
        ),
        (
            OutputFormat::OpenCode,
            opencode(shell, "completed", "0"),
            true,
        ),
        (
            OutputFormat::OpenCode,
            opencode(shell, "completed", "1"),
            false,
        ),
        (OutputFormat::OpenCode, opencode(shell, "error", "0"), false),
        (
            OutputFormat::OpenCode,
            opencode(&file.replace("read", "write"), "completed", "null"),
            false,
        ),
    ] {
        let mut reader = OutputReader::new(form);
        reader.read(output.as_bytes());
        let reads = reader.take_reads();
        assert_eq!(reads, Vec::from_iter(is_read.then_some("a.rs")), "{output}");
    }
}

/// The format that the name of a recorded stream begins with.
fn form_of(name: &str) -> OutputFormat {
    let word = name.split('_').next().expect("a name has a beginning");
    serde_json::from_value(word.into()).expect("the form of a program")
}

/// Checks the turns, the last words, and why those are no answer, in streams that real programs printed.
#[test]
fn streams_of_the_real_programs_are_read_as_what_they_are() {
    const PASS: &str = "Nothing is left.\n\nPASS";
    const SCHEMA: &str = "{\"response\":";
    const HOOK: &str = "Second answer after the hook.";
    const NO_END: &str = "its output has no end";
    let refused = "it is not logged in: Failed to authenticate. API Error: 401 scripted error";
    let bad = |words: &str| format!("its result is an error: {words}");
    let (claude, codex) = (bad("API Error: 400 scripted error"), bad("scripted error"));
    let gemini = bad(
        "[API Error: {\"error\":{\"code\":400,\"message\":\"scripted error\",\"status\":\"invalid_request_error\"}}]",
    );
    let looped = bad("Loop detected, stopping execution");
    let max_turns = bad("Reached maximum number of turns (2)");
    for (name, turns, begin, unreadable) in [
        ("claude_ended_by_budget", 6, "", Some(NO_END.to_owned())),
        // The program's own words about an error are no turn and no answer.
        ("claude_error_401_retries", 0, "", Some(refused.to_owned())),
        ("claude_error_api400", 0, "", Some(claude)),
        ("claude_error_max_turns", 2, "", Some(max_turns)),
        ("claude_ok", 1, PASS, None),
        ("claude_partial_messages", 1, PASS, None),
        ("claude_schema", 1, SCHEMA, None),
        ("claude_stop_hook", 2, HOOK, None),
        ("claude_subagent", 2, PASS, None),
        ("claude_tool", 2, PASS, None),
        ("claude_tool_denied", 2, PASS, None),
        (
            "codex_ended_by_budget_head",
            3,
            "Looking on.",
            Some(NO_END.to_owned()),
        ),
        ("codex_error_api400", 1, "", Some(codex.clone())),
        ("codex_ok", 1, PASS, None),
        ("codex_output_schema", 1, SCHEMA, None),
        ("codex_read_only_sandbox", 2, "I approved it with", None),
        ("codex_reconnect", 1, "script over", None),
        ("codex_stop_hook", 1, HOOK, None),
        ("codex_tool", 2, PASS, None),
        // The interrupted answer is not joined to the next.
        ("gemini_after_agent_hook", 2, HOOK, None),
        ("gemini_error_api400", 0, "", Some(gemini)),
        ("gemini_loop_detected", 5, "Looking on.", Some(looped)),
        ("gemini_ok", 1, PASS, None),
        ("gemini_tool", 2, PASS, None),
        ("gemini_tool_not_registered", 2, PASS, None),
        ("opencode_error_api400", 0, "", Some(codex)),
        ("opencode_ok", 1, PASS, None),
        ("opencode_tool", 2, PASS, None),
    ] {
        let path = format!(
            "{}/../../tests/fixtures/stream/recorded/{name}.jsonl",
            env!("CARGO_MANIFEST_DIR")
        );
        let output = std::fs::read_to_string(&path).expect("a recorded stream");
        let (said, completed) = read(form_of(name), &output, usize::MAX);
        assert_eq!(completed, u16::saturating_sub(turns, 1), "{name}");
        let mut reader = OutputReader::new(form_of(name));
        assert!(!reader.is_done(), "{name}");
        reader.read(output.as_bytes());
        let is_done = unreadable.is_none() || name == "gemini_loop_detected";
        assert_eq!(reader.is_done(), is_done, "{name}");
        let found = (
            said.turns,
            said.unreadable.as_ref().map(Unreadable::to_string),
        );
        assert_eq!(found, (turns, unreadable), "{name}: {}", said.text);
        assert!(said.text.starts_with(begin), "{name}: {}", said.text);
        assert_eq!(
            begin.is_empty(),
            said.text.is_empty(),
            "{name}: {}",
            said.text
        );
    }
}

/// Checks the exact tokens and money in streams that real programs printed.
#[test]
fn streams_of_the_real_programs_are_counted_exactly() {
    for (name, tokens, micro_usd) in [
        // Cut off before its result: the beginnings of six answers, and no money.
        ("claude_ended_by_budget", 66, 0),
        ("claude_error_401_retries", 0, 0),
        ("claude_error_api400", 0, 0),
        ("claude_error_max_turns", 30, 280),
        ("claude_ok", 15, 140),
        ("claude_partial_messages", 15, 140),
        ("claude_schema", 15, 140),
        ("claude_stop_hook", 30, 280),
        // The stream shows only the beginning of its helper's one answer; the money is complete.
        ("claude_subagent", 41, 560),
        ("claude_tool", 30, 280),
        ("claude_tool_denied", 30, 280),
        // Codex reports its usage at the end, or never.
        ("codex_ended_by_budget_head", 0, 0),
        ("codex_error_api400", 0, 0),
        ("codex_ok", 15, 0),
        ("codex_output_schema", 15, 0),
        ("codex_read_only_sandbox", 45, 0),
        ("codex_reconnect", 15, 0),
        ("codex_stop_hook", 30, 0),
        ("codex_tool", 30, 0),
        ("gemini_after_agent_hook", 30, 0),
        ("gemini_error_api400", 0, 0),
        ("gemini_loop_detected", 60, 0),
        ("gemini_ok", 15, 0),
        ("gemini_tool", 30, 0),
        ("gemini_tool_not_registered", 30, 0),
        ("opencode_error_api400", 0, 0),
        ("opencode_ok", 15, 105),
        ("opencode_tool", 30, 210),
    ] {
        let path = format!(
            "{}/../../tests/fixtures/stream/recorded/{name}.jsonl",
            env!("CARGO_MANIFEST_DIR")
        );
        let output = std::fs::read_to_string(&path).expect("a recorded stream");
        for piece in [7, usize::MAX] {
            let (said, _) = read(form_of(name), &output, piece);
            assert_eq!(said.spend, Spend { tokens, micro_usd }, "{name}");
        }
    }
}

#[test]
fn an_error_after_which_codex_says_nothing_is_its_end() {
    let line = r#"{"type":"error","message":"stream disconnected"}"#;
    let unreadable = whole(OutputFormat::Codex, line).unreadable;
    let why = unreadable.expect("no answer").to_string();
    assert_eq!(why, "its result is an error: stream disconnected");
}

#[test]
fn a_step_of_opencode_without_a_sum_counts_all_its_kinds_of_tokens() {
    let tokens = r#""input":10,"output":5,"reasoning":1,"cache":{"read":3,"write":2}"#;
    for (total, sum) in [("", 21), (r#","total":30"#, 30)] {
        let line = format!(
            r#"{{"type":"step_finish","part":{{"reason":"stop","tokens":{{{tokens}{total}}}}}}}"#
        );
        let spend = whole(OutputFormat::OpenCode, &line).spend;
        assert_eq!(spend, Spend::tokens(sum), "{line}");
    }
}

#[test]
fn an_answer_that_is_told_in_pieces_counts_once_and_a_helpers_beside_it() {
    let line = |id: &str, helper: &str, tokens: u64| {
        format!(
            "{{\"type\":\"assistant\",\"message\":{{\"id\":\"{id}\",\"usage\":{{\"input_tokens\":{tokens}}}}},\"parent_tool_use_id\":{helper}}}\n"
        )
    };
    let mut reader = OutputReader::new(OutputFormat::Claude);
    for (id, helper, tokens, sum) in [
        ("a", "null", 10, 10),
        ("a", "null", 10, 10),
        ("h", "\"call\"", 5, 15),
        ("a", "null", 12, 17),
        ("h", "\"call\"", 5, 17),
        ("b", "null", 1, 18),
    ] {
        reader.read(line(id, helper, tokens).as_bytes());
        assert_eq!(reader.spend(), Spend::tokens(sum), "{id} {helper} {tokens}");
    }
    let result = r#"{"type":"result","subtype":"success","result":"PASS","total_cost_usd":0.25,"usage":{"input_tokens":20},"modelUsage":{"one":{"inputTokens":20,"outputTokens":1},"other":{"cacheReadInputTokens":9}}}"#;
    reader.read(format!("{result}\n").as_bytes());
    let whole = Spend {
        tokens: 30,
        micro_usd: 250_000,
    };
    assert_eq!(reader.finish().spend, whole);
}

#[test]
fn of_endless_helpers_the_first_thousand_are_remembered() {
    let mut reader = OutputReader::new(OutputFormat::Claude);
    let mut read = |helper: u64| {
        let line = format!(
            "{{\"type\":\"assistant\",\"message\":{{\"id\":\"a\",\"usage\":{{\"input_tokens\":1}}}},\"parent_tool_use_id\":\"{helper}\"}}\n"
        );
        reader.read(line.as_bytes());
        reader.spend().tokens
    };
    for helper in 1..=1_001 {
        assert_eq!(read(helper), helper);
    }
    assert_eq!(read(1_000), 1_001, "its answer is known");
    assert_eq!(
        read(1_001),
        1_002,
        "its answer is forgotten, and counts again"
    );
}

/// The end of a run without quota, as each program prints it, with the time to wait.
#[test]
fn the_quota_of_each_program_is_recognised_with_its_wait() {
    let claude = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1771030800,"rateLimitType":"five_hour"}}
{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"You've hit your limit · resets 3pm (UTC)"}"#;
    let codex = r#"{"type":"turn.failed","error":{"message":"You've hit your usage limit. Upgrade to Pro or try again in 2 hours 5 minutes."}}"#;
    let codex_service = r#"{"type":"turn.failed","error":{"message":"{\"error\": {\"type\": \"usage_limit_reached\", \"message\": \"The usage limit has been reached\", \"resets_in_seconds\": 760}}"}}"#;
    let gemini = r#"{"type":"result","status":"error","error":{"type":"unknown","message":"[API Error: You exceeded your current quota.\nPlease retry in 34.07s. (Status: RESOURCE_EXHAUSTED)]"},"stats":{}}"#;
    let opencode = r#"{"type":"error","error":{"name":"APIError","data":{"message":"slow down","statusCode":429,"isRetryable":true,"responseHeaders":{"retry-after":"17"}}}}"#;
    let none = r#"{"type":"result","status":"error","error":{"message":"[API Error: quota]"}}"#;
    for (form, output, retry) in [
        (OutputFormat::Claude, claude, Some(Retry::At(1_771_030_800))),
        (OutputFormat::Codex, codex, Some(Retry::AfterS(7_500))),
        (OutputFormat::Codex, codex_service, Some(Retry::AfterS(760))),
        (OutputFormat::Gemini, gemini, Some(Retry::AfterS(35))),
        (OutputFormat::OpenCode, opencode, Some(Retry::AfterS(17))),
        (OutputFormat::Gemini, none, None),
    ] {
        let said = whole(form, output);
        let unreadable = said.unreadable.expect("no answer");
        assert_eq!(unreadable.cause(), Some(Cause::Quota { retry }), "{output}");
        let why = unreadable.to_string();
        assert!(why.starts_with("its quota is used up: "), "{why}");
    }
    // A limit that is not reached is no cause of whatever goes wrong later.
    let allowed = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"allowed","resetsAt":1771030800}}
{"type":"result","subtype":"error_max_turns","is_error":true,"result":""}"#;
    let unreadable = whole(OutputFormat::Claude, allowed).unreadable;
    assert_eq!(unreadable.expect("no answer").cause(), None);
    // A warning before an answer is no failure.
    let warned = format!(
        "{}\n{CLAUDE}",
        r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1}}"#
    );
    assert_eq!(whole(OutputFormat::Claude, &warned).unreadable, None);
}
