//! `settled log`: every decision, oldest first, and those that come.

use std::collections::VecDeque;
use std::io::Write as _;
use std::path::Path;

use clap::builder::PossibleValuesParser;
use inspect::sieve::{Sieve, VERDICTS};
use mailbox::bell::Bell;
use message_schema::id::{AgentName, PrNumber};
use message_schema::line::escaped;
use review::{Happened, Notice, Record};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;
use spool::{Content, Delivery, Entry, Layout, Since, SpoolError, Tail};
use workspace::fold;

use super::answer::Answer;
use super::context::{Context, Root};
use super::failure::Failure;
use super::status;
use crate::exit::Exit;

/// So many are shown before what comes, unless it is said how many.
const BEFORE_FOLLOWING: usize = 10;

/// Shows every decision.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled log ./mailroom
  settled log -n 20
  settled log --follow --pr 86                   what comes, as it comes
  settled log --follow -n 0 --verdict refused --json
  settled log ./mailroom --json | jq 'select(.data.verdict == \"refused\")'")]
pub(super) struct Args {
    #[command(flatten)]
    root: Root,
    /// Go on with what comes, until Ctrl-C
    #[arg(long, short)]
    follow: bool,
    /// Only the last N; 10 if what comes is followed
    #[arg(short = 'n', long = "last", value_name = "N")]
    last: Option<usize>,
    /// Only what is about this pull request
    #[arg(long, value_name = "PR")]
    pr: Option<PrNumber>,
    /// Only what this agent sent or got, or what moved a review of its own
    #[arg(long, value_name = "AGENT", value_parser = super::agent)]
    of: Option<AgentName>,
    /// Only records of this verdict
    #[arg(long, value_name = "VERDICT", value_parser = PossibleValuesParser::new(VERDICTS))]
    verdict: Option<String>,
}

/// The JSON form of one line. Fields are added, never changed.
#[derive(Debug, Serialize)]
pub(super) struct Line {
    seq: u64,
    at: String,
    verdict: String,
    outbox: Option<String>,
    file: Option<String>,
    id: Option<String>,
    review: Option<String>,
    delivered: Vec<String>,
    /// Copies the sender had put into a mailbox itself, and which were taken out again.
    withdrawn: Vec<String>,
    what: String,
    warnings: Vec<String>,
}

pub(super) fn run(args: &Args, context: Context) -> Result<Exit, Failure> {
    let context = context.at(&args.root);
    let root = context.workspace()?;
    let sieve = Sieve {
        pr: args.pr.clone(),
        of: args.of.clone(),
        verdict: args.verdict.clone(),
    };
    let shown = Shown {
        sieve,
        as_json: context.json,
    };
    match show(args, root, &shown) {
        Err(failure) if failure.is_broken_pipe => Ok(Exit::Ok),
        result => result.map(|()| Exit::Ok),
    }
}

/// What is shown, and how.
struct Shown {
    sieve: Sieve,
    as_json: bool,
}

impl Shown {
    /// The line of a record that is asked for.
    fn line(&self, entry: &Entry) -> Result<Option<String>, fold::Unreadable> {
        let (record, _) = fold::decision(entry)?;
        Ok(self.sieve.lets(entry, &record).then(|| {
            let line = line(entry, record);
            if self.as_json {
                Answer::new(line).line()
            } else {
                text(&line)
            }
        }))
    }
}

fn show(args: &Args, root: &Path, shown: &Shown) -> Result<(), Failure> {
    let failed = |error: &(dyn std::error::Error + 'static)| Failure::new(Exit::Failed, error);
    let last = args.last.or(args.follow.then_some(BEFORE_FOLLOWING));
    // Before the first look, so that nothing comes in between unheard.
    let mut bell = args
        .follow
        .then(|| Bell::at(&[&Layout::new(root).ledger()]));
    let mut tail =
        open(root, last.filter(|_| shown.sieve.is_open())).map_err(|error| failed(&error))?;
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
        let Some(bell) = &mut bell else { return Ok(()) };
        if is_unread() {
            return Ok(());
        }
        bell.wait();
        let read = tail.read(&mut |entry| {
            Ok(shown
                .line(entry)?
                .map_or(Ok(()), |line| out.write_all(line.as_bytes()))?)
        });
        read.map_err(|error| failed(&error))?;
    }
}

/// The ledger, from its last records on where only those are asked for.
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

/// Whether the reader of our output has gone away, which is otherwise seen only when there is something to write.
fn is_unread() -> bool {
    let out = std::io::stdout();
    let mut polled = [PollFd::new(&out, PollFlags::empty())];
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut polled, Some(&at_once)).is_ok() && polled[0].revents().contains(PollFlags::ERR)
}

pub(super) fn line(entry: &Entry, record: Record) -> Line {
    let original = entry.original.as_ref();
    let (withdrawn, delivered) = entry
        .deliveries
        .iter()
        .partition::<Vec<&Delivery>, _>(|delivery| is_withdrawn(delivery));
    let places = |deliveries: Vec<&Delivery>| deliveries.into_iter().map(place).collect();
    Line {
        seq: entry.seq,
        at: entry.at.clone(),
        verdict: entry.kind.clone(),
        outbox: original.map(|original| original.outbox.clone()),
        file: original.map(|original| original.file.to_string()),
        id: entry.id.clone(),
        review: entry.review.clone(),
        delivered: places(delivered),
        withdrawn: places(withdrawn),
        what: what(&record),
        warnings: match record {
            Record::Accepted(accepted) => accepted.warnings,
            Record::Duplicate { .. }
            | Record::Refused { .. }
            | Record::Happened(_)
            | Record::Declined { .. } => Vec::new(),
        },
    }
}

