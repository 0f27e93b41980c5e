//! `settled pair`: alternates an author and a reviewer command.

use std::io::{IsTerminal as _, Write as _, stdout};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use message_schema::id::{AgentName, MessageId, PrNumber};
use review::{
    ITERATIONS, PairFailure, PairId, PairMember, PairSetup, PairStatus, RunState, SignalWords,
};
use runner::stream::OutputFormat;
use workspace::config::Config;
use workspace::directory::agent_name;
use workspace::shell;

use super::answer::{CommandOutput, print};
use super::context::Context;
use super::failure::Failure;
use super::{input, order};
use crate::exit::Exit;
use ::pair::view::{Last, PairLine, Transcripts, step_line, transcript, works};
use ::pair::{Driver, PairError, Progress, RecordedStep, Role, Stop, history};
use views::serving;

/// The interval at which the line of a running command is redrawn.
const FRAME: Duration = Duration::from_secs(1);

/// Alternates an author and a reviewer command.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled pair --author claude --author-command 'sh author.sh' --task task.md \\
    --reviewer codex --reviewer-command 'sh reviewer.sh'
  settled pair --author claude --author-command 'sh author.sh' --task task.md \\
    --max-iterations 3
  settled pair --transcript
  settled pair --resume
  settled pair --drop

Each command reads its prompt from standard input and ends its output with a
signal: DONE, PASS or FAIL.
Ctrl-C interrupts the pair; --resume continues it.")]
#[command(group(clap::ArgGroup::new("what").required(true).args(["author", "resume", "drop", "transcript"])))]
pub(super) struct Args {
    /// The agent that the author command works as
    #[arg(long, value_name = "AGENT", value_parser = agent_name, requires_all = ["author_command", "task"])]
    author: Option<AgentName>,
    /// The author's shell command
    #[arg(long, value_name = "COMMAND", requires = "author")]
    author_command: Option<String>,
    /// The format of the author's output: text, claude, codex, gemini or opencode
    #[arg(long, value_name = "FORM", value_parser = form, default_value = "text", requires = "author")]
    author_output: String,
    /// The agent that the reviewer command works as; without one the pair ends with the author's DONE
    #[arg(long, value_name = "AGENT", value_parser = agent_name, requires_all = ["author", "reviewer_command"])]
    reviewer: Option<AgentName>,
    /// The reviewer's shell command
    #[arg(long, value_name = "COMMAND", requires = "reviewer")]
    reviewer_command: Option<String>,
    /// The format of the reviewer's output, one of the same
    #[arg(long, value_name = "FORM", value_parser = form, default_value = "text", requires = "reviewer")]
    reviewer_output: String,
    /// A file with the task; `-` is standard input
    #[arg(long, value_name = "FILE", requires = "author")]
    task: Option<PathBuf>,
    /// The only pull request of the pair [default: every review its author requests meanwhile]
    #[arg(long, value_name = "N", requires = "reviewer")]
    pr: Option<PrNumber>,
    /// The directory to run the commands in [default: the current one]
    #[arg(long, value_name = "DIR", requires = "author")]
    workdir: Option<PathBuf>,
    /// The most runs of the author
    #[arg(long, value_name = "N", default_value_t = ITERATIONS, requires = "author", value_parser = clap::value_parser!(u8).range(1..))]
    max_iterations: u8,
    /// The time limit of one run, in seconds
    #[arg(long, value_name = "N", default_value_t = 1_800, requires = "author", value_parser = clap::value_parser!(u32).range(1..=604_800))]
    run_seconds: u32,
    /// The time limit of all runs together, in seconds
    #[arg(long, value_name = "N", default_value_t = 14_400, requires = "author", value_parser = clap::value_parser!(u32).range(1..=604_800))]
    seconds: u32,
    /// The most turns of all runs together; counted only if the output formats show turns
    #[arg(long, value_name = "N", requires = "author", value_parser = clap::value_parser!(u32).range(1..))]
    turns: Option<u32>,
    /// The last line that signals the author is done [default: from settled.toml]
    #[arg(long, value_name = "WORD", requires = "author")]
    done: Option<String>,
    /// The last line that signals approval by the reviewer
    #[arg(long, value_name = "WORD", requires = "author")]
    pass: Option<String>,
    /// The last line that signals either command gives up
    #[arg(long, value_name = "WORD", requires = "author")]
    fail: Option<String>,
    /// Resume an interrupted pair; name it if there are several
    #[arg(long, value_name = "PAIR", num_args = 0..=1, conflicts_with_all = ["author", "transcript"])]
    resume: Option<Option<MessageId>>,
    /// Discard an interrupted pair and escalate its open request
    #[arg(long, value_name = "PAIR", num_args = 0..=1, conflicts_with_all = ["author", "resume", "transcript"])]
    drop: Option<Option<MessageId>>,
    /// Show the full transcript of a pair [default: the newest]
    #[arg(long, value_name = "PAIR", num_args = 0..=1, conflicts_with = "author")]
    transcript: Option<Option<MessageId>>,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<Exit, Failure> {
    let root = context.workspace()?;
    if let Some(id) = &args.transcript {
        return show(root, id.clone().map(PairId).as_ref(), context);
    }
    // The commands run in other directories, so they need an absolute path.
    let root = &std::path::absolute(root)?;
    let failed = |error: PairError| failure(&error, root, context);
    let stop = Stop::listen()?;
    let as_json = context.json || !stdout().is_terminal();
    let mut teller = Teller::new(as_json);
    let mut progress = |progress: &Progress<'_>| teller.show(progress);
    if let Some(id) = &args.drop {
        let id = id.clone().map(PairId);
        let dropped = Driver::drop_it(root, id.as_ref(), stop, &mut progress);
        let (id, status) = dropped.map_err(failed)?;
        teller.finish()?;
        let line = CommandOutput::new(Last { id: &id, status }.line());
        let said = format!("discarded {id}; the ledger keeps its history\n");
        print(&if as_json { line.line() } else { said })?;
        return Ok(Exit::Ok);
    }
    let driver = match &args.resume {
        Some(id) => {
            let id = id.clone().map(PairId);
            Driver::resume(root, id.as_ref(), stop, &mut progress)
        }
        None => {
            let config = Config::load(root).map_err(|error| failed(error.into()))?;
            let setup = setup(args, &config)?;
            Driver::open(root, &config, setup, stop, &mut progress)
        }
    };
    let mut driver = driver.map_err(failed)?;
    let (id, ended) = (driver.id().clone(), driver.drive());
    teller.finish()?;
    // Everything in the ledger counts, and the next driver can continue from there.
    let status = ended
        .map_err(|error| failed(error).next(context.command(&format!("pair --resume {id}"))))?;
    let last = Last { id: &id, status };
    if as_json {
        finish_in_json(&last, context)
    } else {
        finish(&last, context)
    }
}

/// Prints the last state as a line of JSON. The exit code says how the pair ended.
fn finish_in_json(last: &Last<'_>, context: &Context) -> Result<Exit, Failure> {
    let mut answer = CommandOutput::new(last.line());
    if let Some(words) = last.next() {
        answer.next(context.command(&words), "what comes next");
    }
    print(&answer.line())?;
    Ok(exit(&last.status))
}

/// Prints the last state for people. A pair that is not complete is a failure with the command that comes next.
fn finish(last: &Last<'_>, context: &Context) -> Result<Exit, Failure> {
    let exit = exit(&last.status);
    if exit == Exit::Ok {
        print(&format!("{}\n", last.sentence()))?;
        return Ok(exit);
    }
    let failure = Failure::plain(exit, last.sentence());
    Err(match last.next() {
        Some(words) => failure.next(context.command(&words)),
        None => failure,
    })
}

fn setup(args: &Args, config: &Config) -> Result<PairSetup, Failure> {
    let member = |agent: &Option<AgentName>, command: &Option<String>, output: &str| {
        let output = output.to_owned();
        let (agent, command) = agent.clone().zip(command.clone())?;
        Some(PairMember {
            agent,
            command,
            output,
        })
    };
    let author = member(&args.author, &args.author_command, &args.author_output);
    let author = author.expect("the parser asks for both");
    let reviewer = member(
        &args.reviewer,
        &args.reviewer_command,
        &args.reviewer_output,
    );
    let task = input::text(args.task.as_deref().expect("the parser asks for it"))?;
    let workdir = match &args.workdir {
        Some(workdir) => std::path::absolute(workdir),
        None => std::env::current_dir(),
    }?;
    let workdir = workdir.into_os_string().into_string().map_err(|_| {
        let message = "the working directory of the commands must be UTF-8".to_owned();
        Failure::plain(Exit::Usage, message)
    })?;
    let SignalWords { done, pass, fail } = config.runner.words();
    let word = |given: &Option<String>, known: String| given.clone().unwrap_or(known);
    Ok(PairSetup {
        author,
        reviewer,
        workdir,
        task,
        pr: args.pr.clone(),
        iterations: args.max_iterations,
        run_seconds: args.run_seconds,
        seconds: args.seconds,
        turns: args.turns,
        words: SignalWords {
            done: word(&args.done, done),
            pass: word(&args.pass, pass),
            fail: word(&args.fail, fail),
        },
    })
}

fn show(root: &Path, id: Option<&PairId>, context: &Context) -> Result<Exit, Failure> {
    let found = history::of(root, id)?;
    let Some((id, past)) = found else {
        let message = id.map_or_else(
            || "no pair is in the ledger".to_owned(),
            |id| format!("no pair {id} is in the ledger"),
        );
        return Err(Failure::plain(Exit::NotFound, message).next("settled pair --help".to_owned()));
    };
    let answer = CommandOutput::new(transcript(&id, &past));
    context.say(&answer, Transcripts::text)?;
    Ok(Exit::Ok)
}

fn failure(error: &PairError, root: &Path, context: &Context) -> Failure {
    let failed = |exit| Failure::new(exit, error);
    match error {
        PairError::Tell(error) => order::failure(error, root),
        PairError::Serve(error) => serving::of_daemon(error, root),
        PairError::Declined { code, .. } => failed(Exit::Failed).code(code.as_str()),
        PairError::Unknown(_) | PairError::NoneOpen => {
            failed(Exit::NotFound).next(context.command("pair --transcript"))
        }
        PairError::Several { newest, .. } => {
            failed(Exit::Usage).next(context.command(&format!("pair --resume {newest}")))
        }
        PairError::Words(_) | PairError::Config(_) => failed(Exit::Usage),
        PairError::Away(away) => {
            failed(Exit::Identity).next(shell::settled(&away.command(), Some(root), None))
        }
        PairError::Taken { .. } => failed(Exit::Usage).next(context.command("doctor")),
        PairError::Places { .. } if error.is_busy() => failed(Exit::Temporary),
        PairError::Places { .. } | PairError::Ledger(_) | PairError::Io { .. } => {
            failed(Exit::Failed)
        }
    }
}

/// Checks the name of an output format, as in the config.
fn form(word: &str) -> Result<String, String> {
    let known = serde_json::from_value::<OutputFormat>(word.into());
    known
        .map(|_| word.to_owned())
        .map_err(|_| "expected text, claude, codex, gemini or opencode".to_owned())
}

/// Reports the progress of a pair.
pub(super) struct Teller {
    as_json: bool,
    drawn: Option<Instant>,
    failed: Option<Failure>,
}

impl Teller {
    pub(super) fn new(as_json: bool) -> Self {
        Self {
            as_json,
            drawn: None,
            failed: None,
        }
    }

