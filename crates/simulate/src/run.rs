//! Runs a scenario step by step at its virtual time, and compares the facts with the expected ones.

use message_schema::{Code, Place};
use serde::Serialize;

use super::compose::{ComposeContext, mail};
use super::facts::{Ended, Fact, FactKind};
use super::format::{Expected, Profile, Scenario, ScenarioStep, Setup};
use super::profiles::{PairProfile, ThreadsProfile, ended_with, transition};
use super::reader::{ParseError, Parsed};
use super::session::Session;
use super::steps::StepAction;

/// The result of a scenario.
#[derive(Clone, Debug, Serialize)]
pub struct Transcript {
    /// The rule it tests.
    pub title: String,
    /// The part of the rules it exercised.
    pub profile: Profile,
    /// The result of each step.
    pub steps: Vec<Played>,
    /// The final state: one entry for each review or task.
    #[serde(rename = "final")]
    pub end: Vec<Ended>,
    /// The number of expected lines.
    pub expected: usize,
    /// The differences between the expected and the actual facts.
    pub mismatches: Vec<Mismatch>,
}

/// The result of a step.
#[derive(Clone, Debug, Serialize)]
pub struct Played {
    /// Its number, from 1.
    pub step: usize,
    /// Its time, RFC 3339.
    pub at: String,
    /// Its action in a few words.
    #[serde(rename = "deed")]
    pub action: String,
    /// The facts it produced.
    #[serde(rename = "outcomes")]
    pub facts: Vec<Fact>,
}

/// An expected fact that is missing, or an unexpected one.
#[derive(Clone, Debug, Serialize)]
pub struct Mismatch {
    /// The step, from 1; `None` for the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<usize>,
    /// The line of the scenario, from 1.
    pub line: u32,
    /// The mismatch in one sentence.
    pub message: String,
    /// The actual facts.
    pub got: Vec<String>,
}

/// Runs a scenario. Fails, with a position in the file, if a step cannot be carried out at all.
pub(super) fn run(scenario: &Scenario) -> Result<Transcript, ParseError> {
    let mut play = Play::begin(scenario)?;
    let is_tested =
        !scenario.expected.is_empty() || scenario.steps.iter().any(|step| step.expected.is_some());
    let mut transcript = Transcript {
        title: scenario.title.clone(),
        profile: scenario.profile,
        steps: Vec::new(),
        end: Vec::new(),
        expected: scenario.expected.len(),
        mismatches: Vec::new(),
    };
    for (n, step) in scenario.steps.iter().enumerate() {
        let played = play.step(n + 1, step, scenario.steps.get(n + 1))?;
        let found = match &step.expected {
            Some(expected) => compare(expected, &played.facts, step.place),
            None if is_tested => setup_refused(&played.facts, step.place),
            None => Vec::new(),
        };
        transcript.expected += step.expected.as_ref().map_or(0, Vec::len);
        transcript
            .mismatches
            .extend(found.into_iter().map(|one| Mismatch {
                step: Some(n + 1),
                ..one
            }));
        transcript.steps.push(played);
    }
    // After any scenario, a restarted daemon must reach the same state.
    if let Some(last) = scenario.steps.last() {
        play.perform(
            scenario.steps.len() + 1,
            &ScenarioStep {
                action: StepAction::Restart,
                ..last.clone()
            },
        )?;
    }
    transcript.end = play.ended(scenario.profile);
    let lines = transcript.end.iter().flat_map(|ended| &ended.lines);
    let end: Vec<&str> = lines.map(String::as_str).collect();
    transcript
        .mismatches
        .extend(missing(&scenario.expected, &end));
    Ok(transcript)
}

/// The scenario while it is played.
struct Play<'a> {
    setup: &'a Setup,
    session: Session,
    threads: ThreadsProfile,
    pair: PairProfile,
}

