//! The authors of a soak. Each requests reviews, answers feedback with its fixes and the next request, sometimes opens
//! another generation, and sometimes falls silent, so that only its pull request ends the review.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use settled_tests::seed;

use super::cast::{AUTHORS, PLAYED, STARTED};
use super::desk::{Came, Desk};

/// One review, as its author sees it.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) author: &'static str,
    pub(super) reviewer: &'static str,
    /// The round of the newest request.
    pub(super) round: u64,
    /// The rounds of this generation after this one.
    pub(super) rounds_left: u64,
    /// Its generation, from 1.
    generation: u64,
    seconds: u32,
    /// The id of the newest request, and the time it was sent.
    request: String,
    sent: Instant,
}

/// All authors.
#[derive(Debug, Default)]
pub(super) struct Authors {
    /// The open reviews, by pull request.
    pub(super) cases: BTreeMap<u64, Case>,
    /// Pull requests whose author fell silent; somebody has to end them.
    pub(super) forsaken: Vec<u64>,
    /// Reviews that a person may reopen.
    pub(super) handed_over: Vec<(u64, Case)>,
    asked: u64,
}

/// Rounds of a generation, as in the config.
const ROUNDS: u64 = 2;

/// The most generations of a pull request.
const GENERATIONS: u64 = 5;

impl Authors {
    /// Opens a review of a new pull request.
    pub(super) fn ask(&mut self, desk: &mut Desk) {
        self.asked += 1;
        let pr = self.asked;
        let author = AUTHORS[desk.dice.below(AUTHORS.len())];
        let (reviewer, seconds) = reviewer(desk);
        let case = Case {
            author,
            reviewer,
            round: 0,
            rounds_left: ROUNDS,
            generation: 1,
            seconds,
            request: String::new(),
            sent: Instant::now(),
        };
        self.request(desk, pr, case);
    }

    /// Reacts to a message.
    pub(super) fn hear(&mut self, desk: &mut Desk, came: &Came) {
        let Some(pr) = came.pr() else { return };
        if self
            .cases
            .get(&pr)
            .is_none_or(|case| case.author != came.to)
        {
            return;
        }
        let Some(case) = self.cases.remove(&pr) else {
            return;
        };
        match came.field("type") {
            Some("review_feedback")
                if case.rounds_left > 0 && came.field("escalation").is_none() =>
            {
                self.fix(desk, pr, case);
            }
            Some("review_feedback") => self.handed_over.push((pr, case)),
            Some("review_lgtm") if case.generation < GENERATIONS && desk.chance(10) => {
                self.next_generation(desk, pr, case);
            }
            Some("review_lgtm") => {}
            // The daemon escalates the review to a person.
            Some("notification") if came.is_escalation() => self.handed_over.push((pr, case)),
            Some(_) | None => drop(self.cases.insert(pr, case)),
        }
    }

    /// Begins the next generation of an ended review.
    pub(super) fn next_generation(&mut self, desk: &mut Desk, pr: u64, mut case: Case) {
        case.generation += 1;
        case.rounds_left = ROUNDS;
        self.request(desk, pr, case);
    }

    /// Gives up reviews without an answer for this long; their pull requests have to end them.
    pub(super) fn give_up(&mut self, patience: Duration) {
        let forsaken = &mut self.forsaken;
        self.cases.retain(|pr, case| {
            let goes_on = case.sent.elapsed() < patience;
            if !goes_on {
                forsaken.push(*pr);
            }
            goes_on
        });
    }

    /// Returns any pull request so far.
    pub(super) fn some_pr(&self, desk: &mut Desk) -> u64 {
        desk.dice.roll(self.asked) + 1
    }

    fn fix(&mut self, desk: &mut Desk, pr: u64, case: Case) {
        if desk.chance(6) {
            self.forsaken.push(pr);
            return;
        }
        if desk.chance(5) {
            // The wrong round: refused without a cost.
            let id = desk.id("hasty");
            desk.post(case.author, &id, &addressed(&case, pr, &id, case.round + 7));
        }
        let id = desk.id("addressed");
        let text = addressed(&case, pr, &id, case.round);
        desk.post(case.author, &id, &text);
        if desk.chance(4) {
            desk.post(case.author, &format!("{id}-again"), &text);
        }
        self.request(desk, pr, case);
    }

    fn request(&mut self, desk: &mut Desk, pr: u64, mut case: Case) {
        case.round += 1;
        case.rounds_left -= 1;
        case.request = desk.id("request");
        case.sent = Instant::now();
        desk.post(
            case.author,
            &case.request,
            &request(&case, pr, &case.request, ""),
        );
        if desk.chance(3) {
            let id = desk.id("request");
            let more = format!("\nsupersedes_message_id: {}", case.request);
            desk.post(case.author, &id, &request(&case, pr, &id, &more));
        }
        self.cases.insert(pr, case);
    }
}

/// Half of the reviews go to played reviewers, half to started ones.
fn reviewer(desk: &mut Desk) -> (&'static str, u32) {
    if desk.chance(50) {
        // The seconds suffice for one that answers, and are short enough to wait for if it does not.
        return (PLAYED[desk.dice.below(PLAYED.len())], 4);
    }
    let mut at = desk
        .dice
        .roll(STARTED.iter().map(|reviewer| reviewer.weight).sum());
    for reviewer in STARTED {
        if at < reviewer.weight {
            return (reviewer.name, reviewer.seconds);
        }
        at -= reviewer.weight;
    }
    (PLAYED[0], 4)
}

fn request(case: &Case, pr: u64, id: &str, more: &str) -> String {
    let body = format!(
        "pr: {pr}\nbranch: change-{pr}\ndiff_summary: a change\nmax_runtime_s_reviewer: {}\n\
         max_turns_reviewer: 8\ndeclared_head: \"{:07x}{:02x}\"{more}",
        case.seconds, pr, case.generation
    );
    seed::review_message(
        "review_request",
        id,
        case.author,
        case.reviewer,
        &pr.to_string(),
        &body,
    )
}

fn addressed(case: &Case, pr: u64, id: &str, round: u64) -> String {
    let body = format!(
        "commit_sha: \"{:07x}{:02x}\"\nchanges_summary: mended\nround: {round}",
        pr, case.generation
    );
    seed::review_message(
        "review_addressed",
        id,
        case.author,
        case.reviewer,
        &pr.to_string(),
        &body,
    )
}
