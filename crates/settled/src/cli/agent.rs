//! `settled agent add`: gives an agent its mailboxes and the tested configuration of its program.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use message_schema::id::AgentName;
use runner::program;
use serde::Serialize;
use setup::section::{self, SetUp};
use setup::{AddOutcome, KnownProgram, OtherCommand, SectionError, SetUpForm, Versions};
use workspace::{directory, shell};

use super::answer::CommandOutput;
use super::context::Context;
use super::failure::Failure;
use crate::exit::Exit;

/// Sets up the agents that the daemon starts.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled agent add codex --program codex
  settled agent add claude --program claude --repository ../project --mcp
  settled agent add mine --program custom -- ./review.sh {brief}")]
pub(super) struct Args {
    #[command(subcommand)]
    command: AgentCommand,
}

#[derive(Debug, clap::Subcommand)]
enum AgentCommand {
    /// Write the tried set-up of a program into settled.toml
    Add(AddArgs),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled agent add codex --program codex --repository ../project
  settled agent add claude --program claude --mcp --dry-run
  settled agent add mine --program custom -- ./review.sh {brief}")]
struct AddArgs {
    /// The agent
    #[arg(value_name = "NAME", value_parser = directory::agent_name)]
    name: AgentName,
    /// Its program
    #[arg(long, value_enum, value_name = "PROGRAM")]
    program: ProgramWord,
    /// The code it reviews [default: the current directory]
    #[arg(
        long,
        value_name = "DIR",
        default_value = ".",
        hide_default_value = true
    )]
    repository: PathBuf,
    /// Let it answer by the tools of `settled mcp`
    #[arg(long)]
    mcp: bool,
    /// Run it in a sandbox made by bwrap, with its service as the only host
    #[arg(long, conflicts_with = "mcp")]
    sandbox: bool,
    /// Replace another command of the agent
    #[arg(long)]
    replace: bool,
    /// Print the section and write nothing
    #[arg(long)]
    dry_run: bool,
    /// The command of `--program custom`
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ProgramWord {
    Claude,
    Codex,
    Gemini,
    #[value(name = "opencode")]
    OpenCode,
    Custom,
}

#[derive(Debug, Serialize)]
struct AgentView {
    agent: AgentName,
    #[serde(serialize_with = "spool::path_text::serialize")]
    file: PathBuf,
    changed: bool,
    dry_run: bool,
    section: String,
    may: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<Versions>,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<Exit, Failure> {
    let AgentCommand::Add(args) = &args.command;
    let root = context.workspace()?;
    let code = section::directory(&args.repository).map_err(|why| {
        let again = format!("agent add {} --program NAME --repository DIR", args.name);
        Failure::plain(Exit::NotFound, why).next(context.command_of(None, &again))
    })?;
    let known = args.program.known();
    let found = known.and_then(|known| program::find(known.word()));
    let set_up = set_up(args, known, found.as_deref(), &code)?;
    let text = set_up.section(&args.name);
    let known_agents = directory::agents(root)?;
    let is_new = !args.dry_run && !known_agents.contains(&args.name);
    let outcome = if args.dry_run {
        AddOutcome::Same
    } else {
        let other = match args.replace {
            true => OtherCommand::Replaced,
            false => OtherCommand::Kept,
        };
        let written = set_up.write(root, &args.name, other);
        let outcome = written.map_err(|error| failure(&error, context))?;
        directory::init(root, std::slice::from_ref(&args.name))?;
        outcome
    };
    let version = known.zip(found.as_deref());
    let version = version.map(|(known, program)| Versions::of(known, program));
    let note = known.zip(version.as_ref());
    let note = note.and_then(|(known, version)| version.note(known));
    let mut answer = CommandOutput::new(AgentView {
        agent: args.name.clone(),
        file: std::path::absolute(root.join(workspace::config::FILE))?,
        changed: outcome == AddOutcome::Written,
        dry_run: args.dry_run,
        section: text,
        may: set_up.may.clone(),
        version,
    });
    if let Some(note) = note {
        answer.alert("version_not_tried", note);
    }
    if let (Some(known), None, Some(npm)) = (known, &found, &set_up.npm) {
        let version = set_up.tried.as_deref().unwrap_or("latest");
        answer.alert(
            "program_missing",
            format!("`{}` is not on your PATH", known.word()),
        );
        answer.next(
            format!("npm install --global {npm}@{version}"),
            "the version that was tried",
        );
    }
    if let Some(needed) = set_up.settings {
        answer.alert("settings_needed", needed);
    }
    if is_new {
        answer.alert(
            "new_agent",
            format!("{} had no mailboxes; they were made", args.name),
        );
    }
    if !args.dry_run {
        let check = context.command_of(None, &format!("doctor --agents {}", args.name));
        answer.next(
            check,
            "starts it once, which costs one short answer of its model",
        );
    }
    context.say(&answer, AgentView::text)?;
    Ok(Exit::Ok)
}

fn set_up(
    args: &AddArgs,
    known: Option<KnownProgram>,
    found: Option<&Path>,
    code: &Path,
) -> Result<SetUp, Failure> {
    let usage = |message: &str| Failure::plain(Exit::Usage, message.to_owned());
    match (known, args.command.as_slice()) {
        // A service has a bare PATH, so the command names the program by its absolute path.
        (Some(known), []) => {
            let form = match (args.mcp, args.sandbox) {
                (true, _) => SetUpForm::Mcp,
                (false, true) => SetUpForm::Sandbox,
                (false, false) => SetUpForm::Plain,
            };
            Ok(known.set_up(found.unwrap_or(Path::new(known.word())), code, form))
        }
        (Some(_), _) => Err(usage("only --program custom takes a command")),
        (None, []) => Err(usage("--program custom needs a command: put it after `--`")),
        (None, _) if args.mcp || args.sandbox => Err(usage(
            "--mcp and --sandbox work only with claude, codex, gemini and opencode",
        )),
        (None, command) => Ok(SetUp::custom(command, code)),
    }
}

impl ProgramWord {
    fn known(self) -> Option<KnownProgram> {
        match self {
            Self::Claude => Some(KnownProgram::Claude),
            Self::Codex => Some(KnownProgram::Codex),
            Self::Gemini => Some(KnownProgram::Gemini),
            Self::OpenCode => Some(KnownProgram::OpenCode),
            Self::Custom => None,
        }
    }
}

impl AgentView {
    fn text(&self) -> String {
        let Self {
            agent, file, may, ..
        } = self;
        let file = shell::quoted(file.as_os_str());
        match (self.dry_run, self.changed) {
            (true, _) => self.section.clone(),
            (false, true) => format!("{agent} is set up in {file}\nit may {may}\n"),
            (false, false) => format!("{agent} is set up in {file} already; nothing was changed\n"),
        }
    }
}

fn failure(error: &SectionError, context: &Context) -> Failure {
    match error {
        SectionError::Io { .. } => Failure::new(Exit::Failed, error),
        SectionError::Config(_) => {
            Failure::new(Exit::Usage, error).next(context.command_of(None, "doctor"))
        }
        SectionError::Refused { .. } => {
            Failure::plain(Exit::Usage, format!("{error}; nothing was changed"))
        }
        SectionError::Other { .. } => {
            let message = format!("{error}; nothing was changed; --replace replaces it");
            Failure::plain(Exit::Failed, message)
        }
    }
}
