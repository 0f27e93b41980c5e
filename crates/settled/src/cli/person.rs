//! `settled review` and `settled thread`: a person's decisions about a review or a thread, each recorded with a name
//! and a reason.

use std::io::{BufRead, IsTerminal as _, Write};
use std::path::Path;

use clap::Subcommand;
use message_schema::id::{AgentName, CommitSha, FindingId};
use message_schema::line;
use review::{Act, Event, PersonsDecision};
use workspace::directory;
use workspace::orders::{self, TEXT_MAX};
use workspace::users;

use super::context::Context;
use super::failure::Failure;
use super::order::{self, Target};
use crate::exit::Exit;

/// Decides about a review.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled review reopen 86
  settled review grant 86")]
pub(super) struct ReviewArgs {
    #[command(subcommand)]
    decision: OnReview,
}

#[derive(Debug, Subcommand)]
enum OnReview {
    /// Approve a review in the reviewer's place, when no agent may
    #[command(after_help = "Examples:
  settled review approve 86
  settled review approve 86 --head 1c0ffee --reason \"the workflow is right\"")]
    Approve(OfCommit),
    /// Cancel an open request: end the reviewer's command and escalate the review
    #[command(after_help = "Examples:
  settled review cancel 86
  settled review cancel 86 --reviewer codex --reason \"the branch is gone\"")]
    Cancel(OfReview),
    /// Reopen a finished review for the agents
    #[command(after_help = "Examples:
  settled review reopen 86
  settled review reopen 86 --reviewer codex --reason \"the blocker was ours\"")]
    Reopen(OfReview),
    /// Grant a review one more round
    #[command(after_help = "Examples:
  settled review grant 86 --rounds 1")]
    Grant(OfRounds),
}

/// Decides about a thread.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled thread resolve 86 F-1-001
  settled threads 86               every thread and what you may do with it")]
pub(super) struct ThreadArgs {
    #[command(subcommand)]
    decision: OnThread,
}

#[derive(Debug, Subcommand)]
enum OnThread {
    /// Mark a thread resolved
    #[command(after_help = "Examples:
  settled thread resolve 86 F-1-001")]
    Resolve(OfThread),
    /// Mark a thread as deliberately not fixed
    #[command(after_help = "Examples:
  settled thread wont-fix 86 F-1-001")]
    WontFix(OfThread),
    /// Reserve a thread for people
    #[command(after_help = "Examples:
  settled thread hold 86 F-1-001")]
    Hold(OfThread),
    /// Return a held thread to the agents
    #[command(after_help = "Examples:
  settled thread release 86 F-1-001")]
    Release(OfThread),
    /// Hand a thread off when the pull request merges, in any mode
    #[command(after_help = "Examples:
  settled thread queue 86 F-1-001")]
    Queue(OfThread),
    /// Undo `queue`
    #[command(after_help = "Examples:
  settled thread drop 86 F-1-001")]
    Drop(OfThread),
}

/// A decision about a whole review.
#[derive(Debug, clap::Args)]
struct OfReview {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    signed: Signed,
}

/// Grants more rounds.
#[derive(Debug, clap::Args)]
struct OfRounds {
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
struct OfCommit {
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
struct OfThread {
    #[command(flatten)]
    target: Target,
    /// The thread: the id of its finding
    #[arg(value_name = "THREAD")]
    thread: FindingId,
    #[command(flatten)]
    signed: Signed,
}

/// Names the person who decides, and the reason.
#[derive(Debug, clap::Args)]
pub(super) struct Signed {
    /// The person who decides [default: your login name]
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    /// The reason; without it you type it at the terminal
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

pub(super) fn of_review(args: &ReviewArgs, context: &Context) -> Result<Exit, Failure> {
    let (target, signed, act) = args.decision.act();
    decide(target, signed, act, context)
}

impl OnReview {
    fn act(&self) -> (&Target, &Signed, Act) {
        match self {
            Self::Approve(of) => {
                let head = of.head.clone();
                (&of.target, &of.signed, Act::Approve { head })
            }
            Self::Cancel(of) => (&of.target, &of.signed, Act::Cancel),
            Self::Reopen(of) => (&of.target, &of.signed, Act::Reopen),
            Self::Grant(of) => {
                let rounds = of.rounds;
                (&of.target, &of.signed, Act::Grant { rounds })
            }
        }
    }
}

pub(super) fn of_thread(args: &ThreadArgs, context: &Context) -> Result<Exit, Failure> {
    let (target, signed, act) = args.decision.act();
    decide(target, signed, act, context)
}

impl OnThread {
    fn act(&self) -> (&Target, &Signed, Act) {
        let (of, act): (&OfThread, fn(FindingId) -> Act) = match self {
            Self::Resolve(of) => (of, Act::Resolve),
            Self::WontFix(of) => (of, Act::WontFix),
            Self::Hold(of) => (of, Act::Hold),
            Self::Release(of) => (of, Act::Release),
            Self::Queue(of) => (of, Act::Queue),
            Self::Drop(of) => (of, Act::Drop),
        };
        (&of.target, &of.signed, act(of.thread.clone()))
    }
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
    /// The name and the reason to record; asks for a reason that was not given.
    pub(super) fn decided(&self, root: &Path) -> Result<(String, String), Failure> {
        let by = fit(
            "the name of the person who decides",
            &self.by.clone().unwrap_or_else(users::login),
        )?;
        let agent = directory::agent_of_this_user(root)?;
        let reason = match source(
            self.reason.as_deref(),
            agent.as_ref(),
            std::io::stdin().is_terminal(),
        )? {
            Source::Given(reason) => reason.to_owned(),
            Source::Typed => ask(&by, std::io::stdin().lock(), std::io::stderr())?,
        };
        Ok((by, fit("the reason", &reason)?))
    }
}

/// The source of a reason.
#[derive(Debug, PartialEq, Eq)]
enum Source<'a> {
    /// An option of the command.
    Given(&'a str),
    /// The terminal.
    Typed,
}

/// Chooses the source of the reason. If an agent runs as this user, its script could pass an option too, so the person
/// has to type the reason at a terminal.
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
            "run the command at a terminal and type the reason there",
        )),
        (Some(reason), None) => Ok(Source::Given(reason)),
        (None, None) if !is_terminal => {
            let message = "no reason given, and no terminal to ask for one: use --reason TEXT";
            Err(Failure::plain(Exit::Usage, message.to_owned()))
        }
        (None, Some(_) | None) => Ok(Source::Typed),
    }
}

