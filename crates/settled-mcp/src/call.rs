//! A tool's arguments as the words of one `settled` command.

use rmcp::model::JsonObject;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// How long `wait` blocks unless told otherwise, in seconds: clients give up on a request after a minute.
const WAIT_S: u64 = 50;

/// One command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ToolCall {
    pub(crate) words: Vec<String>,
    /// The text on its standard input.
    pub(crate) input: Option<String>,
    /// The number of the only file of a diff that is asked for.
    pub(crate) nth: Option<usize>,
}

/// A call that has no command, or a command that has no answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CallRefusal {
    /// The arguments, or the machine.
    Here { exit: i32, message: String },
    /// A command, in these words.
    Document(String),
}

impl CallRefusal {
    pub(crate) fn new(exit: i32, message: String) -> Self {
        Self::Here { exit, message }
    }

    /// In the form of the commands' `--json`.
    pub(crate) fn json(self) -> String {
        match self {
            Self::Here { exit, message } => json!({
                "schema_version": 1,
                "ok": false,
                "error": { "exit": exit, "message": message },
                "alerts": [],
                "next": [],
            })
            .to_string(),
            Self::Document(document) => document,
        }
    }
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

/// A number or a name. A name of a file below some folder is none.
struct NameOrNumber(String);

impl<'de> Deserialize<'de> for NameOrNumber {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = || serde::de::Error::custom("expected a number, or a name without `/`");
        match Value::deserialize(deserializer)? {
            Value::Number(number) => Ok(Self(number.to_string())),
            Value::String(text) if !text.contains(['/', '\0']) => Ok(Self(text)),
            Value::String(_)
            | Value::Null
            | Value::Bool(_)
            | Value::Array(_)
            | Value::Object(_) => Err(expected()),
        }
    }
}

impl ToolCall {
    /// The command that a tool stands for.
    pub(crate) fn read(tool: &str, arguments: JsonObject) -> Result<Self, CallRefusal> {
        match tool {
            "next" => next(read(arguments)?),
            "show" => show(read(arguments)?),
            "send" => send(read(arguments)?),
            "wait" => Ok(wait(read(arguments)?)),
            "why" => why(read(arguments)?),
            other => Err(usage(&format!(
                "there is no tool `{other}`; there are next, show, send, wait and why"
            ))),
        }
    }

    /// A command about `named`, which is never taken for an option.
    fn new(verb: &str, options: Vec<String>, named: Option<NameOrNumber>) -> Self {
        let mut words = vec![verb.to_owned(), "--json".to_owned()];
        words.extend(options);
        if let Some(NameOrNumber(named)) = named {
            words.extend(["--".to_owned(), named]);
        }
        Self {
            words,
            input: None,
            nth: None,
        }
    }

    /// The words with an option more.
    pub(crate) fn and(words: &[String], option: String) -> Vec<String> {
        // Behind the verb: what is named stands behind all options.
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

fn read<T: DeserializeOwned>(arguments: JsonObject) -> Result<T, CallRefusal> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| usage(&error.to_string()))
}

fn usage(message: &str) -> CallRefusal {
    CallRefusal::new(2, message.to_owned())
}

/// `--name=value`, where there is a value.
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
        (None, None) => Ok(ToolCall::new("next", Vec::new(), None)),
        (Some(MailAct::Take), Some(id)) => Ok(ToolCall::new("take", Vec::new(), Some(id))),
        (Some(MailAct::Done), Some(id)) => Ok(ToolCall::new("done", Vec::new(), Some(id))),
        (Some(_), None) | (None, Some(_)) => Err(usage("`act` and `id` go together")),
    }
}

