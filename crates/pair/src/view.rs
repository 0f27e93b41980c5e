//! Shows a pair: each step as JSON and as a sentence, its end, and its transcript.

use std::time::Duration;

use chrono::TimeDelta;
use message_schema::id::MessageId;
use message_schema::line::escaped;
use message_schema::spend;
use review::{PairFailure, PairId, PairSetup, PairStatus, PairStep, RunState, Signal, Transcript};
use serde::Serialize;
use workspace::clock::span;

use super::history::Past;
use super::{RecordedStep, Role};

/// One step of a pair. Fields are added, never changed.
#[derive(Debug, Serialize)]
pub struct PairLine {
    /// `opened`, `started`, `began`, `ended`, `crashed`, `interrupted`, `resumed`, `dropped`, `not_started`, or at the end `over`.
    step: &'static str,
    /// The pair's name.
    pair: String,
    /// `init`, `working`, `reviewing`, `complete` or `failed`: the pair's state after the step.
    state: &'static str,
    iteration: u8,
    /// The number of the run, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<u16>,
    /// `done`, `pass`, `fail`, `near_miss`, `unsent` or `none`.
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// The reason the pair failed, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    used: Option<Used>,
    seconds_left: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    turns_left: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    setup: Option<PairSetup>,
}

/// The output and the usage of a run.
#[derive(Debug, Serialize)]
struct Used {
    ms: u64,
    turns: u32,
    /// The tokens used, as the program reports them; absent if it reports none.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
    /// The money used, in US dollars; absent if the program reports none.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<String>,
    /// The end of the output.
    said: String,
    /// The length of the whole output, in characters.
    length: u64,
    /// The agent's messages that the daemon accepted during the run.
    messages: Vec<String>,
}

impl PairLine {
    /// The line of a recorded step.
    pub fn of(told: RecordedStep<'_>) -> Self {
        let RecordedStep {
            pair, step, status, ..
        } = told;
        let (signal, why, run) = match step {
            PairStep::Ended { signal, run } => (Some(signal.word()), None, Some(run)),
            PairStep::Crashed { why, run } => (None, Some(why), Some(run)),
            PairStep::Interrupted { why, run } => (None, Some(why), run.as_ref()),
            PairStep::NotStarted { why } => (None, Some(why), None),
            PairStep::Opened(_)
            | PairStep::Started
            | PairStep::Began(_)
            | PairStep::Resumed
            | PairStep::Dropped => (None, None, None),
        };
        let begun = if let PairStep::Began(start) = step {
            Some(*start)
        } else {
            None
        };
        let setup = if let PairStep::Opened(setup) = step {
            Some((**setup).clone())
        } else {
            None
        };
        let bare = Self::bare(pair, step.word(), status);
        let run_number = run.map(|run| run.start).or(begun);
        Self {
            signal,
            why: why.cloned(),
            run: run_number,
            used: run.map(Used::of),
            setup,
            ..bare
        }
    }

    fn bare(id: &PairId, step: &'static str, status: &PairStatus) -> Self {
        let pair = status.pair;
        Self {
            step,
            pair: id.to_string(),
            state: pair.run().word(),
            iteration: pair.iteration(),
            run: None,
            signal: None,
            why: None,
            failure: pair.failure().map(PairFailure::word),
            used: None,
            seconds_left: status.ms_left / 1_000,
            turns_left: status.turns_left,
            setup: None,
        }
    }
}

impl Used {
    fn of(run: &Transcript) -> Self {
        let messages = run.messages.iter().map(ToString::to_string).collect();
        Self {
            ms: run.ms,
            turns: run.turns,
            tokens: Some(run.spend.tokens).filter(|tokens| *tokens > 0),
            cost_usd: Some(run.spend.micro_usd)
                .filter(|micro| *micro > 0)
                .map(spend::usd),
            said: run.said.clone(),
            length: run.length,
            messages,
        }
    }
}

