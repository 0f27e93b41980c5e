//! Runs a scenario: step after step at its virtual time, and holds what came out against what was
//! expected.

use message_schema::{Code, Place};
use serde::Serialize;

use super::alone::{PairTable, Threads, ended_with, transition};
use super::compose::{Around, mail};
use super::deeds::Deed;
use super::format::{Expected, Profile, Scenario, ScenarioStep, Setup};
use super::outcome::{Outcome, Weight};
use super::reader::{Read, Wrong};
use super::table::Table;

/// What a scenario came to.
#[derive(Clone, Debug, Serialize)]
pub struct Transcript {
    /// The rule it claims.
    pub title: String,
    /// Which part of the rules it exercised.
    pub profile: Profile,
    /// What each step came to.
    pub steps: Vec<Played>,
    /// Where everything stands at the end, one fact a line.
    #[serde(rename = "final")]
    pub end: Vec<String>,
    /// How many lines were expected.
    pub expected: usize,
    /// Where it came out otherwise.
    pub mismatches: Vec<Mismatch>,
}

/// A step that was played.
#[derive(Clone, Debug, Serialize)]
pub struct Played {
    /// Its number, from 1.
    pub step: usize,
    /// When, RFC 3339.
    pub at: String,
    /// What was done, in a few words.
    pub deed: String,
    /// What came out.
    pub outcomes: Vec<Outcome>,
}

/// Something that was expected and did not come, or came and was not expected.
#[derive(Clone, Debug, Serialize)]
pub struct Mismatch {
    /// The step, from 1; `None` for the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<usize>,
    /// The line of the scenario, from 1.
    pub line: u32,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What came out.
    pub got: Vec<String>,
}

/// Runs a scenario. Fails, with a place in the file, where a step cannot be carried out at all.
pub(super) fn run(scenario: &Scenario) -> Result<Transcript, Wrong> {
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
            Some(expected) => compare(expected, &played.outcomes, step.place),
            None if is_tested => setup_refused(&played.outcomes, step.place),
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
    // Whatever was played, a daemon that starts now stands where this one does.
    if let Some(last) = scenario.steps.last() {
        play.do_it(
            scenario.steps.len() + 1,
            &ScenarioStep {
                deed: Deed::Restart,
                ..last.clone()
            },
        )?;
    }
    transcript.end = play.lines(scenario.profile);
    let end: Vec<&str> = transcript.end.iter().map(String::as_str).collect();
    transcript
        .mismatches
        .extend(missing(&scenario.expected, &end));
    Ok(transcript)
}

/// The parts of the rules at play.
struct Play<'a> {
    setup: &'a Setup,
    table: Table,
    threads: Threads,
    pair: PairTable,
}

impl<'a> Play<'a> {
    fn begin(scenario: &'a Scenario) -> Read<Self> {
        let setup = &scenario.setup;
        let mut table = Table::new(setup);
        if scenario.profile == Profile::Handoff
            && let Some(record) = ended_with(setup)?
        {
            table.apply(record);
        }
        Ok(Self {
            setup,
            table,
            threads: Threads::of(setup)?,
            pair: PairTable::new(&setup.pair),
        })
    }

    fn step(
        &mut self,
        number: usize,
        step: &ScenarioStep,
        next: Option<&ScenarioStep>,
    ) -> Read<Played> {
        let mut outcomes = Vec::new();
        if let Some(at) = step.at {
            if at < self.table.now {
                let now = self.table.now.format("%Y-%m-%dT%H:%M:%SZ");
                return Err(Wrong::at(
                    step.place,
                    format!("the step lies before {now}, when the last one was"),
                ));
            }
            outcomes = self.table.pass_to(at);
        }
        let (deed, done) = self.do_it(number, step)?;
        outcomes.extend(done);
        // A message that comes at the very instant of a deadline goes first.
        let together = next.is_some_and(|next| next.at.is_none_or(|at| at == self.table.now));
        if !together || matches!(step.deed, Deed::Wait(_)) {
            outcomes.extend(self.table.keep_deadlines());
        }
        let at = self
            .table
            .now
            .to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
        Ok(Played {
            step: number,
            at,
            deed,
            outcomes,
        })
    }

