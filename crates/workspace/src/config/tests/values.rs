//! Tests which values each key of a config takes.

use super::{Config, parse};

/// The keys of numbers, each with the least and the largest that is read.
const NUMBERS: [(&str, &str, u64, u64); 14] = [
    ("rounds", "max", 1, 3),
    ("limits", "messages_per_hour", 1, 10_000),
    ("limits", "files_per_hour", 1, 1_000_000),
    ("limits", "open_reviews", 1, 1_000_000),
    ("ledger", "segment_mib", 1, 4_096),
    ("ledger", "snapshot_records", 1, 1_000_000),
    ("retention", "sent_days", 0, 36_500),
    ("retention", "archive_days", 0, 36_500),
    ("retention", "dead_letter_days", 0, 36_500),
    ("notify", "stopped_after_s", 0, 86_400),
    ("runner", "concurrent", 1, 64),
    ("runner", "tree_mib_max", 1, 1_048_576),
    ("agents.codex", "uid", 1, 4_294_967_294),
    ("agents.codex", "concurrent", 1, 64),
];

#[test]
fn a_number_is_read_within_its_range_and_refused_with_it_beyond() {
    for (section, key, least, largest) in NUMBERS {
        let read = |number: i128| parse(&format!("[{section}]\n{key} = {number}\n"));
        let [low, high] = [least, largest].map(|number| read(number.into()));
        assert!(low.is_ok() && high.is_ok() && low != high, "{key}: {low:?}");
        for beyond in [i128::from(least) - 1, i128::from(largest) + 1] {
            let error = read(beyond).expect_err(key);
            let range = match key {
                "max" => "1, 2 or 3".to_owned(),
                _ => format!("{least} to {largest}"),
            };
            let said = format!("{key} is {beyond}, expected {range}");
            assert!(error.contains(&said), "{error}");
        }
    }
}

#[test]
fn each_value_of_a_key_is_read_as_itself() {
    for (section, key, one, other) in [
        ("", "profile", "\"gate\"", "\"advisory\""),
        ("", "runtime_clock", "\"take\"", "\"delivery\""),
        ("", "threads", "\"inferred\"", "\"explicit\""),
        ("", "late_findings", "\"block\"", "\"defer\""),
        ("", "reviewers", "[\"pi\"]", "[\"codex\"]"),
        ("gate", "validation_commands", "[\"make\"]", "[\"test\"]"),
        ("gate", "evidence", "\"warn\"", "\"require\""),
        ("gate", "human_paths", "[\"a/\"]", "[\"b/\"]"),
        ("handoff", "mode", "\"threshold\"", "\"full\""),
        ("handoff", "threshold", "\"P2\"", "\"P3\""),
        ("handoff", "categories", "[\"a\"]", "[\"b\"]"),
        ("handoff", "bots", "[\"a\"]", "[\"b\"]"),
        ("handoff", "verify_agents", "[\"a\"]", "[\"b\"]"),
        ("handoff", "target", "\"a\"", "\"b\""),
        ("handoff", "routes", "{ a = \"b\" }", "{ b = \"a\" }"),
        ("budget.per_day", "tokens", "5", "6"),
        ("budget.per_day", "usd", "1000000", "0.000001"),
        ("ledger", "log", "\"a\"", "\"b\""),
        ("ledger", "workspace", "\"a\"", "\"b\""),
        ("ledger", "host", "\"a\"", "\"b\""),
        ("metrics", "listen", "\"unix:a\"", "\"127.0.0.1:1\""),
        ("notify", "command", "[\"a\"]", "[\"a\", \"b\"]"),
        ("notify", "webhook", "\"https://a\"", "\"http://a\""),
        (
            "notify",
            "quiet_hours",
            "\"22:00-07:00\"",
            "\"22:00-08:00\"",
        ),
        ("runner", "warn_s", "0", "86400"),
        ("runner", "validation_s", "0", "86400"),
        ("runner", "pass", "\"a\"", "\"b\""),
        ("runner", "fail", "\"a\"", "\"b\""),
        ("runner", "done", "\"a\"", "\"b\""),
        ("agents.pi", "roles", "[\"author\"]", "[\"reviewer\"]"),
        ("agents.pi", "vendor", "\"a\"", "\"b\""),
        ("agents.pi", "command", "[\"a\"]", "[\"b\"]"),
        ("agents.pi", "checkout", "\"head\"", "\"workdir\""),
        ("agents.pi", "leave_out", "[\"a\"]", "[\"b\"]"),
        ("agents.pi", "sandbox", "true", "false"),
        ("agents.pi", "env", "{ A = \"b\" }", "{ A = \"c\" }"),
        ("agents.pi", "stdin", "\"prompt\"", "\"closed\""),
        ("agents.pi", "output", "\"claude\"", "\"codex\""),
        ("agents.pi.sandbox", "network", "[\"a.b\"]", "[\"*\"]"),
        ("agents.pi.sandbox", "reads", "[\"/a\"]", "[\"~/a\"]"),
        ("agents.pi.sandbox", "env", "[\"A\"]", "[\"B\"]"),
    ] {
        let section = match section {
            "" => String::new(),
            _ => format!("[{section}]\n"),
        };
        let read = |value: &str| parse(&format!("{section}{key} = {value}\n")).expect("valid");
        assert_ne!(read(one), read(other), "{section}{key}");
    }
}

