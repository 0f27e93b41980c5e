//! `settled log`: prints every decision, oldest first, and with `--follow` the new ones.

use std::collections::VecDeque;
use std::io::Write as _;
use std::path::Path;

use clap::builder::PossibleValuesParser;
use inspect::filter::{RecordFilter, verdicts};
use inspect::log::LogLine;
use mailbox::wakeup::Wakeup;
use message_schema::id::{AgentName, PrNumber};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use spool::{Entry, Layout, Since, SpoolError, Tail};
use workspace::directory::agent_name;
use workspace::index;

use super::answer::CommandOutput;
use super::context::{Context, Root};
use super::failure::Failure;
use crate::exit::Exit;

/// The default number of records before the new ones.
const BEFORE_FOLLOWING: usize = 10;

/// Shows every decision.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled log ./mailroom
  settled log -n 20
  settled log --follow --pr 86                   new records as they arrive
  settled log --follow -n 0 --verdict refused --json
  settled log ./mailroom --json | jq 'select(.data.verdict == \"refused\")'")]
pub(super) struct Args {
    #[command(flatten)]
    root: Root,
    /// Keep printing new records until Ctrl-C
    #[arg(long, short)]
    follow: bool,
    /// Only the last N records; 10 with --follow
    #[arg(short = 'n', long = "last", value_name = "N")]
    last: Option<usize>,
    /// Only records of this pull request
    #[arg(long, value_name = "PR")]
    pr: Option<PrNumber>,
    /// Only messages that this agent sent or received, and events of its reviews
    #[arg(long, value_name = "AGENT", value_parser = agent_name)]
    of: Option<AgentName>,
    /// Only records with this verdict
    #[arg(long, value_name = "VERDICT", value_parser = PossibleValuesParser::new(verdicts()))]
    verdict: Option<String>,
}

pub(super) fn run(args: &Args, context: Context) -> Result<Exit, Failure> {
    let context = context.at(&args.root);
    let root = context.workspace()?;
    let filter = RecordFilter {
        pr: args.pr.clone(),
        of: args.of.clone(),
        verdict: args.verdict.clone(),
    };
    let shown = LogPrinter {
        filter,
        as_json: context.json,
    };
    match show(args, root, &shown) {
        Err(failure) if failure.is_broken_pipe() => Ok(Exit::Ok),
        result => result.map(|()| Exit::Ok),
    }
}

/// The filter and the form of the output.
struct LogPrinter {
    filter: RecordFilter,
    as_json: bool,
}

impl LogPrinter {
    /// The line of a record, if the filter lets it through.
    fn line(&self, entry: &Entry) -> Result<Option<String>, index::Unreadable> {
        let (record, _) = index::decision(entry)?;
        Ok(self.filter.lets(entry, &record).then(|| {
            let line = LogLine::of(entry, record);
            if self.as_json {
                CommandOutput::new(line).line()
            } else {
                line.text()
            }
        }))
    }
}

fn show(args: &Args, root: &Path, shown: &LogPrinter) -> Result<(), Failure> {
    let failed = |error: &(dyn std::error::Error + 'static)| Failure::new(Exit::Failed, error);
    let last = args.last.or(args.follow.then_some(BEFORE_FOLLOWING));
    // Watch before the first read, so that no record is missed.
    let mut wakeup = args
        .follow
        .then(|| Wakeup::at(&[&Layout::new(root).ledger()]));
    let mut tail =
        open(root, last.filter(|_| shown.filter.is_open())).map_err(|error| failed(&error))?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut kept = VecDeque::new();
    let read = tail.read(&mut |entry| {
        let Some(line) = shown.line(entry)? else {
            return Ok(());
        };
        match last {
            None => out.write_all(line.as_bytes())?,
            Some(last) => {
                kept.push_back(line);
                if kept.len() > last {
                    kept.pop_front();
                }
            }
        }
        Ok(())
    });
    read.map_err(|error| failed(&error))?;
    kept.iter()
        .try_for_each(|line| out.write_all(line.as_bytes()))
        .map_err(|error| failed(&error))?;
    loop {
        out.flush().map_err(|error| failed(&error))?;
        let Some(wakeup) = &mut wakeup else {
            return Ok(());
        };
        if is_unread() {
            return Ok(());
        }
        wakeup.wait();
        let read = tail.read(&mut |entry| {
            Ok(shown
                .line(entry)?
                .map_or(Ok(()), |line| out.write_all(line.as_bytes()))?)
        });
        read.map_err(|error| failed(&error))?;
    }
}

/// The ledger, from the last records on if `last` is given.
fn open(root: &Path, last: Option<usize>) -> Result<Tail, SpoolError> {
    let Some(last) = last else {
        return Tail::open(root, Since::Beginning);
    };
    let end = Tail::open(root, Since::End)?;
    match last {
        0 => Ok(end),
        _ => Tail::open(root, Since::Record(end.seq().saturating_sub(last as u64))),
    }
}

/// True if the reader of our output has gone away; otherwise only a write would show it.
fn is_unread() -> bool {
    let out = std::io::stdout();
    let mut polled = [PollFd::new(&out, PollFlags::empty())];
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut polled, Some(&at_once)).is_ok() && polled[0].revents().contains(PollFlags::ERR)
}