impl<'a> Play<'a> {
    fn begin(scenario: &'a Scenario) -> Parsed<Self> {
        let setup = &scenario.setup;
        let mut session = Session::new(setup);
        if scenario.profile == Profile::Handoff
            && let Some(record) = ended_with(setup)?
        {
            session.apply(record);
        }
        Ok(Self {
            setup,
            session,
            threads: ThreadsProfile::of(setup)?,
            pair: PairProfile::new(&setup.pair),
        })
    }

    fn step(
        &mut self,
        number: usize,
        step: &ScenarioStep,
        next: Option<&ScenarioStep>,
    ) -> Parsed<Played> {
        let mut facts = Vec::new();
        if let Some(at) = step.at {
            if at < self.session.now {
                let now = self.session.now.format("%Y-%m-%dT%H:%M:%SZ");
                return Err(ParseError::at(
                    step.place,
                    format!("the step is before {now}, when the last one was"),
                ));
            }
            facts = self.session.pass_to(at);
        }
        let (action, done) = self.perform(number, step)?;
        facts.extend(done);
        // A message at the very instant of a deadline goes first.
        let together = next.is_some_and(|next| next.at.is_none_or(|at| at == self.session.now));
        if !together || matches!(step.action, StepAction::Wait(_)) {
            facts.extend(self.session.keep_deadlines());
        }
        let at = self
            .session
            .now
            .to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
        Ok(Played {
            step: number,
            at,
            action,
            facts,
        })
    }

    fn perform(&mut self, number: usize, step: &ScenarioStep) -> Parsed<(String, Vec<Fact>)> {
        let broken = |why: String| ParseError::at(step.place, format!("an error of ours: {why}"));
        let plain = |label: &str, facts| Ok((label.to_owned(), facts));
        match &step.action {
            StepAction::Send(node) => {
                let round = |pr: &_| self.session.round(pr);
                let context = ComposeContext {
                    setup: self.setup,
                    number,
                    now: self.session.now,
                    round: &round,
                };
                let mail = mail(node, &context)?;
                let facts = self.session.post(&mail);
                Ok((mail.label, facts))
            }
            StepAction::Raw(raw) => {
                Ok((format!("a file of {}", raw.outbox), self.session.find(raw)))
            }
            StepAction::Event(event) => Ok((event.sentence(), self.session.event(event))),
            StepAction::Ignored => plain("a forge's event", vec![Fact::yes("ignored")]),
            StepAction::Wait(span) => {
                let until = self.session.now + *span;
                Ok((
                    format!("wait {} s", span.num_seconds()),
                    self.session.pass_to(until),
                ))
            }
            StepAction::Restart => plain("restart", self.session.restart().map_err(broken)?),
            StepAction::Config(Ok(config)) => plain(
                "config",
                self.session
                    .reconfigure(config, self.setup)
                    .map_err(broken)?,
            ),
            StepAction::Config(Err(wrong)) => {
                let code = Code::ConfigInvalid;
                let line = format!("refused {code} line={}", wrong.place.line);
                plain(
                    "config",
                    vec![Fact::no(line, code).with(None, &wrong.message)],
                )
            }
            StepAction::Cycle(node) => {
                plain("cycle", self.threads.cycle(node, self.session.policy())?)
            }
            StepAction::Lgtm(node) => {
                plain("lgtm", self.threads.lgtm(node, self.session.policy())?)
            }
            StepAction::Transition { from, to } => Ok((
                format!("{} -> {}", from.word(), to.word()),
                transition(*from, *to),
            )),
            StepAction::Pair(action) => plain("pair", self.pair.act(action)),
        }
    }

    fn ended(&self, profile: Profile) -> Vec<Ended> {
        match profile {
            Profile::Full | Profile::Handoff => self.session.ended(),
            Profile::Threads | Profile::Gate => vec![Ended::plain(self.threads.lines())],
            Profile::Run => vec![Ended::plain(self.pair.lines())],
        }
    }
}

/// The word for "no facts".
const NOTHING: &str = "nothing";

