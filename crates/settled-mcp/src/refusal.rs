//! A refusal as a model gets it: the output of a command, or the same form if no command ran. Each has a `code`, a
//! place (`field`) and a `fix`, because a model that reads only "no" tries the same again.

use serde_json::{Map, Value, json};

/// A call without a command, or a command without an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CallRefusal {
    /// Refused here: the arguments are wrong, or the command cannot run.
    Here(OwnRefusal),
    /// Refused by the command, in these words.
    Document {
        text: String,
        /// The argument that names the command's subject.
        about: &'static str,
    },
}

/// A refusal of this program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OwnRefusal {
    pub(crate) exit: u64,
    pub(crate) code: &'static str,
    pub(crate) field: String,
    pub(crate) message: String,
    pub(crate) fix: String,
}

impl CallRefusal {
    /// Refuses arguments that fit no command.
    pub(crate) fn argument(field: &str, message: &str, fix: &str) -> Self {
        Self::Here(OwnRefusal {
            exit: 2,
            code: "argument_invalid",
            field: field.to_owned(),
            message: message.to_owned(),
            fix: fix.to_owned(),
        })
    }

    /// Reports a command that could not complete.
    pub(crate) fn machine(message: String) -> Self {
        Self::Here(OwnRefusal {
            exit: 1,
            code: code_of(1),
            field: "tool".to_owned(),
            message,
            fix: "tell a person: the program `settled` of this server does not run".to_owned(),
        })
    }

    /// Returns the refusal in the form of the commands' `--json`.
    pub(crate) fn json(self) -> String {
        match self {
            Self::Here(OwnRefusal {
                exit,
                code,
                field,
                message,
                fix,
            }) => json!({
                "schema_version": 1,
                "ok": false,
                "error": { "exit": exit, "code": code, "message": message, "field": field, "fix": fix },
                "alerts": [],
                "next": [],
            })
            .to_string(),
            Self::Document { text, about } => completed(&text, about),
        }
    }
}

/// Adds to a command's refusal the keys of `error` that it lacks; the others stay as they are.
fn completed(text: &str, about: &str) -> String {
    let mut document: Value = serde_json::from_str(text).unwrap_or_default();
    let violation = ["/data/violations/0", "/data/report/violations/0"];
    let violation = violation
        .iter()
        .find_map(|at| document.pointer(at))
        .cloned();
    let violation = violation.unwrap_or_default();
    let run = document.pointer("/next/0/run").and_then(Value::as_str);
    let run = run.map(|run| format!("see `{run}`, as the tool of that name"));
    let Some(error) = document.get_mut("error").and_then(Value::as_object_mut) else {
        return CallRefusal::machine("its command ended without an answer".to_owned()).json();
    };
    let exit = error.get("exit").and_then(Value::as_u64).unwrap_or(1);
    let or = |key: &str, otherwise: &str| {
        let of_violation = violation[key].as_str();
        of_violation.unwrap_or(otherwise).to_owned()
    };
    let fix = run.unwrap_or_else(|| fix_of(exit).to_owned());
    let message = error.get("message").and_then(Value::as_str);
    let named = message.and_then(argument_of).unwrap_or(about);
    for (key, value) in [
        ("code", or("code", code_of(exit))),
        ("field", or("field", named)),
        ("fix", or("fix", &fix)),
    ] {
        put(error, key, value);
    }
    document.to_string()
}

/// The tool's argument that a command line names as one of its options, as in `invalid value 'x' for '--id <ID>': …`. The
/// value before it may hold the same words, and the reason after it.
fn argument_of(message: &str) -> Option<&'static str> {
    let before_reason = message.split("': ").next()?;
    let (_, option) = before_reason.rsplit_once(" for '--")?;
    match option.split([' ', '\'']).next()? {
        "id" => Some("id"),
        "to" => Some("to"),
        "pr" => Some("pr"),
        "subject" => Some("subject"),
        "timeout" => Some("seconds"),
        _ => None,
    }
}

fn put(error: &mut Map<String, Value>, key: &str, value: String) {
    error.entry(key).or_insert(Value::String(value));
}

/// The code for an exit code, if no rule of the protocol caused the refusal.
pub(crate) fn code_of(exit: u64) -> &'static str {
    match exit {
        2 => "argument_invalid",
        3 => "not_found",
        5 => "not_permitted",
        7 => "refused",
        8 => "not_approved",
        9 => "try_again",
        _ => "failed",
    }
}