fn not_by_script(agent: &AgentName, how: &str) -> Failure {
    let message = format!(
        "only a person may decide this, and {agent} runs as your user. If you are a person, {how}, or run agents as other users; if you are an agent, ask a person"
    );
    Failure::plain(Exit::Identity, message)
}

/// Asks at the terminal and returns the line typed there.
fn ask(by: &str, typing: impl BufRead, mut out: impl Write) -> Result<String, Failure> {
    write!(out, "{}, why? ", line::escaped(by)).and_then(|()| out.flush())?;
    let mut typed = String::new();
    // No line of a terminal is longer; more is not read.
    typing.take(16 * 1024).read_line(&mut typed)?;
    Ok(typed)
}

/// The text as recorded: one line, not empty.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    enum Line {
        Review(ReviewArgs),
        Thread(ThreadArgs),
    }

    #[test]
    fn each_word_is_the_decision_of_its_name_about_what_is_named() {
        let decided = |line: &str| {
            let words = std::iter::once("settled").chain(line.split(' '));
            let line = <Line as clap::Parser>::try_parse_from(words).expect("a decision");
            let (target, signed, act) = match &line {
                Line::Review(args) => args.decision.act(),
                Line::Thread(args) => args.decision.act(),
            };
            let which = target.which();
            assert_eq!(which.pr.as_str(), "86");
            assert_eq!(
                which.reviewer.as_ref().map(AgentName::as_str),
                Some("codex")
            );
            assert_eq!(
                which.repo.map(|repo| repo.to_string()).as_deref(),
                Some("o/n")
            );
            assert_eq!(signed.by.as_deref(), Some("ann"));
            act
        };
        let head = Some("1c0ffee".parse().expect("a commit"));
        let of_review = "--reviewer codex --repo o/n --by ann";
        for (word, act) in [
            ("approve 86 --head 1c0ffee", Act::Approve { head }),
            ("approve 86", Act::Approve { head: None }),
            ("cancel 86", Act::Cancel),
            ("reopen 86", Act::Reopen),
            ("grant 86", Act::Grant { rounds: 1 }),
        ] {
            assert_eq!(decided(&format!("review {word} {of_review}")), act);
        }
        let thread: FindingId = "F-1-001".parse().expect("a thread");
        for (word, act) in [
            ("resolve", Act::Resolve(thread.clone())),
            ("wont-fix", Act::WontFix(thread.clone())),
            ("hold", Act::Hold(thread.clone())),
            ("release", Act::Release(thread.clone())),
            ("queue", Act::Queue(thread.clone())),
            ("drop", Act::Drop(thread)),
        ] {
            assert_eq!(
                decided(&format!("thread {word} 86 F-1-001 {of_review}")),
                act
            );
        }
    }

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
    fn the_person_is_asked_by_name_and_the_typed_line_is_the_reason() {
        let mut screen = Vec::new();
        let typed = ask(
            "ann\u{1b}",
            "it was ours\nno answer\n".as_bytes(),
            &mut screen,
        );
        assert_eq!(typed.ok().as_deref(), Some("it was ours\n"));
        assert_eq!(screen, br"ann\u{1b}, why? ");
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