#[test]
fn a_value_at_the_edge_of_what_is_allowed_is_read() {
    let longest = "x".repeat(64);
    for text in [
        format!("[agents.pi]\nvendor = \"{longest}\"\n"),
        "[agents.pi]\nvendor = \"a-b_c.1\"\n".to_owned(),
        format!("[ledger]\nworkspace = \"{longest}\"\n"),
        "[ledger]\nworkspace = \"1-a_B\"\n".to_owned(),
        "[runner]\npass = \"two words\"\n".to_owned(),
        "[agents.pi.sandbox]\nreads = [\"/srv/keys\", \"/a/../b\", \"/a/b/..\", \"~/..\"]\n"
            .to_owned(),
        "[agents.pi]\nuid = 7\n[agents.codex]\nuid = 8\n[agents.claude]\ncommand = [\"claude\"]\n"
            .to_owned(),
    ] {
        assert!(parse(&text).is_ok(), "{text}{:?}", parse(&text));
    }
    // An empty value means the default.
    for text in [
        "[ledger]\nlog = \" \"\nworkspace = \"\"\nhost = \"\"\n",
        "[notify]\ncommand = []\nwebhook = \"\"\nquiet_hours = \"\"\n",
        "[metrics]\nlisten = \"\"\n",
        "[retention]\nsent_days = 0\n",
    ] {
        assert_eq!(parse(text), Ok(Config::default()), "{text}");
    }
}

#[test]
fn a_value_that_cannot_work_is_told_with_what_would() {
    let long = "x".repeat(65);
    for (section, setting, found) in [
        (
            "gate",
            "human_paths = [\"../a\"]",
            "gate.human_paths has a pattern that names nothing",
        ),
        (
            "metrics",
            "listen = \"0.0.0.0:1\"",
            "metrics.listen is \"0.0.0.0:1\", expected \"\", \"unix:PATH\"",
        ),
        (
            "notify",
            "command = [\" \", \"a\"]",
            "notify.command has a blank program",
        ),
        (
            "notify",
            "webhook = \"https://\"",
            "notify.webhook is not an address",
        ),
        (
            "notify",
            "webhook = \"ftp://a\"",
            "notify.webhook is not an address",
        ),
        (
            "notify",
            "webhook = \"https://a b\"",
            "notify.webhook is not an address",
        ),
        (
            "notify",
            "webhook = 'https://a\"b'",
            "notify.webhook is not an address",
        ),
        (
            "notify",
            "quiet_hours = \"7-8\"",
            "notify.quiet_hours is \"7-8\", expected \"\", or two different times",
        ),
        (
            "ledger",
            "workspace = \"-a\"",
            "ledger.workspace is \"-a\", expected 1 to 64 letters",
        ),
        (
            "ledger",
            "workspace = \"a/b\"",
            "ledger.workspace is \"a/b\"",
        ),
        (
            "ledger",
            &format!("workspace = \"{long}\""),
            "ledger.workspace is \"x",
        ),
        (
            "ledger",
            "host = \"A\"",
            "ledger.host is \"A\": the name of a host is",
        ),
        (
            "runner",
            "pass = \"\"",
            "a word of [runner] is ``, expected one word on a line of its own",
        ),
        ("runner", "pass = \" a\"", "a word of [runner] is ` a`"),
        (
            "runner",
            "fail = \"a\\nb\"",
            "a word of [runner] is `a\\nb`",
        ),
        (
            "agents.pi",
            "vendor = \"\"",
            "vendor is \"\", expected 1 to 64 letters",
        ),
        ("agents.pi", "vendor = \"a b\"", "vendor is \"a b\""),
        (
            "agents.pi",
            &format!("vendor = \"{long}\""),
            "vendor is \"x",
        ),
        (
            "agents.pi",
            "command = \"a\"",
            "command is not a list of texts",
        ),
        (
            "agents.pi",
            "command = [\"\", \"a\"]",
            "command names no program",
        ),
        (
            "agents.pi",
            "command = [\"a\", \"\\u0000\"]",
            "a text has a NUL",
        ),
        ("agents.pi", "env = [\"a\"]", "env is not a table of texts"),
        (
            "agents.pi",
            "env = { \"\" = \"a\" }",
            "env names ``, expected a name without `=`",
        ),
        ("agents.pi", "env = { \"A=b\" = \"a\" }", "env names `A=b`"),
        ("agents.pi", "env = { A = \"\\u0000\" }", "a text has a NUL"),
        ("agents.pi.sandbox", "env = [\"\"]", "sandbox.env names ``"),
        (
            "agents.pi.sandbox",
            "env = [\"\\u0000\"]",
            "sandbox.env has a NUL",
        ),
        (
            "agents.pi.sandbox",
            "reads = [\"/\"]",
            "sandbox.reads names the root directory",
        ),
        (
            "agents.pi.sandbox",
            "reads = [\"/a/../..\"]",
            "sandbox.reads names the root directory",
        ),
        (
            "agents.pi",
            "uid = 7\ncommand = [\"a\"]",
            "agent pi has a uid and a command, expected one of the two",
        ),
        (
            "agents.pi",
            "uid = 7\n[agents.codex]\nuid = 7",
            "agents codex and pi have the same uid 7",
        ),
    ] {
        let error = parse(&format!("[{section}]\n{setting}\n")).expect_err(setting);
        assert!(error.contains(found), "{setting}: {error}");
    }
}