/// The step as a line for people; none if the next step says the same.
pub fn step_line(told: RecordedStep<'_>) -> Option<String> {
    let RecordedStep {
        setup,
        step,
        was,
        status,
        ..
    } = told;
    let name = |run: RunState| {
        setup
            .member(run)
            .map_or("the pair", |member| member.agent.as_str())
    };
    let at = format!("{:>4}", was.pair.iteration());
    let was = was.pair.run();
    let took = |run: &Transcript| {
        let turns = if run.turns > 0 {
            format!(", {} turns", run.turns)
        } else {
            String::new()
        };
        let took = span(TimeDelta::milliseconds(
            i64::try_from(run.ms).unwrap_or(i64::MAX),
        ));
        let spend = if run.spend.is_nothing() {
            String::new()
        } else {
            format!(", {}", run.spend)
        };
        format!("{took}{turns}{spend}")
    };
    Some(match step {
        PairStep::Opened(setup) => {
            let reviewer = setup.reviewer.as_ref().map_or_else(
                || "nobody reviews".to_owned(),
                |reviewer| format!("{} reviews", reviewer.agent),
            );
            let whole = span(TimeDelta::seconds(setup.seconds.into()));
            let author = &setup.author.agent;
            format!(
                "{author} works, {reviewer}: at most {} iterations and {whole} of run time",
                setup.iterations
            )
        }
        PairStep::Started | PairStep::Began(_) => return None,
        PairStep::Resumed => {
            format!(
                "{at}  resumed where it stopped: {}",
                status.pair.run().word()
            )
        }
        PairStep::Dropped => format!("{at}  a person discarded it"),
        PairStep::NotStarted { why } => format!("      it cannot be started: {}", escaped(why)),
        PairStep::Ended { signal, run } => {
            let signal = match signal {
                Signal::None => "no signal".to_owned(),
                Signal::NearMiss => "nearly a signal".to_owned(),
                Signal::Unsent => "pass, and its approval was not sent".to_owned(),
                Signal::Done | Signal::Pass | Signal::Fail => signal.word().to_owned(),
            };
            let sent = match run.messages.as_slice() {
                [] => String::new(),
                messages => {
                    let ids: Vec<&str> = messages.iter().map(MessageId::as_str).collect();
                    format!(", sent {}", ids.join(", "))
                }
            };
            format!("{at}  {}: {signal}{sent}, {}", name(was), took(run))
        }
        PairStep::Crashed { why, run } => {
            let then = if status.pair.run().is_terminal() {
                ""
            } else {
                "; started again"
            };
            format!("{at}  {}: {}, {}{then}", name(was), escaped(why), took(run))
        }
        PairStep::Interrupted { why, .. } => format!("{at}  {}", escaped(why)),
    })
}

/// The line of a running command; turns are counted only in some formats of its output.
pub fn works(role: Role, passed: Duration, turns: u32) -> String {
    let turns = match turns {
        0 => String::new(),
        turns => format!(", {turns} turns"),
    };
    let passed = span(TimeDelta::from_std(passed).unwrap_or_default());
    format!("{} is working, {passed}{turns}", role.word())
}

/// The end of a pair.
pub struct Last<'a> {
    /// The pair.
    pub id: &'a PairId,
    /// The pair's state.
    pub status: PairStatus,
}

impl Last<'_> {
    /// The last line as JSON.
    pub fn line(&self) -> PairLine {
        PairLine::bare(self.id, "over", &self.status)
    }

    /// The words of the next command.
    pub fn next(&self) -> Option<String> {
        match self.status.pair.failure()? {
            PairFailure::Interrupted => Some(format!("pair --resume {}", self.id)),
            PairFailure::WithAPerson | PairFailure::Unanswered => Some("problems".to_owned()),
            PairFailure::NotStarted
            | PairFailure::GaveUp
            | PairFailure::Crashed
            | PairFailure::IterationLimit
            | PairFailure::BudgetSpent => Some(format!("pair --transcript {}", self.id)),
        }
    }

    /// The last line as a sentence.
    pub fn sentence(&self) -> String {
        let iterations = match self.status.pair.iteration() {
            1 => "1 iteration".to_owned(),
            n => format!("{n} iterations"),
        };
        match self.status.pair.failure() {
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
        PairFailure::Interrupted => "it was interrupted, and can resume",
        PairFailure::BudgetSpent => "its seconds or its turns are used up",
        PairFailure::WithAPerson => "a review between the two is with a person",
        PairFailure::Unanswered => "its review waits on threads that nobody answers",
    }
}

/// Everything that happened to a pair.
#[derive(Debug, Serialize)]
pub struct Transcripts {
    steps: Vec<TranscriptStep>,
    #[serde(skip)]
    lines: Vec<String>,
}

#[derive(Debug, Serialize)]
struct TranscriptStep {
    seq: u64,
    at: String,
    #[serde(flatten)]
    line: PairLine,
}

/// Makes the transcript of a pair from what [`super::history`] found.
pub fn transcript(id: &PairId, past: &[Past]) -> Transcripts {
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
    let mut was = past.first().map(|past| past.status);
    for Past {
        seq,
        at,
        step,
        status,
    } in past
    {
        let (setup, before) = opened
            .zip(was)
            .expect("what is found begins with its opening");
        let told = RecordedStep {
            pair: id,
            setup,
            step,
            was: before,
            status,
        };
        if let Some(text) = step_line(told) {
            lines.push(format!("{at}  {}", text.trim_start()));
        }
        lines.extend(words(step).into_iter().flat_map(marked));
        steps.push(TranscriptStep {
            seq: *seq,
            at: at.clone(),
            line: PairLine::of(told),
        });
        was = Some(*status);
    }
    Transcripts { steps, lines }
}

/// The text that was given or printed in a step.
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

