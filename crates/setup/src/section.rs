//! The section of an agent in `settled.toml`.

#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use message_schema::id::AgentName;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, value};
use workspace::atomic_file;
use workspace::config::{self, Config, ConfigError, FILE};

/// The keys that a set-up decides; a person decides all others.
const KEYS: [&str; 7] = [
    "command",
    "output",
    "workdir",
    "leave_out",
    "sandbox",
    "env",
    "vendor",
];

/// A program with a tried set-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownProgram {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// opencode.
    OpenCode,
}

/// The way an agent answers, and whether it runs in a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetUpForm {
    /// It prints its answer.
    Plain,
    /// It answers with the tools of `settled mcp`.
    Mcp,
    /// It prints its answer, in a sandbox.
    Sandbox,
}

/// The parts of the section that starts an agent.
#[derive(Clone, Debug)]
pub struct SetUp {
    /// The program's name for people; `None` for a custom command.
    pub title: Option<String>,
    /// The permissions it has on this machine.
    pub may: String,
    /// The tried version.
    pub tried: Option<String>,
    /// Its npm package.
    pub npm: Option<String>,
    /// A sentence on what its own settings need first, where no option sets it.
    pub settings: Option<String>,
    table: Table,
}

/// The treatment of another command that the agent already has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherCommand {
    /// It stays, and nothing is written.
    Kept,
    /// The new one takes its place.
    Replaced,
}

/// The result of adding a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddOutcome {
    /// The section was written.
    Written,
    /// The file has it already.
    Same,
}

/// The reason the section was not written.
#[derive(Debug, thiserror::Error)]
pub enum SectionError {
    /// The file cannot be read or written.
    #[error("{path}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The file is not a config.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The section would make the config invalid. Nothing was written.
    #[error("cannot write the agent's section: {message}")]
    Refused {
        /// The error and what would have been accepted.
        message: String,
    },
    /// The agent has another command.
    #[error("{agent} already has another command: {command}")]
    Other {
        /// The agent.
        agent: AgentName,
        /// Its command.
        command: String,
    },
}

impl KnownProgram {
    /// All known programs.
    pub const ALL: [Self; 4] = [Self::Claude, Self::Codex, Self::Gemini, Self::OpenCode];

    /// Returns its word on the command line, which is also the name of the program.
    pub fn word(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::OpenCode => "opencode",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Claude => include_str!("programs/claude.toml"),
            Self::Codex => include_str!("programs/codex.toml"),
            Self::Gemini => include_str!("programs/gemini.toml"),
            Self::OpenCode => include_str!("programs/opencode.toml"),
        }
    }

    fn table(self) -> DocumentMut {
        self.text().parse().expect("the file is ours, and tried")
    }

    /// Returns the instruction for a person to log in.
    pub fn login(self) -> String {
        text(&self.table(), "login").expect("each file has one")
    }

    /// Returns its name for people.
    pub fn title(self) -> String {
        text(&self.table(), "title").expect("each file has one")
    }

    /// Returns the version with which its set-up was tried.
    pub fn tried(self) -> String {
        text(&self.table(), "tried").expect("each file has one")
    }

    /// Returns the program that a command starts, by its file name.
    pub fn of_command(command: &[String]) -> Option<Self> {
        let name = Path::new(command.first()?).file_name()?;
        Self::ALL.into_iter().find(|known| name == known.word())
    }

    /// Returns its set-up for code in `workdir`, started as `program`.
    pub fn set_up(self, program: &Path, workdir: &Path, form: SetUpForm) -> SetUp {
        let known = self.table();
        let own = match form {
            SetUpForm::Plain => None,
            SetUpForm::Mcp => known.get("command_mcp"),
            SetUpForm::Sandbox => known.get("command_sandbox"),
        };
        let command = own.or(known.get("command")).and_then(Item::as_array);
        let mut command = command.expect("each file has one").clone();
        command.replace(0, program.display().to_string());
        let mut env = InlineTable::new();
        let besides = (form == SetUpForm::Mcp).then_some("env_mcp");
        for key in ["env"].into_iter().chain(besides) {
            for (name, text) in known
                .get(key)
                .and_then(Item::as_table)
                .into_iter()
                .flatten()
            {
                env.insert(name, text.as_value().expect("a text").clone());
            }
        }
        let output = text(&known, "output").expect("each file has one");
        let mut table = table(command, &output, workdir, env, text(&known, "vendor"));
        if let Some(names) = known.get("leave_out") {
            table["leave_out"] = names.clone();
        }
        let mut may = text(&known, "may").expect("each file has one");
        if form == SetUpForm::Sandbox {
            let walls = known["sandbox"].as_table().expect("each file has one");
            may = format!(
                "read the code and the folder of its run, and reach {}; a sandbox keeps the rest of this machine from it",
                named(&walls["network"])
            );
            let mut walls = walls.clone().into_inline_table();
            walls.fmt();
            table["sandbox"] = value(walls);
        }
        SetUp {
            title: text(&known, "title"),
            may,
            tried: text(&known, "tried"),
            npm: text(&known, "npm"),
            settings: text(&known, "mcp_settings")
                .filter(|_| form == SetUpForm::Mcp)
                .map(|entry| {
                    let title = self.title();
                    format!("{title} starts only the servers of its own settings: ~/.gemini/settings.json needs {entry}")
                }),
            table,
        }
    }
}

