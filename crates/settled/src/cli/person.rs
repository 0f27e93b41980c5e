//! What a person decides: reopen, cancel, approve, grant, resolve, wont-fix, queue, hold, release, drop. Each is recorded
//! with a name and a reason.

use std::io::{BufRead as _, IsTerminal as _, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use message_schema::id::{AgentName, CommitSha, FindingId};
use message_schema::line;
use review::{Act, Event, PersonsDecision};
use spool::Layout;
use workspace::directory;
use workspace::orders::{self, TEXT_MAX};

use super::context::Context;
use super::failure::Failure;
use super::order::{self, Target};
use crate::exit::Exit;

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
    /// The number of extra rounds; 1 is the maximum
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=1))]
    rounds: u8,
    #[command(flatten)]
    signed: Signed,
}

/// Approves in a reviewer's place.
#[derive(Debug, clap::Args)]
pub(super) struct OfCommit {
    #[command(flatten)]
    target: Target,
    /// The commit to approve [default: the round's head]
    #[arg(long, value_name = "SHA")]
    head: Option<CommitSha>,
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
pub(super) struct Signed {
    /// The person who decides [default: your login name]
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    /// The reason; without it you type it at the terminal
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

pub(super) fn reopen(args: &OfReview, context: &Context) -> Result<Exit, Failure> {
    decide(&args.target, &args.signed, Act::Reopen, context)
}

pub(super) fn cancel(args: &OfReview, context: &Context) -> Result<Exit, Failure> {
    decide(&args.target, &args.signed, Act::Cancel, context)
}

pub(super) fn approve(args: &OfCommit, context: &Context) -> Result<Exit, Failure> {
    let head = args.head.clone();
    decide(&args.target, &args.signed, Act::Approve { head }, context)
}

pub(super) fn grant(args: &OfRounds, context: &Context) -> Result<Exit, Failure> {
    decide(
        &args.target,
        &args.signed,
        Act::Grant {
            rounds: args.rounds,
        },
        context,
    )
}

pub(super) fn of_thread(
    args: &OfThread,
    act: fn(FindingId) -> Act,
    context: &Context,
) -> Result<Exit, Failure> {
    decide(
        &args.target,
        &args.signed,
        act(args.thread.clone()),
        context,
    )
}

fn decide(target: &Target, signed: &Signed, act: Act, context: &Context) -> Result<Exit, Failure> {
    let (by, reason) = signed.decided(context.workspace()?)?;
    let decision = PersonsDecision {
        which: target.which(),
        by,
        reason,
        act,
    };
    order::give(Event::Person(decision), context)
}

impl Signed {
    /// The name and the reason as they are recorded; asks for a reason that was not given.
    pub(super) fn decided(&self, root: &Path) -> Result<(String, String), Failure> {
        let by = fit(
            "the name of who decides",
            &self.by.clone().unwrap_or_else(login),
        )?;
        let agent = agent_of_this_user(root)?;
        let reason = match source(
            self.reason.as_deref(),
            agent.as_ref(),
            std::io::stdin().is_terminal(),
        )? {
            Source::Given(reason) => reason.to_owned(),
            Source::Typed => ask(&by)?,
        };
        Ok((by, fit("the reason", &reason)?))
    }
}

/// Where the reason comes from.
#[derive(Debug, PartialEq, Eq)]
enum Source<'a> {
    /// It was given with the command.
    Given(&'a str),
    /// It is typed at the terminal.
    Typed,
}

/// Where the reason may come from. If an agent runs as this very user, a script of its own could give
/// one as well, so it has to be typed at a terminal.
fn source<'a>(
    given: Option<&'a str>,
    agent: Option<&AgentName>,
    is_terminal: bool,
) -> Result<Source<'a>, Failure> {
    match (given, agent) {
        (Some(_), Some(agent)) => Err(not_by_script(
            agent,
            "leave out --reason and type it at a terminal",
        )),
        (None, Some(agent)) if !is_terminal => Err(not_by_script(
            agent,
            "give the command at a terminal and type the reason there",
        )),
        (Some(reason), None) => Ok(Source::Given(reason)),
        (None, None) if !is_terminal => {
            let message =
                "no reason was given, and there is no terminal to ask for one: say --reason TEXT";
            Err(Failure::plain(Exit::Usage, message.to_owned()))
        }
        (None, Some(_) | None) => Ok(Source::Typed),
    }
}

