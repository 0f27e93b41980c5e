//! The four programs: where each keeps its settings, how it finds the scripted server, and the tested set-ups, which
//! `docs/agents.md` prints.

use std::path::{Path, PathBuf};

use serde_json::json;
use settled_tests::{read, repository, write};

use super::rows::Walls;

/// A program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    Claude,
    Codex,
    Gemini,
    OpenCode,
}

/// The way a program is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Plain,
    Schema,
    Shell,
    Mcp,
}

/// The tested set-up of a program, from its file.
pub(super) struct SetUp(toml::Table);

impl Program {
    pub(super) const ALL: [Self; 4] = [Self::Claude, Self::Codex, Self::Gemini, Self::OpenCode];

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::OpenCode => "opencode",
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::OpenCode => "opencode",
        }
    }

    pub(super) fn package(self) -> &'static str {
        match self {
            Self::Claude => "@anthropic-ai/claude-code",
            Self::Codex => "@openai/codex",
            Self::Gemini => "@google/gemini-cli",
            Self::OpenCode => "opencode-ai",
        }
    }

    /// Returns the error type with which its service reports a used-up quota.
    pub(super) fn quota(self) -> &'static str {
        match self {
            Self::Claude | Self::OpenCode => "rate_limit_error",
            Self::Codex => "usage_limit_reached",
            Self::Gemini => "RESOURCE_EXHAUSTED",
        }
    }

    /// Returns its settings file in the bare home.
    pub(super) fn settings(self, home: &Path) -> Option<PathBuf> {
        let file = match self {
            Self::Claude => return None,
            Self::Codex => ".codex/config.toml",
            Self::Gemini => ".gemini/settings.json",
            Self::OpenCode => ".config/opencode/opencode.json",
        };
        Some(home.join(file))
    }

    /// Switches off, in its section, every restriction that the program itself puts on its model.
    pub(super) fn unbind(self, section: &mut toml::Table) {
        let words = match self {
            Self::Claude => &["--dangerously-skip-permissions"][..],
            Self::Codex => &["--dangerously-bypass-approvals-and-sandbox"],
            Self::Gemini => &["--approval-mode", "yolo"],
            Self::OpenCode => &[],
        };
        let words = words.iter().map(|word| toml::Value::from(*word));
        let command = section
            .get_mut("command")
            .and_then(toml::Value::as_array_mut);
        let command = command.expect("each set-up has one");
        if self == Self::Codex {
            // The option with the prompt comes last. Its own sandbox is an option, which a section with our sandbox
            // lacks already.
            let own = command
                .iter()
                .position(|word| word.as_str() == Some("--sandbox"));
            if let Some(at) = own {
                command.splice(at..at + 2, words);
            }
        } else {
            command.extend(words);
        }
        let env = section.get_mut("env").and_then(toml::Value::as_table_mut);
        let env = env.expect("each section has one");
        match self {
            // It refuses to do so as root, except in a sandbox, which it does not verify.
            Self::Claude => env.insert("IS_SANDBOX".to_owned(), "1".into()),
            Self::OpenCode => {
                let all = r#"{"*":"allow","external_directory":"allow"}"#;
                env.insert("OPENCODE_PERMISSION".to_owned(), all.into())
            }
            Self::Codex | Self::Gemini => None,
        };
    }

    pub(super) fn set_up(self) -> SetUp {
        let path = format!("crates/setup/src/programs/{}.toml", self.word());
        let text = read(repository().join(path));
        SetUp(text.parse().expect("a table"))
    }

    /// Makes a bare home that points to this address, and returns the program's environment. Telemetry, updates and
    /// retries are off.
    pub(super) fn home(self, home: &Path, address: &str) -> Vec<(String, String)> {
        let folder = |name: &str| {
            let folder = home.join(name);
            std::fs::create_dir_all(&folder).expect("room in the build folder");
            folder
        };
        let mut environment = vec![("HOME", home.display().to_string())];
        match self {
            Self::Claude => environment.extend([
                ("ANTHROPIC_BASE_URL", address.to_owned()),
                ("ANTHROPIC_API_KEY", "scripted".to_owned()),
                ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
                ("CLAUDE_CODE_MAX_RETRIES", "1".to_owned()),
            ]),
            Self::Codex => {
                let text = format!(
                    "model = \"gpt-5-codex\"\nmodel_provider = \"scripted\"\ncheck_for_update_on_startup = false\n\
                     [analytics]\nenabled = false\n[otel]\nexporter = \"none\"\n[model_providers.scripted]\n\
                     name = \"scripted\"\nbase_url = \"{address}/v1\"\nwire_api = \"responses\"\n\
                     env_key = \"SCRIPTED_KEY\"\nrequest_max_retries = 0\nstream_max_retries = 1\n"
                );
                let home = folder(".codex");
                write(home.join("config.toml"), &text);
                environment.extend([
                    ("CODEX_HOME", home.display().to_string()),
                    ("SCRIPTED_KEY", "scripted".to_owned()),
                ]);
            }
            Self::Gemini => {
                let settings = json!({
                    "security": { "auth": { "selectedType": "gemini-api-key" } },
                    "privacy": { "usageStatisticsEnabled": false },
                    "telemetry": { "enabled": false },
                    "general": { "enableAutoUpdate": false, "enableAutoUpdateNotification": false, "maxAttempts": 1 },
                    "model": { "name": "gemini-2.5-pro" },
                    "mcpServers": { "settled": { "command": "settled", "args": ["mcp"], "trust": true } },
                });
                write(
                    folder(".gemini").join("settings.json"),
                    &settings.to_string(),
                );
                environment.extend([
                    ("GEMINI_API_KEY", "scripted".to_owned()),
                    ("GOOGLE_GEMINI_BASE_URL", address.to_owned()),
                ]);
            }
            Self::OpenCode => {
                let config = json!({
                    "autoupdate": false,
                    "share": "disabled",
                    "model": "anthropic/claude-sonnet-4-5",
                    "provider": { "anthropic": { "options": {
                        "baseURL": format!("{address}/v1"), "apiKey": "scripted"
                    } } },
                });
                write(
                    folder(".config/opencode").join("opencode.json"),
                    &config.to_string(),
                );
                environment.extend([
                    (
                        "XDG_CONFIG_HOME",
                        home.join(".config").display().to_string(),
                    ),
                    (
                        "XDG_DATA_HOME",
                        home.join(".local/share").display().to_string(),
                    ),
                    ("XDG_CACHE_HOME", home.join(".cache").display().to_string()),
                    (
                        "XDG_STATE_HOME",
                        home.join(".local/state").display().to_string(),
                    ),
                    ("OPENCODE_DISABLE_MODELS_FETCH", "1".to_owned()),
                ]);
            }
        }
        environment
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }
}

