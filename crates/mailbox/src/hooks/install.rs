//! Adds our hooks to the settings of an agent's program and removes them. Everything else in the file keeps its order
//! and exact text.

use serde::de::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Moment, Program};
use crate::in_order::in_order;

/// The time limit of a hook, in seconds; it takes milliseconds.
const TIMEOUT_S: u32 = 5;

/// The time limit in milliseconds, for the program that expects them.
const TIMEOUT_MS: u32 = TIMEOUT_S * 1_000;

/// A text that every command of ours contains.
const MARK: &str = " hook ";

impl Program {
    /// The file from which it reads a project's hooks, relative to the project.
    pub fn settings(self) -> &'static str {
        match self {
            Self::Claude => ".claude/settings.json",
            Self::Codex => ".codex/hooks.json",
            Self::Gemini => ".gemini/settings.json",
        }
    }

    fn timeout(self) -> u32 {
        match self {
            Self::Claude | Self::Codex => TIMEOUT_S,
            Self::Gemini => TIMEOUT_MS,
        }
    }

    /// Its word on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
        }
    }
}

/// A JSON object whose members keep their order and exact text.
#[derive(Debug, Default)]
struct Members(Vec<(String, Box<RawValue>)>);

/// Returns the settings with our hooks or, without a command, without them. `command` is our program with the options
/// for workspace and agent, quoted for a shell. The error says what is expected.
pub fn settings(before: &str, program: Program, command: Option<&str>) -> Result<String, String> {
    let mut top = read(before, "the file")?;
    let mut hooks = match top.get("hooks") {
        Some(raw) => read(raw.get(), "`hooks`")?,
        None => Members::default(),
    };
    for moment in [Moment::SessionStart, Moment::TurnEnd] {
        let event = moment.event(program);
        let mut groups: Vec<Value> = match hooks.get(event) {
            Some(raw) => serde_json::from_str(raw.get())
                .map_err(|_| format!("`hooks.{event}` is expected to be a list"))?,
            None => Vec::new(),
        };
        groups.retain(|group| !is_ours(group));
        if let Some(command) = command {
            let run = format!("{command}{MARK}{} --for {}", moment.word(), program.word());
            groups.push(
                json!({ "hooks": [{ "type": "command", "command": run, "timeout": program.timeout() }] }),
            );
        }
        hooks.put(
            event,
            if groups.is_empty() {
                None
            } else {
                Some(raw(&Value::from(groups)))
            },
        );
    }
    let rest = if hooks.0.is_empty() {
        None
    } else {
        Some(hooks.raw(2))
    };
    top.put("hooks", rest);
    Ok(top.raw(0).get().to_owned() + "\n")
}

/// True if every command of the group is ours; a command that only mentions us is not.
fn is_ours(group: &Value) -> bool {
    let commands = group["hooks"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let ours = |hook: &Value| {
        hook["command"].as_str().is_some_and(|command| {
            let words = |moment: Moment| format!("{MARK}{} --for ", moment.word());
            command.contains("settled")
                && [Moment::SessionStart, Moment::TurnEnd]
                    .iter()
                    .any(|moment| command.contains(&words(*moment)))
        })
    };
    !commands.is_empty() && commands.iter().all(ours)
}

fn read(text: &str, what: &str) -> Result<Members, String> {
    if text.trim().is_empty() {
        return Ok(Members::default());
    }
    serde_json::from_str(text)
        .map_err(|error| format!("{what} is expected to be a JSON object: {error}"))
}

fn raw(value: &Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).expect("a tree of values is JSON")
}

