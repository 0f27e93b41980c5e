//! Checks that an order has nothing that only the daemon can observe, and no text that the ledger refuses.

use message_schema::line;
use review::{Event, PairStep, TASK_MAX, TRANSCRIPT_MAX};

/// The longest name and the longest reason in an order, in characters.
pub const TEXT_MAX: usize = 500;

/// Checks that an order may contain this event; the error says why not.
pub fn check(event: &Event) -> Result<(), String> {
    match event {
        Event::Deadline { .. } => Err("only the daemon reports a deadline".to_owned()),
        Event::Person(decision) => fit("the name of the person who decides", &decision.by)
            .and_then(|()| fit("the reason", &decision.reason)),
        Event::Pull(event) => event
            .author
            .as_deref()
            .map_or(Ok(()), |author| fit("the author", author)),
        Event::Observed { .. } => Err("only the daemon reports what a reviewer read".to_owned()),
        Event::Ran { run, .. } => fit("the command", &run.command),
        Event::Spent(_) => Err("only the daemon reports what a command used".to_owned()),
        Event::Started(_) | Event::Failed { .. } => {
            Err("only the daemon reports how a command ends".to_owned())
        }
        Event::LedgerAccepted(_) => {
            Err("a ledger is accepted with `settled ledger accept`".to_owned())
        }
        Event::SentDiffers(_) => Err("only the daemon reports changes in `sent/`".to_owned()),
        Event::Host(change) => match change.decision() {
            Some(decision) => fit("the name of the person who decides", &decision.by)
                .and_then(|()| fit("the reason", &decision.reason)),
            // Only a host itself reports that it joined, and its daemon signs that.
            None => Ok(()),
        },
        Event::Taken(_) | Event::Turns { .. } => Ok(()),
        Event::Pair(news) => check_pair(&news.what),
    }
}

fn check_pair(step: &PairStep) -> Result<(), String> {
    let run = match step {
        PairStep::Opened(setup) => {
            let is_fit = setup.task.len() <= TASK_MAX && !setup.task.trim().is_empty();
            return if is_fit {
                Ok(())
            } else {
                Err(format!("the task must have 1 to {TASK_MAX} bytes"))
            };
        }
        PairStep::Started
        | PairStep::Began(_)
        | PairStep::Resumed
        | PairStep::Dropped
        | PairStep::NotStarted { .. } => None,
        PairStep::Ended { run, .. } | PairStep::Crashed { run, .. } => Some(run),
        PairStep::Interrupted { run, .. } => run.as_ref(),
    };
    let why = match step {
        PairStep::NotStarted { why }
        | PairStep::Crashed { why, .. }
        | PairStep::Interrupted { why, .. } => Some(why),
        PairStep::Opened(_)
        | PairStep::Started
        | PairStep::Began(_)
        | PairStep::Resumed
        | PairStep::Dropped
        | PairStep::Ended { .. } => None,
    };
    why.map_or(Ok(()), |why| fit("the reason", why))?;
    if run.is_some_and(|run| run.said.chars().count() > TRANSCRIPT_MAX) {
        return Err(format!(
            "the transcript must have at most {TRANSCRIPT_MAX} characters"
        ));
    }
    Ok(())
}

/// True if the ledger accepts this text of a person: one line, not blank and not too long.
pub fn is_fit(text: &str) -> bool {
    !text.trim().is_empty() && text.chars().count() <= TEXT_MAX && line::is_one_line(text)
}

fn fit(what: &str, text: &str) -> Result<(), String> {
    if is_fit(text) {
        return Ok(());
    }
    Err(format!(
        "{what} is expected to have 1 to {TEXT_MAX} characters on one line"
    ))
}