/// The fix for an exit code, if the command names none.
fn fix_of(exit: u64) -> &'static str {
    match exit {
        2 => "correct the argument as `message` says",
        3 => "name one that exists: the tool `next` lists what waits for you",
        5 => "a person has to do this: tell them",
        9 => "call the tool again in a few seconds",
        _ => "correct what `message` names, or call the tool `why`",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn error(refusal: CallRefusal) -> Value {
        let document: Value = serde_json::from_str(&refusal.json()).expect("JSON");
        assert_eq!(document["ok"], false, "{document}");
        document["error"].clone()
    }

    fn document(document: &Value) -> CallRefusal {
        CallRefusal::Document {
            text: document.to_string(),
            about: "id",
        }
    }

    #[test]
    fn a_refusal_without_a_command_has_the_form_of_the_commands() {
        let here = CallRefusal::argument("n", "no such file", "say another").json();
        let expected = json!({
            "schema_version": 1,
            "ok": false,
            "error": {
                "exit": 2,
                "code": "argument_invalid",
                "message": "no such file",
                "field": "n",
                "fix": "say another",
            },
            "alerts": [],
            "next": [],
        });
        assert_eq!(serde_json::from_str(&here).ok(), Some(expected));
    }

    #[test]
    fn a_commands_refusal_keeps_its_words_and_gets_what_it_lacks() {
        let bare = json!({"ok": false, "error": {"exit": 3, "message": "no message q-9"}});
        assert_eq!(
            error(document(&bare)),
            json!({
                "exit": 3,
                "message": "no message q-9",
                "code": "not_found",
                "field": "id",
                "fix": "name one that exists: the tool `next` lists what waits for you",
            })
        );
        let told = json!({
            "ok": false,
            "error": {"exit": 1, "code": "body_field_missing", "message": "m"},
            "data": {"violations": [{"code": "body_field_missing", "field": "body.branch", "fix": "add it"}]},
            "next": [{"run": "settled threads 86"}],
        });
        let told = error(document(&told));
        assert_eq!(told["code"], "body_field_missing");
        assert_eq!(
            (&told["field"], &told["fix"]),
            (&json!("body.branch"), &json!("add it"))
        );
        let next = json!({"ok": false, "error": {"exit": 1, "message": "m"}, "next": [{"run": "settled brief 86"}]});
        let next = error(document(&next));
        assert_eq!(
            next["fix"],
            "see `settled brief 86`, as the tool of that name"
        );
    }

    #[test]
    fn an_exit_code_has_its_own_code_and_its_own_fix() {
        let about = "correct what `message` names, or call the tool `why`";
        for (exit, code, fix) in [
            (1, "failed", about),
            (
                2,
                "argument_invalid",
                "correct the argument as `message` says",
            ),
            (
                3,
                "not_found",
                "name one that exists: the tool `next` lists what waits for you",
            ),
            (5, "not_permitted", "a person has to do this: tell them"),
            (7, "refused", about),
            (8, "not_approved", about),
            (9, "try_again", "call the tool again in a few seconds"),
        ] {
            let bare = json!({"ok": false, "error": {"exit": exit, "message": "m"}});
            let error = error(document(&bare));
            assert_eq!(
                (&error["code"], &error["fix"]),
                (&json!(code), &json!(fix)),
                "{exit}"
            );
        }
    }

    #[test]
    fn a_wrong_option_is_named_as_the_argument_that_it_came_from() {
        for (message, field) in [
            (
                "invalid value '../x' for '--id <ID>': expected a message id",
                "id",
            ),
            (
                "invalid value '9' for '--timeout <TIME>': `9` for '--id' is no time",
                "seconds",
            ),
            (
                "invalid value 'a for '--to' for '--pr <NUMBER>': expected a number",
                "pr",
            ),
            ("invalid value 'x' for '--subject <TEXT>': no", "subject"),
            ("invalid value 'x' for '--to <AGENT>': no", "to"),
            ("invalid value 'x' for '--findings <FILE>': no", "type"),
            ("invalid value 'x' for '<TYPE>': no", "type"),
        ] {
            let refused = json!({"ok": false, "error": {"exit": 2, "message": message}});
            let refused = CallRefusal::Document {
                text: refused.to_string(),
                about: "type",
            };
            assert_eq!(error(refused)["field"], field, "{message}");
        }
    }

    #[test]
    fn a_command_that_prints_nothing_is_a_refusal_too() {
        let silent = CallRefusal::Document {
            text: String::new(),
            about: "pr",
        };
        let silent = error(silent);
        assert_eq!(silent["message"], "its command ended without an answer");
        assert!(silent["fix"].is_string() && silent["field"].is_string());
    }
}