    fn do_it(&mut self, number: usize, step: &ScenarioStep) -> Read<(String, Vec<Outcome>)> {
        let broken = |why: String| Wrong::at(step.place, format!("an error of ours: {why}"));
        let plain = |label: &str, outcomes| Ok((label.to_owned(), outcomes));
        match &step.deed {
            Deed::Send(node) => {
                let round = |pr: &_| self.table.round(pr);
                let around = Around {
                    setup: self.setup,
                    number,
                    now: self.table.now,
                    round: &round,
                };
                let mail = mail(node, &around)?;
                let outcomes = self.table.post(&mail);
                Ok((mail.label, outcomes))
            }
            Deed::Raw(raw) => Ok((format!("a file of {}", raw.outbox), self.table.find(raw))),
            Deed::Event(event) => Ok((event.sentence(), self.table.hear(event))),
            Deed::Ignored => plain("a forge's event", vec![Outcome::yes("ignored")]),
            Deed::Wait(span) => {
                let until = self.table.now + *span;
                Ok((
                    format!("wait {} s", span.num_seconds()),
                    self.table.pass_to(until),
                ))
            }
            Deed::Restart => plain("restart", self.table.restart().map_err(broken)?),
            Deed::Config(Ok(config)) => plain(
                "config",
                self.table.reconfigure(config, self.setup).map_err(broken)?,
            ),
            Deed::Config(Err(wrong)) => {
                let code = Code::ConfigInvalid;
                let line = format!("refused {code} line={}", wrong.place.line);
                plain(
                    "config",
                    vec![Outcome::no(line, code).with(None, &wrong.message)],
                )
            }
            Deed::Cycle(node) => plain("cycle", self.threads.cycle(node, self.table.policy())?),
            Deed::Lgtm(node) => plain("lgtm", self.threads.lgtm(node, self.table.policy())?),
            Deed::Transition { from, to } => Ok((
                format!("{} -> {}", from.word(), to.word()),
                transition(*from, *to),
            )),
            Deed::Pair(deed) => plain("pair", self.pair.happen(deed)),
        }
    }

    fn lines(&self, profile: Profile) -> Vec<String> {
        match profile {
            Profile::Full | Profile::Handoff => self.table.lines(),
            Profile::Threads | Profile::Gate => self.threads.lines(),
            Profile::Run => self.pair.lines(),
        }
    }
}

/// The word that stands for "nothing came out".
const NOTHING: &str = "nothing";

/// Every expected line came out, and every verdict that came out was expected.
fn compare(expected: &[Expected], outcomes: &[Outcome], place: Place) -> Vec<Mismatch> {
    let got: Vec<&str> = outcomes
        .iter()
        .map(|outcome| outcome.line.as_str())
        .collect();
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
    let verdicts = outcomes
        .iter()
        .filter(|outcome| outcome.weight != Weight::Note);
    let unexpected = verdicts
        .filter(|outcome| {
            !expected
                .iter()
                .any(|expected| holds(&expected.line, &outcome.line))
        })
        .map(|outcome| mismatch(place, format!("not expected: {}", outcome.line), &got));
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

/// A line holds what was expected if it begins with it, word for word.
fn holds(expected: &str, line: &str) -> bool {
    let rest = line.strip_prefix(expected);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', ':', ',']))
}

/// A step that nobody expects anything of only sets the scene, and has to be done.
fn setup_refused(outcomes: &[Outcome], place: Place) -> Vec<Mismatch> {
    let got: Vec<&str> = outcomes
        .iter()
        .map(|outcome| outcome.line.as_str())
        .collect();
    let refused = outcomes
        .iter()
        .filter(|outcome| outcome.weight == Weight::No);
    refused
        .map(|outcome| mismatch(place, format!("not expected: {}", outcome.line), &got))
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

    /// What is wrong with a scenario of these steps.
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