fn is_withdrawn(delivery: &Delivery) -> bool {
    match delivery.content {
        Content::Withdrawn(_) => true,
        Content::Original | Content::Text(_) => false,
    }
}

fn place(delivery: &Delivery) -> String {
    format!("{}/{}", delivery.mailbox, delivery.file)
}

fn what(record: &Record) -> String {
    match record {
        Record::Accepted(accepted) => match &accepted.step {
            Some(step) => format!(
                "{} -> {} round {}",
                accepted.kind,
                step.phase.word(),
                step.round
            ),
            None => accepted.kind.to_string(),
        },
        Record::Duplicate { .. } => "the same bytes were accepted before".to_owned(),
        Record::Refused {
            code, cost, notice, ..
        } => {
            let cost = cost
                .as_ref()
                .map_or_else(String::new, |cost| match cost.attempts_left {
                    0 => ", no attempt left: escalated".to_owned(),
                    left => format!(", {left} attempts left"),
                });
            let told = match notice {
                Notice::Sent { .. } => "",
                Notice::Withheld => ", notice withheld",
                Notice::Never => ", no notice",
            };
            format!("{code}{cost}{told}")
        }
        Record::Happened(happened) => happening(happened),
        Record::Declined {
            event, code, why, ..
        } => format!("{}: {code}: {why}", event.sentence()),
    }
}

fn happening(happened: &Happened) -> String {
    let mut what = happened.event.sentence();
    for step in &happened.steps {
        // A single review is named at the end of the line.
        if happened.steps.len() > 1 {
            what += &format!("; {}", step.review);
        }
        what += &format!(" -> {}", step.phase.word());
        if let Some(reason) = status::reason(&step.phase) {
            what += &format!(" ({reason})");
        }
        what += &format!(" round {}", step.round);
        if let Some(open) = step.phase.invocation() {
            what += &format!(", {} turns left", open.turns_left());
        }
        for (id, thread) in &step.threads {
            what += &format!(", {id} {}", thread.state.word());
        }
    }
    if let Some(handoff) = &happened.handoff {
        for task in &handoff.tasks {
            what += &format!("; {} -> {}", task.id, task.target);
        }
        if handoff.dropped > 0 {
            what += &format!("; {} queued findings dropped", handoff.dropped);
        }
    }
    what
}

pub(super) fn text(line: &Line) -> String {
    let from = match (&line.outbox, &line.file) {
        (Some(outbox), Some(file)) => format!("{outbox}/{file}"),
        (Some(name), None) | (None, Some(name)) => name.clone(),
        (None, None) => "-".to_owned(),
    };
    let review = line
        .review
        .as_ref()
        .map_or_else(String::new, |review| format!("  [{review}]"));
    let mut text = format!(
        "{:>6}  {}  {:<9}  {from}  {}{review}",
        line.seq, line.at, line.verdict, line.what
    );
    // File names and warnings hold what agents wrote.
    text = escaped(&text) + "\n";
    for warning in &line.warnings {
        text += &format!("        warning: {}\n", escaped(warning));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_is_taken_out_again_was_not_delivered() {
        let record = Record::Duplicate {
            from: "claude".parse().expect("a name"),
            id: "msg-1".parse().expect("an id"),
        };
        let decision = serde_json::value::to_raw_value(&record).expect("JSON");
        let delivery = |file: &str, content| Delivery {
            mailbox: "codex/inbox".parse().expect("a mailbox"),
            file: file.parse().expect("a name"),
            content,
        };
        let entry = Entry {
            seq: 1,
            prev: spool::Digest::ZERO,
            batch: 1,
            at: "2026-02-13T10:00:00.000Z".to_owned(),
            kind: "duplicate".to_owned(),
            review: None,
            id: None,
            original: None,
            deliveries: vec![
                delivery("a.yaml", Content::Text("x".to_owned())),
                delivery("b.yaml", Content::Withdrawn(spool::Digest::ZERO)),
            ],
            decision,
        };
        let line = line(&entry, record);
        assert_eq!(
            (line.delivered, line.withdrawn),
            (
                vec!["codex/inbox/a.yaml".to_owned()],
                vec!["codex/inbox/b.yaml".to_owned()]
            )
        );
    }

    #[test]
    fn no_file_name_or_warning_breaks_out_of_its_line() {
        let line = Line {
            seq: 1,
            at: "2026-02-13T10:00:00.000Z".to_owned(),
            verdict: "refused".to_owned(),
            outbox: Some("claude".to_owned()),
            file: Some("a\u{202e}\n.yaml".to_owned()),
            id: None,
            review: None,
            delivered: Vec::new(),
            withdrawn: Vec::new(),
            what: "expired".to_owned(),
            warnings: vec!["\u{1b}[31m\r".to_owned()],
        };
        let said = "     1  2026-02-13T10:00:00.000Z  refused    claude/a\\u{202e}\\n.yaml  expired\n        \
                    warning: \\u{1b}[31m\\r\n";
        assert_eq!(text(&line), said);
    }
}
