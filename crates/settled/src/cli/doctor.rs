//! `settled doctor`: checks the workspace for problems and prints a fix for each.

use inspect::doctor::{self, CheckContext, CheckResult, CheckState};
use message_schema::line::escaped;
use serde::Serialize;
use workspace::{clock, directory};

use super::answer::CommandOutput;
use super::context::{Context, Root};
use super::failure::Failure;
use crate::exit::Exit;

/// Checks the workspace for problems.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled doctor ./mailroom
  settled doctor --agent claude                  also check this agent's read and write access
  settled doctor --fix
  settled doctor --json | jq '.data.findings[] | select(.state == \"wrong\")'")]
pub(super) struct Args {
    #[command(flatten)]
    root: Root,
    /// Fix what is safe to fix: missing directories, leftover temporary files
    #[arg(long)]
    fix: bool,
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
    let me = context.me_if_told()?;
    let agents = directory::agents(root).map_err(|error| Failure::new(Exit::Failed, &error))?;
    let agent = me.as_ref().map(|me| &me.agent);
    let spell = |words: &str| context.command_of(None, words);
    let case = CheckContext {
        root,
        agent,
        agents: &agents,
        now: clock::now(),
        fixes: args.fix,
        spell: &spell,
    };
    let findings = doctor::examine(&case);
    let count = |state| {
        findings
            .iter()
            .filter(|finding| finding.state == state)
            .count()
    };
    let (wrong, fixed, failed) = (
        count(CheckState::Wrong),
        count(CheckState::Fixed),
        count(CheckState::Failed),
    );
    let exit = match (wrong, failed) {
        (0, 0) => Exit::Ok,
        (0, _) => Exit::Failed,
        _ => Exit::ActionRequired,
    };
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
