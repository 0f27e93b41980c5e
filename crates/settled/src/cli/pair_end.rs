//! The end of a pair, and its transcript.

use message_schema::line::escaped;
use review::{PairFailure, PairId, PairStanding, PairStep, Run};
use serde::Serialize;

use super::pair_told::{Line, said};
use crate::exit::Exit;
use ::pair::Told;
use ::pair::history::Past;

/// The end of a pair.
pub(super) struct Last<'a> {
    pub(super) id: &'a PairId,
    pub(super) standing: PairStanding,
}

impl Last<'_> {
    pub(super) fn line(&self) -> Line {
        Line::bare(self.id, "over", &self.standing)
    }

    /// 0 for a pair that is complete, 6 where a person is asked, 9 where it can go on, else 1.
    pub(super) fn exit(&self) -> Exit {
        match self.standing.pair.failure() {
            None if self.standing.pair.run() == Run::Complete => Exit::Ok,
            Some(PairFailure::WithAPerson) => Exit::ActionRequired,
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

    /// The words of the command that comes next.
    pub(super) fn next(&self) -> Option<String> {
        match self.standing.pair.failure()? {
            PairFailure::Interrupted => Some(format!("pair --resume {}", self.id)),
            PairFailure::WithAPerson => Some("problems".to_owned()),
            PairFailure::NotStarted
            | PairFailure::GaveUp
            | PairFailure::Crashed
            | PairFailure::IterationLimit
            | PairFailure::BudgetSpent => Some(format!("pair --transcript {}", self.id)),
        }
    }

    pub(super) fn sentence(&self) -> String {
        let iterations = match self.standing.pair.iteration() {
            1 => "1 iteration".to_owned(),
            n => format!("{n} iterations"),
        };
        match self.standing.pair.failure() {
            None => format!("{} is complete after {iterations}", self.id),
            Some(failure) => {
                format!("{} failed after {iterations}: {}", self.id, reason(failure))
            }
        }
    }
}

fn reason(failure: PairFailure) -> &'static str {
    match failure {
        PairFailure::NotStarted => "its commands could not be started",
        PairFailure::GaveUp => "one of the two gave up",
        PairFailure::Crashed => "a command crashed twice in one turn",
        PairFailure::IterationLimit => "no iteration is left",
        PairFailure::Interrupted => "it was interrupted, and can go on",
        PairFailure::BudgetSpent => "its seconds or its turns are used up",
        PairFailure::WithAPerson => "a review between the two is with a person",
    }
}

/// All that happened to a pair.
#[derive(Debug, Serialize)]
pub(super) struct Transcripts {
    steps: Vec<Step>,
    #[serde(skip)]
    lines: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Step {
    seq: u64,
    at: String,
    #[serde(flatten)]
    line: Line,
}

pub(super) fn transcript(id: &PairId, past: &[Past]) -> Transcripts {
    let (mut lines, mut steps) = (Vec::new(), Vec::new());
    let opened = past.iter().find_map(|past| match &past.step {
        PairStep::Opened(setup) => Some(&**setup),
        PairStep::Started
        | PairStep::NotStarted { .. }
        | PairStep::Began(_)
        | PairStep::Ended { .. }
        | PairStep::Crashed { .. }
        | PairStep::Interrupted { .. }
        | PairStep::Resumed
        | PairStep::Dropped => None,
    });
    let mut was = past.first().map(|past| past.standing);
    for Past {
        seq,
        at,
        step,
        standing,
    } in past
    {
        let (setup, before) = opened
            .zip(was)
            .expect("what is found begins with its opening");
        let told = Told {
            pair: id,
            setup,
            step,
            was: before,
            standing,
        };
        if let Some(text) = said(told) {
            lines.push(format!("{at}  {}", text.trim_start()));
        }
        lines.extend(words(step).into_iter().flat_map(quoted));
        steps.push(Step {
            seq: *seq,
            at: at.clone(),
            line: Line::of(told),
        });
        was = Some(*standing);
    }
    Transcripts { steps, lines }
}

/// The words that were given or said in a step.
fn words(step: &PairStep) -> Option<&str> {
    match step {
        PairStep::Opened(setup) => Some(&setup.task),
        PairStep::Ended { run, .. }
        | PairStep::Crashed { run, .. }
        | PairStep::Interrupted { run: Some(run), .. } => Some(&run.said),
        PairStep::Interrupted { run: None, .. }
        | PairStep::Started
        | PairStep::NotStarted { .. }
        | PairStep::Began(_)
        | PairStep::Resumed
        | PairStep::Dropped => None,
    }
}

/// What others wrote, line by line, each marked and none that steers a terminal.
fn quoted(text: &str) -> Vec<String> {
    text.lines()
        .map(|line| format!("    | {}", escaped(line)))
        .collect()
}

impl Transcripts {
    pub(super) fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }
}