fn show(ShowArguments { id, pr, what, n }: ShowArguments) -> Result<ToolCall, CallRefusal> {
    match (id, pr, what, n) {
        (Some(id), None, None, None) => Ok(ToolCall::new("show", Vec::new(), Some(id))),
        (None, pr, Some(ShowTopic::Brief), None) => Ok(ToolCall::new("brief", Vec::new(), pr)),
        (None, Some(pr), Some(ShowTopic::Threads), None) => {
            Ok(ToolCall::new("threads", Vec::new(), Some(pr)))
        }
        (None, pr, Some(ShowTopic::Files), None) => {
            Ok(ToolCall::new("diff", vec!["--names".to_owned()], pr))
        }
        (None, pr, Some(ShowTopic::Diff), Some(n)) if n > 0 => Ok(ToolCall {
            nth: Some(n),
            ..ToolCall::new("diff", Vec::new(), pr)
        }),
        (None, pr, Some(ShowTopic::Diff), None) => Ok(ToolCall::new("diff", Vec::new(), pr)),
        _ => Err(usage(
            "say `id` alone, or `what` with `pr`; `n`, from 1, goes with `what: diff`",
        )),
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
        if reply_to.is_some() || to.is_some() || text.is_some() {
            return Err(usage(
                "an answer to a request takes `pr` and `fields`; its recipient is the author",
            ));
        }
        options.push("--findings=-".to_owned());
        let fields = Value::Object(fields.unwrap_or_default());
        return Ok(ToolCall::new(verb, options, pr).with_input(fields.to_string()));
    }
    let body = match (text, fields) {
        (Some(text), None) => text,
        // The body of a review message is YAML, and JSON is YAML.
        (None, Some(fields)) => Value::Object(fields).to_string(),
        (None, None) | (Some(_), Some(_)) => {
            return Err(usage("say what it contains: either `text` or `fields`"));
        }
    };
    options.extend([option("to", to), option("pr", pr)].into_iter().flatten());
    options.push("--body-file=-".to_owned());
    let call = match (reply_to, kind) {
        (Some(parent), kind) => {
            options.extend(option("type", kind));
            ToolCall::new("reply", options, Some(parent))
        }
        (None, Some(kind)) => ToolCall::new("send", options, Some(NameOrNumber(kind))),
        (None, None) => return Err(usage("say `type`, or `reply_to`")),
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
    let options = [
        option("for", what),
        option("id", wait.id),
        option("pr", wait.pr),
        option("timeout", Some(seconds)),
    ];
    ToolCall::new("wait", options.into_iter().flatten().collect(), None)
}

fn why(WhyArguments { pr, id, code }: WhyArguments) -> Result<ToolCall, CallRefusal> {
    match (pr, id, code) {
        (Some(pr), None, None) => Ok(ToolCall::new("why", Vec::new(), Some(pr))),
        (None, Some(id), None) => Ok(ToolCall::new("trace", Vec::new(), Some(id))),
        (None, None, Some(code)) => Ok(ToolCall::new("explain", Vec::new(), Some(code))),
        _ => Err(usage("say one of `pr`, `id` and `code`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The command of a call, or the message of its refusal.
    fn command(tool: &str, arguments: &Value) -> String {
        let arguments = arguments.as_object().expect("an object").clone();
        match ToolCall::read(tool, arguments) {
            Ok(ToolCall { words, input, nth }) => {
                let input = input.map(|input| format!(" < {input}"));
                let nth = nth.map(|nth| format!(" ({nth})"));
                words.join(" ") + &input.unwrap_or_default() + &nth.unwrap_or_default()
            }
            Err(CallRefusal::Here { exit, message }) => format!("{exit}: {message}"),
            Err(CallRefusal::Document(document)) => document,
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
        let pair = "2: `act` and `id` go together";
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
            ("next", json!({"act": "take"}), pair),
            ("next", json!({"id": "r-1"}), pair),
        ]);
    }

    #[test]
    fn show_says_which_part_of_what_it_shows() {
        let usage = "2: say `id` alone, or `what` with `pr`; `n`, from 1, goes with `what: diff`";
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
            ("show", json!({"what": "diff", "pr": 86, "n": 0}), usage),
            ("show", json!({"what": "files", "pr": 86, "n": 1}), usage),
            ("show", json!({"what": "threads"}), usage),
            ("show", json!({"id": "r-1", "pr": 86}), usage),
            ("show", json!({}), usage),
        ]);
    }

    #[test]
    fn an_answer_to_a_request_takes_its_fields_and_nothing_else() {
        let usage =
            "2: an answer to a request takes `pr` and `fields`; its recipient is the author";
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
                usage,
            ),
            (
                "send",
                json!({"type": "lgtm", "pr": 86, "to": "codex"}),
                usage,
            ),
            (
                "send",
                json!({"type": "feedback", "pr": 86, "reply_to": "r-1"}),
                usage,
            ),
        ]);
    }

    #[test]
    fn a_message_has_a_type_or_a_parent_and_one_body() {
        let body = "2: say what it contains: either `text` or `fields`";
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
                "2: say `type`, or `reply_to`",
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
        let usage = "2: say one of `pr`, `id` and `code`";
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
        let usage = "2: expected a number, or a name without `/`";
        assert_commands(&[
            ("show", json!({"id": "a/b"}), usage),
            ("show", json!({"id": "a\0b"}), usage),
            ("show", json!({"id": true}), usage),
            ("show", json!({"id": ["a"]}), usage),
            (
                "rm",
                json!({}),
                "2: there is no tool `rm`; there are next, show, send, wait and why",
            ),
        ]);
        assert!(command("next", &json!({"root": "/"})).starts_with("2: unknown field `root`"));
    }

    #[test]
    fn an_option_more_stands_before_what_is_named() {
        let words = ["diff", "--json", "--", "86"].map(str::to_owned);
        let more = ToolCall::and(&words, "--names".to_owned());
        assert_eq!(more, ["diff", "--names", "--json", "--", "86"]);
    }

    #[test]
    fn a_refusal_has_the_form_of_the_commands() {
        let here = CallRefusal::new(3, "no such file".to_owned()).json();
        let expected = json!({
            "schema_version": 1,
            "ok": false,
            "error": {"exit": 3, "message": "no such file"},
            "alerts": [],
            "next": [],
        });
        assert_eq!(serde_json::from_str(&here).ok(), Some(expected));
        assert_eq!(CallRefusal::Document("{}".to_owned()).json(), "{}");
    }
}