/// Returns the absolute path of the code's directory, or the reason why it is none.
pub fn directory(named: &Path) -> Result<PathBuf, String> {
    let found = named.canonicalize();
    let found = found.map_err(|error| format!("{}: {error}", named.display()))?;
    if found.is_dir() {
        Ok(found)
    } else {
        Err(format!("{} is not a directory", named.display()))
    }
}

/// Joins a list with commas.
fn named(list: &Item) -> String {
    let list = list.as_array().into_iter().flatten();
    let words: Vec<&str> = list.filter_map(|word| word.as_str()).collect();
    words.join(", ")
}

fn text(known: &DocumentMut, key: &str) -> Option<String> {
    known.get(key).and_then(Item::as_str).map(str::to_owned)
}

fn table(
    mut command: Array,
    output: &str,
    workdir: &Path,
    env: InlineTable,
    vendor: Option<String>,
) -> Table {
    for word in command.iter_mut() {
        word.decor_mut().clear();
    }
    command.set_trailing("");
    command.set_trailing_comma(false);
    let mut table = Table::new();
    table["command"] = value(command);
    table["output"] = value(output);
    table["workdir"] = value(workdir.display().to_string());
    if !env.is_empty() {
        table["env"] = value(env);
    }
    if let Some(vendor) = vendor {
        table["vendor"] = value(vendor);
    }
    table
}

impl SetUp {
    /// Makes the set-up of a custom command with plain text as output. A relative path of the program becomes absolute,
    /// because the daemon starts it elsewhere.
    pub fn custom(command: &[String], workdir: &Path) -> Self {
        let mut command = command.to_vec();
        if let Some(program) = command.first_mut().filter(|program| program.contains('/'))
            && let Ok(whole) = std::path::absolute(&*program)
        {
            *program = whole.display().to_string();
        }
        Self {
            title: None,
            may: "do whatever the daemon's user may: nothing confines it".to_owned(),
            tried: None,
            npm: None,
            settings: None,
            table: table(
                command.iter().collect(),
                "text",
                workdir,
                InlineTable::new(),
                None,
            ),
        }
    }

    /// Returns the text of the section in the file.
    pub fn section(&self, agent: &AgentName) -> String {
        let mut document = DocumentMut::new();
        put(&mut document, agent, self);
        document.to_string().trim_start().to_owned()
    }

