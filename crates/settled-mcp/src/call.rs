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
            other => Err(usage(&format!("there is no tool `{other}`"))),
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