impl Program {
    /// Moves its service and login from the variables into the file where a person keeps them, if it has one: a program
    /// with both as variables reads no other file that names them.
    pub(super) fn keep_in_file(self, home: &Path, environment: &mut Vec<(String, String)>) {
        if self != Self::Gemini {
            return;
        }
        let is_kept = |(name, _): &mut (String, String)| {
            ["GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL"].contains(&name.as_str())
        };
        let kept = environment.extract_if(.., is_kept);
        let lines = kept.map(|(name, value)| format!("{name}={value}\n"));
        write(home.join(".gemini/.env"), &lines.collect::<String>());
    }
}

impl SetUp {
    /// Returns the section of `settled.toml` for an agent started in this directory; `None` if the program has no such
    /// form.
    pub(super) fn section(&self, form: Form, walls: Walls, workdir: &str) -> Option<toml::Table> {
        let key = match form {
            Form::Plain => "command",
            Form::Schema => "command_schema",
            Form::Shell => "command_shell",
            Form::Mcp => "command_mcp",
        };
        let command = match walls {
            Walls::Sandbox => self.0.get("command_sandbox").or(self.0.get(key))?,
            Walls::None => self.0.get(key)?,
        };
        let mut section = toml::Table::new();
        section.insert("command".to_owned(), command.clone());
        section.insert("output".to_owned(), self.0.get("output")?.clone());
        section.insert("workdir".to_owned(), workdir.into());
        if let Some(names) = self.0.get("leave_out") {
            section.insert("leave_out".to_owned(), names.clone());
        }
        section.insert("env".to_owned(), self.env(form).into());
        Some(section)
    }

    /// The variables, including those of the form.
    fn env(&self, form: Form) -> toml::Table {
        let besides = match form {
            Form::Mcp => Some("env_mcp"),
            Form::Shell => Some("env_shell"),
            Form::Plain | Form::Schema => None,
        };
        let keys = ["env"].into_iter().chain(besides);
        let tables = keys.filter_map(|key| self.0.get(key)?.as_table());
        tables.flat_map(toml::Table::clone).collect()
    }

    /// Returns the command line for one side of a pair.
    pub(super) fn pair(&self, role: &str) -> &str {
        let line = self.0.get(role).and_then(toml::Value::as_str);
        line.expect("a command line for each side of a pair")
    }
}