impl Members {
    fn get(&self, key: &str) -> Option<&RawValue> {
        self.0
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| &**value)
    }

    /// Replaces a member in place, appends it, or removes it.
    fn put(&mut self, key: &str, value: Option<Box<RawValue>>) {
        let at = self.0.iter().position(|(name, _)| name == key);
        match (at, value) {
            (Some(at), Some(value)) => self.0[at].1 = value,
            (Some(at), None) => drop(self.0.remove(at)),
            (None, Some(value)) => self.0.push((key.to_owned(), value)),
            (None, None) => {}
        }
    }

    /// Writes one member per line, indented by `indent` and two more blanks.
    fn raw(&self, indent: usize) -> Box<RawValue> {
        let member = |(key, value): &(String, Box<RawValue>)| {
            format!(
                "\n{:indent$}  {}: {}",
                "",
                Value::from(key.as_str()),
                value.get()
            )
        };
        let members: Vec<String> = self.0.iter().map(member).collect();
        let text = match members.is_empty() {
            true => "{}".to_owned(),
            false => format!("{{{}\n{:indent$}}}", members.join(","), ""),
        };
        RawValue::from_string(text).expect("an object of JSON values is JSON")
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        in_order(deserializer).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMAND: &str = "settled --root /srv/mailroom --agent codex";

    #[test]
    fn what_was_there_stays_and_the_second_time_changes_nothing() {
        let before = "{\n  \"model\":   \"opus\",\n  \"hooks\": {\"Stop\": [{\"hooks\": [{\"type\": \"command\", \
                      \"command\": \"say done\"}]}]},\n  \"a\": [1,\n 2]\n}\n";
        let once = settings(before, Program::Claude, Some(COMMAND)).expect("settings");
        assert!(
            once.starts_with("{\n  \"model\": \"opus\",\n  \"hooks\": {"),
            "{once}"
        );
        assert!(once.ends_with("\"a\": [1,\n 2]\n}\n"), "{once}");
        let parsed: Value = serde_json::from_str(&once).expect("JSON");
        assert_eq!(parsed["hooks"]["Stop"].as_array().map(Vec::len), Some(2));
        assert_eq!(
            parsed["hooks"]["SessionStart"][0]["hooks"][0]["command"],
            format!("{COMMAND} hook session-start --for claude")
        );
        assert_eq!(
            settings(&once, Program::Claude, Some(COMMAND)).as_deref(),
            Ok(once.as_str())
        );
        let moved = settings(
            &once,
            Program::Claude,
            Some("settled --root /other --agent codex"),
        )
        .expect("settings");
        assert!(!moved.contains("/srv/mailroom"), "{moved}");
        let without = settings(&once, Program::Claude, None).expect("settings");
        let parsed: Value = serde_json::from_str(&without).expect("JSON");
        assert_eq!(parsed, serde_json::from_str::<Value>(before).expect("JSON"));
    }

    #[test]
    fn a_file_that_is_none_or_is_empty_gets_all_and_keeps_nothing() {
        let made = settings("", Program::Codex, Some(COMMAND)).expect("settings");
        assert_eq!(settings(&made, Program::Codex, None).as_deref(), Ok("{}\n"));
    }

    #[test]
    fn gemini_ends_a_turn_by_another_name_and_counts_milliseconds() {
        let made = settings("", Program::Gemini, Some(COMMAND)).expect("settings");
        let parsed: Value = serde_json::from_str(&made).expect("JSON");
        let hook = &parsed["hooks"]["AfterAgent"][0]["hooks"][0];
        assert_eq!(
            hook["command"],
            format!("{COMMAND} hook turn-end --for gemini")
        );
        assert_eq!(hook["timeout"], 5_000);
    }

    #[test]
    fn what_is_no_object_is_told_and_not_touched() {
        for text in [
            "[]",
            "{",
            "{\"hooks\": []}",
            "{\"hooks\": {\"Stop\": {}}}",
            "// comment\n{}",
        ] {
            let told = settings(text, Program::Claude, Some(COMMAND)).expect_err("no settings");
            assert!(told.contains("is expected to be"), "{text}: {told}");
        }
    }

    #[test]
    fn only_groups_whose_every_command_is_ours_are_replaced() {
        let group = |commands: &[&str]| {
            let hooks = commands.iter().map(|command| json!({ "command": command }));
            json!({ "hooks": hooks.collect::<Vec<_>>() })
        };
        let ours = "settled --root /other hook turn-end --for claude";
        for (commands, is_kept) in [
            (&[ours][..], false),
            (
                &[ours, "/opt/settled hook session-start --for codex"],
                false,
            ),
            (&[ours, "say done"], true),
            (&["say settled"], true),
            (&["mine hook turn-end --for claude"], true),
            (&[], true),
        ] {
            let group = group(commands);
            let before = json!({ "hooks": { "Stop": [group] } }).to_string();
            let after = settings(&before, Program::Claude, None).expect("settings");
            assert_eq!(after.contains("Stop"), is_kept, "{commands:?}: {after}");
        }
    }

    #[test]
    fn each_program_is_called_at_its_own_events_from_its_own_file() {
        for (program, file, end, timeout) in [
            (Program::Claude, ".claude/settings.json", "Stop", 5),
            (Program::Codex, ".codex/hooks.json", "Stop", 5),
            (
                Program::Gemini,
                ".gemini/settings.json",
                "AfterAgent",
                5_000,
            ),
        ] {
            assert_eq!(program.settings(), file);
            let word = program.word();
            let hook = |moment: &str| {
                let command = format!("{COMMAND} hook {moment} --for {word}");
                json!([{ "hooks": [{ "type": "command", "command": command, "timeout": timeout }] }])
            };
            let made = settings("{\"a\": 1}", program, Some(COMMAND)).expect("settings");
            let parsed: Value = serde_json::from_str(&made).expect("JSON");
            let hooks = json!({ "SessionStart": hook("session-start"), end: hook("turn-end") });
            assert_eq!(parsed, json!({ "a": 1, "hooks": hooks }), "{word}");
            let lines: Vec<&str> = made.lines().collect();
            assert_eq!(lines[1..4], ["  \"a\": 1,", "  \"hooks\": {", lines[3]]);
            assert!(lines[3].starts_with("    \"SessionStart\": ["), "{made}");
            assert_eq!(lines[lines.len() - 2..], ["  }", "}"], "{made}");
        }
    }
}