    /// Writes the section of an agent. Leaves other keys, other sections and comments as they are.
    pub fn write(
        &self,
        root: &Path,
        agent: &AgentName,
        other: OtherCommand,
    ) -> Result<AddOutcome, SectionError> {
        let path = root.join(FILE);
        let failed = |source| SectionError::Io {
            path: path.clone(),
            source,
        };
        let _lock = atomic_file::lock(root).map_err(failed)?;
        let before = match config::read_text(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            read => read.map_err(failed)?,
        };
        let config = Config::parse(&before, &path)?;
        let command = config
            .agents
            .get(agent)
            .map(|section| section.command.as_slice());
        let mut document: DocumentMut = before.parse().expect("the config was read");
        put(&mut document, agent, self);
        let after = document.to_string();
        let wanted = Config::parse(&after, &path).map_err(|error| match error {
            // Its line numbers belong to a text that nobody sees.
            ConfigError::Invalid { message, .. } => SectionError::Refused { message },
            error @ ConfigError::Unreadable { .. } => error.into(),
        })?;
        if wanted == config {
            return Ok(AddOutcome::Same);
        }
        if let Some(command @ [_, ..]) = command
            && other == OtherCommand::Kept
        {
            return Err(SectionError::Other {
                agent: agent.clone(),
                command: command.join(" "),
            });
        }
        atomic_file::replace(&path, &after).map_err(failed)?;
        Ok(AddOutcome::Written)
    }
}

fn put(document: &mut DocumentMut, agent: &AgentName, set_up: &SetUp) {
    let is_new = document
        .get("agents")
        .and_then(|agents| agents.get(agent.as_str()))
        .is_none();
    // Comments at the end of the file stay above the new section.
    let above = if is_new {
        let above = document.trailing().as_str().unwrap_or_default().to_owned();
        document.set_trailing("");
        above
    } else {
        String::new()
    };
    let agents = document.entry("agents").or_insert_with(|| {
        let mut agents = Table::new();
        agents.set_implicit(true);
        Item::Table(agents)
    });
    let Some(agents) = agents.as_table_like_mut() else {
        return;
    };
    let mut new = Table::new();
    if is_new {
        let comment = comment(set_up);
        new.decor_mut().set_prefix(format!("{above}\n{comment}"));
    }
    let section = agents.entry(agent.as_str()).or_insert(Item::Table(new));
    if let Some(section) = section.as_table_mut()
        && !is_new
    {
        promise(section, set_up);
    }
    let Some(section) = section.as_table_like_mut() else {
        return;
    };
    let is_other = program(section.get("command")) != program(set_up.table.get("command"));
    for key in KEYS {
        match set_up.table.get(key) {
            Some(item) => {
                let mut item = item.clone();
                // Keep a comment after the value.
                if let (Some(old), Some(new)) = (
                    section.get(key).and_then(Item::as_value),
                    item.as_value_mut(),
                ) {
                    *new.decor_mut() = old.decor().clone();
                }
                section.insert(key, item);
            }
            // Only a person knows the vendor behind a custom command, so keep the key; for another program it is
            // unknown.
            None if key != "vendor" || is_other => {
                section.remove(key);
            }
            None => {}
        }
    }
}

/// The file name of a command's program.
fn program(command: Option<&Item>) -> Option<&OsStr> {
    let words = command?.as_array()?;
    Path::new(words.get(0)?.as_str()?).file_name()
}

/// The comment above a section, which says what the program may do.
fn comment(set_up: &SetUp) -> String {
    let title = set_up.title.as_deref().unwrap_or("A command of your own");
    let tried = set_up
        .tried
        .as_ref()
        .map_or_else(String::new, |version| format!(" {version}"));
    format!("# {title}{tried}. It may {}.\n", set_up.may)
}

/// Replaces our comment of an older set-up; a person's comments stay.
fn promise(section: &mut Table, set_up: &SetUp) {
    let above = section.decor().prefix().and_then(|prefix| prefix.as_str());
    let above = above.unwrap_or_default();
    let is_ours = |line: &str| line.starts_with("# ") && line.contains(". It may ");
    let lines = above.split_inclusive('\n').map(|line| {
        if is_ours(line) {
            comment(set_up)
        } else {
            line.to_owned()
        }
    });
    let new: String = lines.collect();
    section.decor_mut().set_prefix(new);
}
