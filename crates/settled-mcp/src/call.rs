//! Translates a tool's arguments into the words of one `settled` command.

use rmcp::model::JsonObject;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::refusal::CallRefusal;

/// The default time that `wait` blocks, in seconds: clients give up on a request after a minute.
const WAIT_S: u64 = 50;

/// The most bytes of an argument that becomes a word of a command: the system refuses one of 128 KiB.
const WORD_BYTES_MAX: usize = 64 * 1024;

/// One command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ToolCall {
    pub(crate) words: Vec<String>,
    /// The text for its standard input.
    pub(crate) input: Option<String>,
    /// The number of the only file to show of a diff.
    pub(crate) nth: Option<usize>,
    /// The argument that names the command's subject, or the tool if none does.
    pub(crate) about: &'static str,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NextArguments {
    act: Option<MailAct>,
    id: Option<NameOrNumber>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum MailAct {
    Take,
    Done,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShowArguments {
    id: Option<NameOrNumber>,
    pr: Option<NameOrNumber>,
    what: Option<ShowTopic>,
    n: Option<usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum ShowTopic {
    Brief,
    Threads,
    Files,
    Diff,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SendArguments {
    r#type: Option<NameOrNumber>,
    to: Option<NameOrNumber>,
    pr: Option<NameOrNumber>,
    reply_to: Option<NameOrNumber>,
    subject: Option<String>,
    text: Option<String>,
    fields: Option<JsonObject>,
    id: Option<NameOrNumber>,
    #[serde(default)]
    dry_run: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WaitArguments {
    r#for: Option<WaitTopic>,
    id: Option<NameOrNumber>,
    pr: Option<NameOrNumber>,
    seconds: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum WaitTopic {
    Any,
    Reply,
    Verdict,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WhyArguments {
    pr: Option<NameOrNumber>,
    id: Option<NameOrNumber>,
    code: Option<NameOrNumber>,
}

/// A number or a name. A name has no `/`.
struct NameOrNumber(String);

impl<'de> Deserialize<'de> for NameOrNumber {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = || serde::de::Error::custom("expected a number, or a name without `/`");
        match Value::deserialize(deserializer)? {
            Value::Number(number) => Ok(Self(number.to_string())),
            Value::String(text) if !text.contains('/') => Ok(Self(text)),
            Value::String(_)
            | Value::Null
            | Value::Bool(_)
            | Value::Array(_)
            | Value::Object(_) => Err(expected()),
        }
    }
}

/// The correct arguments of each tool, for the refusal of a wrong call.
const CALLS: [(&str, &str); 5] = [
    (
        "next",
        "give no argument, or `act` (take or done) with `id`",
    ),
    (
        "show",
        "give `id` alone, or `what` (brief, threads, files, diff) with `pr`; `n`, from 1, goes with `what: diff`",
    ),
    (
        "send",
        "answer a request by `type` (feedback or lgtm) with `pr` and `fields`; else give `type` with `to`, or `reply_to`, and \
         either `text` or `fields`",
    ),
    (
        "wait",
        "give any of `for` (any, reply, verdict), `id`, `pr` and `seconds`, or nothing",
    ),
    ("why", "give one of `pr`, `id` and `code`"),
];

impl ToolCall {
    /// Returns the command that a tool runs.
    pub(crate) fn read(tool: &str, arguments: JsonObject) -> Result<Self, CallRefusal> {
        match tool {
            "next" => next(read(tool, arguments)?),
            "show" => show(read(tool, arguments)?),
            "send" => send(read(tool, arguments)?),
            "wait" => Ok(wait(read(tool, arguments)?)),
            "why" => why(read(tool, arguments)?),
            other => Err(CallRefusal::argument(
                "name",
                &format!("there is no tool `{other}`"),
                "call next, show, send, wait or why",
            )),
        }
    }

    /// Makes a command about the value of the argument `about`, which is never read as an option.
    fn new(
        verb: &str,
        options: Vec<String>,
        (about, named): (&'static str, Option<NameOrNumber>),
    ) -> Self {
        let mut words = vec![verb.to_owned(), "--json".to_owned()];
        words.extend(options);
        if let Some(NameOrNumber(named)) = named {
            words.extend(["--".to_owned(), named]);
        }
        Self {
            words,
            input: None,
            nth: None,
            about,
        }
    }

    /// Returns the words with one more option.
    pub(crate) fn and(words: &[String], option: String) -> Vec<String> {
        // Directly after the verb: names follow all options.
        let mut words = words.to_vec();
        words.insert(1, option);
        words
    }

    fn with_input(self, input: String) -> Self {
        Self {
            input: Some(input),
            ..self
        }
    }
}

/// Reads the arguments of a tool; a refusal names the wrong one.
fn read<T: DeserializeOwned>(tool: &str, arguments: JsonObject) -> Result<T, CallRefusal> {
    for (name, value) in &arguments {
        // `text` goes to the command's standard input.
        let Some(word) = value.as_str().filter(|_| name != "text") else {
            continue;
        };
        let bytes = word.len();
        if bytes > WORD_BYTES_MAX {
            let message = format!("it has {bytes} bytes, expected at most {WORD_BYTES_MAX}");
            return Err(refused(tool, name, &message));
        }
        if word.contains('\0') {
            return Err(refused(tool, name, "it contains U+0000"));
        }
    }
    serde_path_to_error::deserialize(Value::Object(arguments)).map_err(|error| {
        let path = error.path().to_string();
        refused(tool, &path, &error.inner().to_string())
    })
}

/// Makes the refusal of wrong arguments.
fn refused(tool: &str, field: &str, message: &str) -> CallRefusal {
    let of_tool = CALLS.iter().find(|(name, _)| *name == tool);
    let (_, how) = of_tool.expect("each tool has its line");
    CallRefusal::argument(field, message, how)
}

/// `--name=value`, if there is a value.
fn option(name: &str, value: Option<impl Into<String>>) -> Option<String> {
    value.map(|value| format!("--{name}={}", value.into()))
}

impl From<NameOrNumber> for String {
    fn from(word: NameOrNumber) -> Self {
        word.0
    }
}

fn next(NextArguments { act, id }: NextArguments) -> Result<ToolCall, CallRefusal> {
    match (act, id) {
        (None, None) => Ok(ToolCall::new("next", Vec::new(), ("act", None))),
        (Some(MailAct::Take), Some(id)) => Ok(ToolCall::new("take", Vec::new(), ("id", Some(id)))),
        (Some(MailAct::Done), Some(id)) => Ok(ToolCall::new("done", Vec::new(), ("id", Some(id)))),
        (Some(_), None) => Err(refused("next", "id", "`act` and `id` go together")),
        (None, Some(_)) => Err(refused("next", "act", "`act` and `id` go together")),
    }
}

fn show(ShowArguments { id, pr, what, n }: ShowArguments) -> Result<ToolCall, CallRefusal> {
    match (id, pr, what, n) {
        (Some(id), None, None, None) => Ok(ToolCall::new("show", Vec::new(), ("id", Some(id)))),
        (None, pr, Some(ShowTopic::Brief), None) => {
            Ok(ToolCall::new("brief", Vec::new(), ("pr", pr)))
        }
        (None, Some(pr), Some(ShowTopic::Threads), None) => {
            Ok(ToolCall::new("threads", Vec::new(), ("pr", Some(pr))))
        }
        (None, pr, Some(ShowTopic::Files), None) => Ok(ToolCall::new(
            "diff",
            vec!["--names".to_owned()],
            ("pr", pr),
        )),
        (None, pr, Some(ShowTopic::Diff), Some(n)) if n > 0 => Ok(ToolCall {
            nth: Some(n),
            ..ToolCall::new("diff", Vec::new(), ("pr", pr))
        }),
        (None, pr, Some(ShowTopic::Diff), None) => {
            Ok(ToolCall::new("diff", Vec::new(), ("pr", pr)))
        }
        (None, None, Some(ShowTopic::Threads), None) => {
            Err(refused("show", "pr", "`what: threads` needs `pr`"))
        }
        (None, _, Some(_), Some(_)) => Err(refused(
            "show",
            "n",
            "`n` is the number of a file, from 1, and goes with `what: diff`",
        )),
        (Some(_), ..) => Err(refused("show", "id", "`id` takes no other argument")),
        (None, _, None, _) => Err(refused("show", "what", "neither `id` nor `what` is given")),
    }
}

fn send(send: SendArguments) -> Result<ToolCall, CallRefusal> {
    let SendArguments {
        r#type,
        to,
        pr,
        reply_to,
        subject,
        text,
        fields,
        id,
        dry_run,
    } = send;
    let kind = r#type.map(String::from);
    let mut options: Vec<String> = [
        option("id", id),
        option("subject", subject),
        dry_run.then(|| "--dry-run".to_owned()),
    ]
    .into_iter()
    .flatten()
    .collect();
    if let Some(verb @ ("feedback" | "lgtm")) = kind.as_deref() {
        let given = [
            ("reply_to", reply_to.is_some()),
            ("to", to.is_some()),
            ("text", text.is_some()),
        ];
        if let Some((field, _)) = given.iter().find(|(_, is_given)| *is_given) {
            return Err(refused(
                "send",
                field,
                "an answer to a request takes `pr` and `fields`; its recipient is the author",
            ));
        }
        options.push("--findings=-".to_owned());
        let fields = Value::Object(fields.unwrap_or_default());
        return Ok(ToolCall::new(verb, options, ("pr", pr)).with_input(fields.to_string()));
    }
    let body = match (text, fields) {
        (Some(text), None) => text,
        // The body of a review message is YAML, and JSON is YAML.
        (None, Some(fields)) => Value::Object(fields).to_string(),
        (None, None) | (Some(_), Some(_)) => {
            return Err(refused(
                "send",
                "text",
                "say what it contains: either `text` or `fields`",
            ));
        }
    };
    options.extend([option("to", to), option("pr", pr)].into_iter().flatten());
    options.push("--body-file=-".to_owned());
    let call = match (reply_to, kind) {
        (Some(parent), kind) => {
            options.extend(option("type", kind));
            ToolCall::new("reply", options, ("reply_to", Some(parent)))
        }
        (None, Some(kind)) => ToolCall::new("send", options, ("type", Some(NameOrNumber(kind)))),
        (None, None) => return Err(refused("send", "type", "say `type`, or `reply_to`")),
    };
    Ok(call.with_input(body))
}

fn wait(wait: WaitArguments) -> ToolCall {
    let what = wait.r#for.map(|what| match what {
        WaitTopic::Any => "any",
        WaitTopic::Reply => "reply",
        WaitTopic::Verdict => "verdict",
    });
    let seconds = wait.seconds.unwrap_or(WAIT_S).to_string();
    let about = if wait.pr.is_some() { "pr" } else { "id" };
    let options = [
        option("for", what),
        option("id", wait.id),
        option("pr", wait.pr),
        option("timeout", Some(seconds)),
    ];
    ToolCall::new(
        "wait",
        options.into_iter().flatten().collect(),
        (about, None),
    )
}

fn why(WhyArguments { pr, id, code }: WhyArguments) -> Result<ToolCall, CallRefusal> {
    match (pr, id, code) {
        (Some(pr), None, None) => Ok(ToolCall::new("why", Vec::new(), ("pr", Some(pr)))),
        (None, Some(id), None) => Ok(ToolCall::new("trace", Vec::new(), ("id", Some(id)))),
        (None, None, Some(code)) => Ok(ToolCall::new("explain", Vec::new(), ("code", Some(code)))),
        _ => Err(refused("why", "pr", "say one of `pr`, `id` and `code`")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::refusal::OwnRefusal;

    /// The command of a call, or the place and the message of its refusal.
    fn command(tool: &str, arguments: &Value) -> String {
        let arguments = arguments.as_object().expect("an object").clone();
        match ToolCall::read(tool, arguments) {
            Ok(ToolCall {
                words, input, nth, ..
            }) => {
                let input = input.map(|input| format!(" < {input}"));
                let nth = nth.map(|nth| format!(" ({nth})"));
                words.join(" ") + &input.unwrap_or_default() + &nth.unwrap_or_default()
            }
            Err(CallRefusal::Here(OwnRefusal {
                code,
                field,
                message,
                fix,
                ..
            })) => {
                assert_eq!(code, "argument_invalid");
                assert!(!fix.is_empty() && !field.is_empty(), "{message}");
                format!("{field}: {message}")
            }
            Err(document @ CallRefusal::Document { .. }) => document.json(),
        }
    }

    #[track_caller]
    fn assert_commands(cases: &[(&str, Value, &str)]) {
        for (tool, arguments, expected) in cases {
            assert_eq!(command(tool, arguments), *expected, "{tool} {arguments}");
        }
    }

    #[test]
    fn next_looks_takes_and_puts_away() {
        assert_commands(&[
            ("next", json!({}), "next --json"),
            (
                "next",
                json!({"act": "take", "id": "r-1"}),
                "take --json -- r-1",
            ),
            (
                "next",
                json!({"act": "done", "id": "r-1"}),
                "done --json -- r-1",
            ),
            (
                "next",
                json!({"act": "take"}),
                "id: `act` and `id` go together",
            ),
            (
                "next",
                json!({"id": "r-1"}),
                "act: `act` and `id` go together",
            ),
        ]);
    }

    #[test]
    fn show_says_which_part_of_what_it_shows() {
        let file = "n: `n` is the number of a file, from 1, and goes with `what: diff`";
        assert_commands(&[
            ("show", json!({"id": "r-1"}), "show --json -- r-1"),
            ("show", json!({"what": "brief"}), "brief --json"),
            (
                "show",
                json!({"what": "brief", "pr": 86}),
                "brief --json -- 86",
            ),
            (
                "show",
                json!({"what": "threads", "pr": "86"}),
                "threads --json -- 86",
            ),
            (
                "show",
                json!({"what": "files", "pr": 86}),
                "diff --json --names -- 86",
            ),
            (
                "show",
                json!({"what": "diff", "pr": 86}),
                "diff --json -- 86",
            ),
            (
                "show",
                json!({"what": "diff", "pr": 86, "n": 1}),
                "diff --json -- 86 (1)",
            ),
            ("show", json!({"what": "diff", "pr": 86, "n": 0}), file),
            ("show", json!({"what": "files", "pr": 86, "n": 1}), file),
            (
                "show",
                json!({"what": "threads"}),
                "pr: `what: threads` needs `pr`",
            ),
            (
                "show",
                json!({"id": "r-1", "pr": 86}),
                "id: `id` takes no other argument",
            ),
            ("show", json!({}), "what: neither `id` nor `what` is given"),
        ]);
    }

    #[test]
    fn an_answer_to_a_request_takes_its_fields_and_nothing_else() {
        let usage = |field: &str| {
            format!(
                "{field}: an answer to a request takes `pr` and `fields`; its recipient is the author"
            )
        };
        let [text, to, reply_to] = ["text", "to", "reply_to"].map(usage);
        assert_commands(&[
            (
                "send",
                json!({"type": "feedback", "pr": 86, "id": "f-1", "fields": {"findings": []}}),
                r#"feedback --json --id=f-1 --findings=- -- 86 < {"findings":[]}"#,
            ),
            (
                "send",
                json!({"type": "lgtm", "pr": 86, "dry_run": true}),
                "lgtm --json --dry-run --findings=- -- 86 < {}",
            ),
            (
                "send",
                json!({"type": "lgtm", "pr": 86, "text": "fine"}),
                &text,
            ),
            (
                "send",
                json!({"type": "lgtm", "pr": 86, "to": "codex"}),
                &to,
            ),
            (
                "send",
                json!({"type": "feedback", "pr": 86, "reply_to": "r-1"}),
                &reply_to,
            ),
        ]);
    }

    #[test]
    fn a_message_has_a_type_or_a_parent_and_one_body() {
        let body = "text: say what it contains: either `text` or `fields`";
        assert_commands(&[
            (
                "send",
                json!({"type": "question", "to": "codex", "subject": "S", "text": "Which?"}),
                "send --json --subject=S --to=codex --body-file=- -- question < Which?",
            ),
            (
                "send",
                json!({"type": "review_request", "to": "codex", "pr": 86, "fields": {"branch": "b"}}),
                r#"send --json --to=codex --pr=86 --body-file=- -- review_request < {"branch":"b"}"#,
            ),
            (
                "send",
                json!({"reply_to": "f-1", "text": "Done."}),
                "reply --json --body-file=- -- f-1 < Done.",
            ),
            (
                "send",
                json!({"reply_to": "f-1", "type": "notification", "text": "Done."}),
                "reply --json --body-file=- --type=notification -- f-1 < Done.",
            ),
            (
                "send",
                json!({"text": "Done."}),
                "type: say `type`, or `reply_to`",
            ),
            ("send", json!({"type": "question", "to": "codex"}), body),
            (
                "send",
                json!({"type": "question", "to": "codex", "text": "?", "fields": {}}),
                body,
            ),
        ]);
    }

    #[test]
    fn wait_ends_before_a_client_gives_up() {
        assert_commands(&[
            ("wait", json!({}), "wait --json --timeout=50"),
            (
                "wait",
                json!({"for": "any", "seconds": 0}),
                "wait --json --for=any --timeout=0",
            ),
            (
                "wait",
                json!({"for": "reply", "id": "q-1", "seconds": 5}),
                "wait --json --for=reply --id=q-1 --timeout=5",
            ),
            (
                "wait",
                json!({"for": "verdict", "pr": 86}),
                "wait --json --for=verdict --pr=86 --timeout=50",
            ),
        ]);
    }

    #[test]
    fn why_is_asked_of_one_thing() {
        let usage = "pr: say one of `pr`, `id` and `code`";
        assert_commands(&[
            ("why", json!({"pr": 86}), "why --json -- 86"),
            ("why", json!({"id": "r-1"}), "trace --json -- r-1"),
            (
                "why",
                json!({"code": "round_mismatch"}),
                "explain --json -- round_mismatch",
            ),
            ("why", json!({"pr": 86, "id": "r-1"}), usage),
            ("why", json!({}), usage),
        ]);
    }

    #[test]
    fn a_name_is_no_path_and_no_other_value() {
        let usage = "id: expected a number, or a name without `/`";
        assert_commands(&[
            ("show", json!({"id": "a/b"}), usage),
            ("show", json!({"id": true}), usage),
            ("show", json!({"id": ["a"]}), usage),
            ("rm", json!({}), "name: there is no tool `rm`"),
        ]);
        assert!(command("next", &json!({"root": "/"})).starts_with("root: unknown field `root`"));
    }

    #[test]
    fn what_no_command_takes_as_a_word_is_refused_by_its_name() {
        let long = "x".repeat(WORD_BYTES_MAX + 1);
        let too_long = |field: &str| format!("{field}: it has 65537 bytes, expected at most 65536");
        assert_commands(&[
            (
                "send",
                json!({"type": "question", "to": "a", "subject": long, "text": "b"}),
                &too_long("subject"),
            ),
            ("why", json!({"code": long}), &too_long("code")),
            ("show", json!({"id": "a\0b"}), "id: it contains U+0000"),
            (
                "send",
                json!({"type": "question", "to": "a", "subject": "b\0", "text": "c"}),
                "subject: it contains U+0000",
            ),
        ]);
        let longest = "x".repeat(WORD_BYTES_MAX);
        let explain = format!("explain --json -- {longest}");
        assert_commands(&[("why", json!({"code": longest}), &explain)]);
        let text = json!({"type": "question", "to": "a", "subject": "b", "text": long});
        assert!(command("send", &text).ends_with(&long));
    }

    #[test]
    fn an_option_more_stands_before_what_is_named() {
        let words = ["diff", "--json", "--", "86"].map(str::to_owned);
        let more = ToolCall::and(&words, "--names".to_owned());
        assert_eq!(more, ["diff", "--names", "--json", "--", "86"]);
    }
}
