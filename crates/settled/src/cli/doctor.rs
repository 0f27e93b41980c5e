//! `settled doctor`: checks the workspace for problems and prints a fix for each.

use inspect::doctor::{self, CheckContext, CheckResult, CheckState};
use std::path::Path;

use message_schema::id::AgentName;
use message_schema::line::escaped;
use runner::program;
use screen::ProgressLine;
use serde::Serialize;
use setup::probe::{self, ProbeFinding};
use setup::{KnownProgram, Versions};
use workspace::config::Config;
use workspace::{clock, directory};

use super::answer::CommandOutput;
use super::context::{Context, Root};
use super::failure::Failure;
use crate::exit::Exit;

/// Checks the workspace for problems.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled doctor ./mailroom
  settled doctor --agent claude    also check this agent's read and write access
  settled doctor --fix
  settled doctor --agents codex    start its command once, with a cheap question
  settled doctor --json | jq '.data.findings[] | select(.state == \"wrong\")'")]
pub(super) struct Args {
    #[command(flatten)]
    root: Root,
    /// Fix what is safe to fix: missing directories, leftover temporary files
    #[arg(long)]
    fix: bool,
    /// Start the configured command of these agents, or of all, once
    #[arg(long, value_name = "NAMES", value_delimiter = ',', num_args = 0.., value_parser = directory::agent_name, conflicts_with_all = ["fix", "monitor"])]
    agents: Option<Vec<AgentName>>,
    /// Monitoring addresses of a shared ledger's brokers [default: port 8222]
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',')]
    monitor: Vec<String>,
}

#[derive(Debug, Serialize)]
struct DoctorView {
    findings: Vec<CheckResult>,
    wrong: usize,
    fixed: usize,
    failed: usize,
}

pub(super) fn run(args: &Args, context: Context) -> Result<Exit, Failure> {
    let context = context.at(&args.root);
    let root = context.workspace()?;
    if let Some(named) = &args.agents {
        return probe_agents(root, named, &context);
    }
    let me = context.me_if_told()?;
    let agents = directory::agents(root)?;
    let agent = me.as_ref().map(|me| &me.agent);
    let spell = |words: &str| context.command_of(None, words);
    let case = CheckContext {
        root,
        agent,
        agents: &agents,
        now: clock::now(),
        fixes: args.fix,
        monitors: &args.monitor,
        spell: &spell,
    };
    let findings = doctor::examine(&case);
    let count = |state| {
        let found = findings.iter().filter(|finding| finding.state == state);
        found.count()
    };
    let states = [CheckState::Wrong, CheckState::Fixed, CheckState::Failed];
    let [wrong, fixed, failed] = states.map(count);
    let exit = exit(wrong, failed);
    context.say(
        &CommandOutput::new(DoctorView {
            findings,
            wrong,
            fixed,
            failed,
        }),
        text,
    )?;
    Ok(exit)
}

/// The exit code: what is wrong comes before what is not known.
fn exit(wrong: usize, failed: usize) -> Exit {
    match (wrong, failed) {
        (0, 0) => Exit::Ok,
        (0, _) => Exit::Failed,
        _ => Exit::ActionRequired,
    }
}

