//! What a person decides: reopen, grant, resolve, wont-fix, queue, hold, release. Each is recorded
//! with a name and a reason.

use std::io::{BufRead as _, IsTerminal as _, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use message_schema::id::{AgentName, FindingId};
use message_schema::line;
use review::{Act, Event, PersonsDecision};
use spool::Layout;

use super::order::{self, Form, Target};
use super::{Failure, existing_workspace};
use crate::exit::Exit;
use crate::workspace;

/// The longest name and the longest reason, in characters.
const TEXT_MAX: usize = 500;

/// A decision about a whole review.
#[derive(Debug, clap::Args)]
pub(super) struct OfReview {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    signed: Signed,
}

/// Grants more rounds.
#[derive(Debug, clap::Args)]
pub(super) struct OfRounds {
    #[command(flatten)]
    target: Target,
    /// How many more rounds
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=1))]
    rounds: u8,
    #[command(flatten)]
    signed: Signed,
}

/// A decision about one thread.
#[derive(Debug, clap::Args)]
pub(super) struct OfThread {
    #[command(flatten)]
    target: Target,
    /// The thread: the id of its finding
    #[arg(value_name = "THREAD")]
    thread: FindingId,
    #[command(flatten)]
    signed: Signed,
}

/// Who decides, and why.
#[derive(Debug, clap::Args)]
struct Signed {
    /// Who decides; your login name unless told
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    /// Why; asked for at the terminal unless given
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    form: Form,
}

pub(super) fn reopen(args: &OfReview) -> Result<Exit, Failure> {
    decide(&args.target, &args.signed, Act::Reopen)
}

pub(super) fn grant(args: &OfRounds) -> Result<Exit, Failure> {
    decide(&args.target, &args.signed, Act::Grant { rounds: args.rounds })
}

pub(super) fn of_thread(args: &OfThread, act: fn(FindingId) -> Act) -> Result<Exit, Failure> {
    decide(&args.target, &args.signed, act(args.thread.clone()))
}

fn decide(target: &Target, signed: &Signed, act: Act) -> Result<Exit, Failure> {
    let root = &target.root;
    existing_workspace(root)?;
    let by = fit("the name of who decides", &signed.by.clone().unwrap_or_else(login))?;
    let reason = fit("the reason", &reason(root, signed.reason.as_deref(), &by)?)?;
    let decision = PersonsDecision { which: target.which(), by, reason, act };
    order::give(root, Event::Person(decision), &signed.form)
}

/// The reason: given with the command, or typed. Where agents run as this very user, a script of
/// theirs could give one as well, so it has to be typed.
fn reason(root: &Path, given: Option<&str>, by: &str) -> Result<String, Failure> {
    let agent = agent_of_this_user(root)?;
    let is_terminal = std::io::stdin().is_terminal();
    match (given, agent) {
        (Some(_), Some(agent)) => Err(not_by_script(&agent, "leave out --reason and type it at a terminal")),
        (None, Some(agent)) if !is_terminal => {
            Err(not_by_script(&agent, "give the command at a terminal and type the reason there"))
        }
        (Some(reason), None) => Ok(reason.to_owned()),
        (None, None) if !is_terminal => {
            let message = "no reason was given, and there is no terminal to ask for one".to_owned();
            Err(Failure::plain(Exit::Usage, message).next("the same with --reason TEXT".to_owned()))
        }
        (None, Some(_) | None) => ask(by),
    }
}

fn not_by_script(agent: &AgentName, how: &str) -> Failure {
    let message = format!(
        "a person decides this, and {agent} runs as the same user: its outbox is yours, so a script of its own \
         could ask for it as well"
    );
    Failure::plain(Exit::NotAllowed, message).next(format!("{how}; or let agents run as other users"))
}

/// An agent whose outbox belongs to the user of this process, if there is one.
fn agent_of_this_user(root: &Path) -> Result<Option<AgentName>, Failure> {
    let agents = workspace::agents(root).map_err(|error| Failure::new(Exit::Failed, &error))?;
    let (layout, uid) = (Layout::new(root), rustix::process::geteuid().as_raw());
    let is_ours =
        |agent: &AgentName| layout.outbox(agent.as_str()).metadata().is_ok_and(|data| data.uid() == uid);
    Ok(agents.into_iter().find(is_ours))
}

fn ask(by: &str) -> Result<String, Failure> {
    let failed = |error: std::io::Error| Failure::new(Exit::Failed, &error);
    let mut out = std::io::stderr();
    write!(out, "{}, why? ", line::escaped(by)).and_then(|()| out.flush()).map_err(failed)?;
    let mut typed = String::new();
    // A terminal's line is shorter; what stands behind it is not read.
    std::io::stdin().lock().take(16 * 1024).read_line(&mut typed).map_err(failed)?;
    Ok(typed)
}

/// The text as it is recorded: one line, not empty.
fn fit(what: &str, text: &str) -> Result<String, Failure> {
    let text = text.trim();
    if text.is_empty() || text.chars().count() > TEXT_MAX || !line::is_one_line(text) {
        let message = format!(
            "{what} is `{}`, expected 1 to {TEXT_MAX} characters on one line; nothing was decided",
            line::escaped(&text.chars().take(40).collect::<String>())
        );
        return Err(Failure::plain(Exit::Usage, message));
    }
    Ok(text.to_owned())
}

/// The name of the user this process runs as: what the system says, else what the session says, else
/// the number.
fn login() -> String {
    let uid = rustix::process::getuid().as_raw();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let named = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    });
    let session = || std::env::var("LOGNAME").or_else(|_| std::env::var("USER")).ok();
    named.or_else(session).unwrap_or_else(|| format!("user {uid}"))
}