/// Marks each line that others wrote, and escapes terminal control characters.
fn marked(text: &str) -> Vec<String> {
    text.lines()
        .map(|line| format!("    | {}", escaped(line)))
        .collect()
}

impl Transcripts {
    /// The transcript as text, with each line that a command printed marked.
    pub fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

#[cfg(test)]
mod tests {
    use review::SignalWords;
    use serde_json::{Value, json};

    use super::*;

    fn id() -> PairId {
        PairId(MessageId::new("pair-1").expect("an id"))
    }

    fn setup() -> PairSetup {
        let member = |agent: &str| json!({"agent": agent, "command": "run", "output": "text"});
        let setup = json!({
            "author": member("claude"), "reviewer": member("codex"), "workdir": "/repo", "task": "fix it",
            "iterations": 3, "run_seconds": 60, "seconds": 600, "words": SignalWords::default(),
        });
        serde_json::from_value(setup).expect("a set-up")
    }

    fn status(run: &str, failure: Option<PairFailure>) -> PairStatus {
        let status = json!({
            "pair": {
                "run": run, "iteration": 2, "limit": 3, "has_reviewer": true, "restarted": false, "failure": failure,
            },
            "starts": 4, "ms_left": 90_500, "turns_left": 7,
        });
        serde_json::from_value(status).expect("a status")
    }

    fn run(turns: u32, spend: &Value, messages: &[&str]) -> Transcript {
        let run = json!({
            "start": 4, "ms": 90_000, "turns": turns, "spend": spend, "said": "half\ndone", "length": 9,
            "messages": messages,
        });
        serde_json::from_value(run).expect("a run")
    }

    #[test]
    fn each_step_has_a_line_and_most_have_a_sentence() {
        let free = run(0, &json!({}), &[]);
        let paid = json!({"tokens": 1_200, "micro_usd": 250_000});
        let paid = run(3, &paid, &["m-1", "m-2"]);
        let ended = |signal, run: &Transcript| PairStep::Ended {
            signal,
            run: run.clone(),
        };
        let why = "no \u{1b} reason".to_owned();
        let steps = [
            PairStep::Opened(Box::new(setup())),
            PairStep::NotStarted { why: why.clone() },
            PairStep::Started,
            PairStep::Began(4),
            ended(Signal::Done, &paid),
            ended(Signal::NearMiss, &free),
            ended(Signal::None, &run(1, &json!({"tokens": 5}), &["m-1"])),
            PairStep::Crashed {
                why: why.clone(),
                run: free.clone(),
            },
            PairStep::Interrupted {
                why: why.clone(),
                run: Some(paid),
            },
            PairStep::Interrupted { why, run: None },
            PairStep::Resumed,
            PairStep::Dropped,
        ];
        let status = status("reviewing", None);
        let mut text = String::new();
        for step in &steps {
            let told = RecordedStep {
                pair: &id(),
                setup: &setup(),
                step,
                was: status,
                status: &status,
            };
            let line = serde_json::to_string(&PairLine::of(told)).expect("plain values are JSON");
            text += &format!("{line}\n{}\n", step_line(told).unwrap_or_default());
        }
        assert_eq!(text, include_str!("../tests/golden/steps.txt"));
    }

    #[test]
    fn each_end_has_a_sentence_and_a_next_command() {
        let failures = [
            PairFailure::NotStarted,
            PairFailure::GaveUp,
            PairFailure::Crashed,
            PairFailure::IterationLimit,
            PairFailure::Interrupted,
            PairFailure::BudgetSpent,
            PairFailure::WithAPerson,
            PairFailure::Unanswered,
        ];
        let mut text = String::new();
        for failure in std::iter::once(None).chain(failures.map(Some)) {
            let run = failure.map_or("complete", |_| "failed");
            let last = Last {
                id: &id(),
                status: status(run, failure),
            };
            let next = last.next().unwrap_or_default();
            text += &format!("{}\n{next}\n", last.sentence());
        }
        let expected = [
            "pair-1 is complete after 2 iterations",
            "",
            "pair-1 failed after 2 iterations: its commands could not be started",
            "pair --transcript pair-1",
            "pair-1 failed after 2 iterations: one of the two gave up",
            "pair --transcript pair-1",
            "pair-1 failed after 2 iterations: a command crashed twice in one turn",
            "pair --transcript pair-1",
            "pair-1 failed after 2 iterations: no iteration is left",
            "pair --transcript pair-1",
            "pair-1 failed after 2 iterations: it was interrupted, and can resume",
            "pair --resume pair-1",
            "pair-1 failed after 2 iterations: its seconds or its turns are used up",
            "pair --transcript pair-1",
            "pair-1 failed after 2 iterations: a review between the two is with a person",
            "problems",
            "pair-1 failed after 2 iterations: its review waits on threads that nobody answers",
            "problems",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }
}