/// Starts the commands of agents, one after another.
fn probe_agents(root: &Path, named: &[AgentName], context: &Context) -> Result<Exit, Failure> {
    let config = Config::load(root).map_err(|error| Failure::new(Exit::Usage, &error))?;
    let settled = std::env::current_exe()?;
    let has_command = |agent: &&AgentName| {
        let section = config.agents.get(*agent);
        section.is_some_and(|section| !section.command.is_empty())
    };
    let without: Vec<&str> = named
        .iter()
        .filter(|agent| !has_command(agent))
        .map(AgentName::as_str)
        .collect();
    if !without.is_empty() {
        let message = format!("without a command in settled.toml: {}", without.join(", "));
        let add = context.command_of(None, "agent add NAME --program codex");
        return Err(Failure::plain(Exit::NotFound, message).next(add));
    }
    let mut findings = Vec::new();
    let mut progress = ProgressLine::begin("asking");
    for (agent, section) in &config.agents {
        if section.command.is_empty() || !(named.is_empty() || named.contains(agent)) {
            continue;
        }
        let known = KnownProgram::of_command(&section.command);
        progress.show(format_args!("{agent}, for up to {} s", probe::SECONDS_MAX));
        // A missing program has no version.
        let version = known.zip(program::find(&section.command[0]));
        let version = version.map(|(known, program)| Versions::of(known, &program));
        findings.push(match probe::probe(&settled, root, agent) {
            Ok(outcome) => {
                let walls = section.sandbox.as_ref().map(|walls| walls.env.as_slice());
                probe::finding(agent, (known, walls), version, &outcome)
            }
            Err(error) => {
                let message = format!("cannot try {agent}: {error}");
                return Err(Failure::plain(Exit::Failed, message));
            }
        });
    }
    drop(progress);
    if findings.is_empty() {
        let message = "no agent has a command".to_owned();
        let add = context.command_of(None, "agent add NAME --program codex");
        return Err(Failure::plain(Exit::NotFound, message).next(add));
    }
    let wrong = findings.iter().filter(|finding| !finding.ok).count();
    context.say(
        &CommandOutput::new(AgentsView {
            agents: findings,
            wrong,
        }),
        AgentsView::text,
    )?;
    Ok(if wrong == 0 {
        Exit::Ok
    } else {
        Exit::ActionRequired
    })
}

#[derive(Debug, Serialize)]
struct AgentsView {
    agents: Vec<ProbeFinding>,
    wrong: usize,
}

impl AgentsView {
    fn text(&self) -> String {
        let line = |finding: &ProbeFinding| {
            let word = if finding.ok { "ok" } else { "wrong" };
            let line = escaped(&format!(
                "{word:<6}  {:<11}  {}",
                finding.agent.as_str(),
                finding.what
            ));
            let fix = finding.fix.as_ref().map_or_else(String::new, |fix| {
                format!("{:21}fix: {}\n", "", escaped(fix))
            });
            let folder = finding.folder.as_ref().map_or_else(String::new, |folder| {
                let folder = escaped(&folder.display().to_string());
                format!("{:21}kept: {folder}\n", "")
            });
            let note = finding.note.as_ref().map_or_else(String::new, |note| {
                format!("{:21}note: {}\n", "", escaped(note))
            });
            format!("{line}\n{fix}{folder}{note}")
        };
        self.agents.iter().map(line).collect()
    }
}

fn text(found: &DoctorView) -> String {
    let mut text = String::new();
    for finding in &found.findings {
        let line = format!(
            "{:<6}  {:<11}  {}",
            finding.state.word(),
            finding.check(),
            finding.what
        );
        text += &(escaped(&line) + "\n");
        if let Some(fix) = &finding.fix {
            text += &format!("{:21}fix: {}\n", "", escaped(fix));
        }
    }
    let DoctorView {
        wrong,
        fixed,
        failed,
        ..
    } = found;
    text + &format!("{wrong} wrong, {fixed} fixed, {failed} not known\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_needs_an_action_and_what_is_not_known_failed() {
        assert_eq!(exit(0, 0), Exit::Ok);
        assert_eq!(exit(0, 2), Exit::Failed);
        assert_eq!(exit(1, 0), Exit::ActionRequired);
        assert_eq!(exit(1, 2), Exit::ActionRequired);
    }

    #[test]
    fn of_an_agent_that_was_tried_all_is_told_that_is_known() {
        let finding = |ok, what: &str, more: Option<&str>| ProbeFinding {
            agent: "codex".parse().expect("a name"),
            ok,
            what: what.to_owned(),
            fix: more.map(str::to_owned),
            folder: more.map(Into::into),
            note: more.map(str::to_owned),
            version: None,
        };
        let view = AgentsView {
            agents: vec![
                finding(true, "it answered", None),
                finding(false, "no\u{1b}", Some("x")),
            ],
            wrong: 1,
        };
        let indent = " ".repeat(21);
        let expected = format!(
            "ok      codex        it answered\nwrong   codex        no\\u{{1b}}\n\
             {indent}fix: x\n{indent}kept: x\n{indent}note: x\n"
        );
        assert_eq!(view.text(), expected);
    }
}