    /// Returns the error of the first report that could not be written.
    pub(super) fn finish(self) -> Result<(), Failure> {
        // A closed pipe does not end a pair, because the ledger has everything.
        match self.failed {
            Some(failure) if !failure.is_broken_pipe() => Err(failure),
            Some(_) | None => Ok(()),
        }
    }

    pub(super) fn show(&mut self, progress: &Progress<'_>) {
        if self.failed.is_some() {
            return;
        }
        let told = match progress {
            Progress::Told(told) if self.as_json => {
                print(&CommandOutput::new(PairLine::of(*told)).line())
            }
            Progress::Works(..) if self.as_json => Ok(()),
            Progress::Told(told) => self.line(*told),
            Progress::Works(role, passed, turns) => self.frame(*role, *passed, *turns),
        };
        self.failed = told.err();
    }

    fn line(&mut self, told: RecordedStep<'_>) -> Result<(), Failure> {
        // Clears the line of the running command first.
        let clear = if self.drawn.take().is_some() {
            "\r\u{1b}[K"
        } else {
            ""
        };
        step_line(told).map_or(Ok(()), |text| print(&format!("{clear}{text}\n")))
    }

    fn frame(&mut self, role: Role, passed: Duration, turns: u32) -> Result<(), Failure> {
        if self.drawn.is_some_and(|drawn| drawn.elapsed() < FRAME) {
            return Ok(());
        }
        self.drawn = Some(Instant::now());
        write!(stdout(), "\r\u{1b}[K       {}", works(role, passed, turns))?;
        Ok(stdout().flush()?)
    }
}

/// The exit code: 0 if the pair is complete, 6 if a person has to decide, 9 if it can be resumed, otherwise 1.
fn exit(status: &PairStatus) -> Exit {
    match status.pair.failure() {
        None if status.pair.run() == RunState::Complete => Exit::Ok,
        Some(PairFailure::WithAPerson | PairFailure::Unanswered) => Exit::ActionRequired,
        Some(PairFailure::Interrupted) => Exit::Temporary,
        Some(
            PairFailure::NotStarted
            | PairFailure::GaveUp
            | PairFailure::Crashed
            | PairFailure::IterationLimit
            | PairFailure::BudgetSpent,
        )
        | None => Exit::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_tells_what_a_person_can_do_about_a_pair_that_failed() {
        let member = |agent: &str| PairMember {
            agent: agent.parse().expect("a name"),
            command: "true".to_owned(),
            output: "text".to_owned(),
        };
        let setup = PairSetup {
            author: member("claude"),
            reviewer: Some(member("codex")),
            workdir: "/".to_owned(),
            task: String::new(),
            pr: None,
            iterations: 1,
            run_seconds: 1,
            seconds: 1,
            turns: None,
            words: SignalWords::default(),
        };
        let new = PairStatus::new(&setup);
        assert_eq!(exit(&new), Exit::Failed, "it has not ended");
        for (failure, expected) in [
            (PairFailure::WithAPerson, Exit::ActionRequired),
            (PairFailure::Unanswered, Exit::ActionRequired),
            (PairFailure::Interrupted, Exit::Temporary),
            (PairFailure::Crashed, Exit::Failed),
            (PairFailure::BudgetSpent, Exit::Failed),
        ] {
            let pair = new.pair.failed(failure);
            assert_eq!(exit(&PairStatus { pair, ..new }), expected, "{failure:?}");
        }
    }

    #[test]
    fn a_closed_pipe_ends_no_pair_and_the_first_other_error_is_kept() {
        let ended = |failed: Option<Failure>| {
            let teller = Teller {
                failed,
                ..Teller::new(true)
            };
            teller.finish().map_err(|failure| failure.message)
        };
        let failure = || Failure::plain(Exit::Failed, "no space".to_owned());
        assert_eq!(ended(None), Ok(()));
        assert_eq!(ended(Some(failure())), Err("no space".to_owned()));
        let closed = Failure {
            cause: Some(std::io::ErrorKind::BrokenPipe),
            ..failure()
        };
        assert_eq!(ended(Some(closed)), Ok(()));
    }
}