/// Compares both ways: every expected line must be there, and every verdict must be expected.
fn compare(expected: &[Expected], facts: &[Fact], place: Place) -> Vec<Mismatch> {
    let got: Vec<&str> = facts.iter().map(|fact| fact.line.as_str()).collect();
    if let [only] = expected
        && only.line == NOTHING
    {
        let message = "expected nothing to come of it".to_owned();
        return if got.is_empty() {
            Vec::new()
        } else {
            vec![mismatch(only.place, message, &got)]
        };
    }
    let verdicts = facts.iter().filter(|fact| fact.kind != FactKind::Note);
    let unexpected = verdicts
        .filter(|fact| {
            !expected
                .iter()
                .any(|expected| holds(&expected.line, &fact.line))
        })
        .map(|fact| mismatch(place, format!("not expected: {}", fact.line), &got));
    missing(expected, &got)
        .into_iter()
        .chain(unexpected)
        .collect()
}

fn missing(expected: &[Expected], got: &[&str]) -> Vec<Mismatch> {
    let missing = expected
        .iter()
        .filter(|expected| !got.iter().any(|got| holds(&expected.line, got)));
    missing
        .map(|one| mismatch(one.place, format!("expected: {}", one.line), got))
        .collect()
}

/// True if the expectation is a prefix of the line that ends with a whole word.
fn holds(expected: &str, line: &str) -> bool {
    let rest = line.strip_prefix(expected);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', ':', ',']))
}

/// A step without expectations only prepares the next ones and must not be refused.
fn setup_refused(facts: &[Fact], place: Place) -> Vec<Mismatch> {
    let got: Vec<&str> = facts.iter().map(|fact| fact.line.as_str()).collect();
    let refused = facts.iter().filter(|fact| fact.kind == FactKind::No);
    refused
        .map(|fact| mismatch(place, format!("not expected: {}", fact.line), &got))
        .collect()
}

fn mismatch(place: Place, message: String, got: &[&str]) -> Mismatch {
    let got = got.iter().map(|line| (*line).to_owned()).collect();
    Mismatch {
        step: None,
        line: place.line,
        message,
        got,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The mismatches of a scenario with these steps.
    fn mismatches(steps: &str) -> Vec<String> {
        let text = format!("title: x\nsteps:\n{steps}");
        let scenario = Scenario::parse(text.as_bytes(), Path::new("x.yaml")).expect("readable");
        let transcript = run(&scenario).expect("it can be played");
        transcript
            .mismatches
            .into_iter()
            .map(|one| format!("{}: {}", one.line, one.message))
            .collect()
    }

    #[test]
    fn a_line_holds_if_it_begins_with_what_is_expected_word_for_word() {
        let line = "accepted -> fixing round 12";
        assert!(holds("accepted", line) && holds("accepted -> fixing round 12", line));
        assert!(
            !holds("accepted -> fixing round 1", line)
                && !holds("fixing", line)
                && !holds("accept", line)
        );
    }

    #[test]
    fn a_step_that_sets_the_scene_must_be_done() {
        let refused = "  - send: review_lgtm\n";
        assert_eq!(
            mismatches(refused),
            [""; 0],
            "nothing is expected of any step"
        );
        let wrong = mismatches(&format!(
            "{refused}  - send: question\n    expect: accepted\n"
        ));
        assert_eq!(
            wrong,
            ["3: not expected: refused no_open_request field=related_pr line=7"]
        );
    }

    #[test]
    fn every_verdict_has_to_be_expected_and_every_expected_line_to_come() {
        let sent =
            |expect: &str| mismatches(&format!("  - send: question\n    expect: {expect}\n"));
        assert_eq!(sent("accepted -> delivered to codex"), [""; 0]);
        assert_eq!(
            sent("duplicate"),
            [
                "4: expected: duplicate",
                "3: not expected: accepted -> delivered to codex"
            ]
        );
        assert_eq!(sent("nothing"), ["4: expected nothing to come of it"]);
        assert_eq!(mismatches("  - wait: 2h\n    expect: nothing\n"), [""; 0]);
    }
}