fn not_by_script(agent: &AgentName, how: &str) -> Failure {
    let message = format!(
        "a person decides this, and {agent} runs as the same user: its outbox is yours, so a script of its own \
         could ask for it as well; {how}, or let agents run as other users"
    );
    Failure::plain(Exit::Identity, message)
}

/// An agent whose outbox belongs to the user of this process, if there is one. An outbox that is gone
/// for the moment proves no other owner.
fn agent_of_this_user(root: &Path) -> Result<Option<AgentName>, Failure> {
    let agents = directory::agents(root).map_err(|error| Failure::new(Exit::Failed, &error))?;
    let (layout, uid) = (Layout::new(root), rustix::process::geteuid().as_raw());
    let is_ours = |agent: &AgentName| {
        let outbox = layout.outbox(agent.as_str()).symlink_metadata();
        outbox.map_or(true, |data| data.uid() == uid)
    };
    Ok(agents.into_iter().find(is_ours))
}

fn ask(by: &str) -> Result<String, Failure> {
    let failed = |error: std::io::Error| Failure::new(Exit::Failed, &error);
    let mut out = std::io::stderr();
    write!(out, "{}, why? ", line::escaped(by))
        .and_then(|()| out.flush())
        .map_err(failed)?;
    let mut typed = String::new();
    // A terminal's line is shorter; what stands behind it is not read.
    std::io::stdin()
        .lock()
        .take(16 * 1024)
        .read_line(&mut typed)
        .map_err(failed)?;
    Ok(typed)
}

/// The text as it is recorded: one line, not empty.
fn fit(what: &str, text: &str) -> Result<String, Failure> {
    let text = text.trim();
    if !orders::is_fit(text) {
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
    let session = || {
        std::env::var("LOGNAME")
            .or_else(|_| std::env::var("USER"))
            .ok()
    };
    workspace::users::name(uid)
        .or_else(session)
        .unwrap_or_else(|| format!("user {uid}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_typed_where_an_agent_could_give_it_as_well() {
        let agent = AgentName::new("codex").expect("a name");
        let source =
            |given, agent, is_terminal| source(given, agent, is_terminal).map_err(|no| no.exit);
        for is_terminal in [true, false] {
            assert_eq!(
                source(Some("x"), Some(&agent), is_terminal),
                Err(Exit::Identity)
            );
            assert_eq!(source(Some("x"), None, is_terminal), Ok(Source::Given("x")));
        }
        assert_eq!(source(None, Some(&agent), false), Err(Exit::Identity));
        assert_eq!(source(None, None, false), Err(Exit::Usage));
        assert_eq!(source(None, Some(&agent), true), Ok(Source::Typed));
        assert_eq!(source(None, None, true), Ok(Source::Typed));
    }

    #[test]
    fn an_outbox_that_is_gone_or_a_link_proves_no_other_owner() {
        let root = tempfile::tempdir().expect("a directory");
        let inbox = Layout::new(root.path()).inbox("codex");
        std::fs::create_dir_all(inbox).expect("an inbox");
        let agent = || {
            agent_of_this_user(root.path())
                .expect("a list of agents")
                .map(String::from)
        };
        assert_eq!(agent().as_deref(), Some("codex"));
        std::os::unix::fs::symlink("/proc/1", Layout::new(root.path()).outbox("codex"))
            .expect("a link");
        assert_eq!(agent().as_deref(), Some("codex"));
    }

    #[test]
    fn a_reason_is_one_line_that_says_something() {
        assert_eq!(
            fit("the reason", "  it was ours\n").ok().as_deref(),
            Some("it was ours")
        );
        for bad in ["", " \n", "a\nb", "a\u{202e}b", &"x".repeat(501)] {
            assert_eq!(
                fit("the reason", bad).map_err(|no| no.exit),
                Err(Exit::Usage),
                "{bad:?}"
            );
        }
    }
}
