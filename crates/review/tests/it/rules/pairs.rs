//! Reports about pairs of commands: one run at a time, each ends once, nothing is refunded, and no signal overrules a
//! review.

use chrono::TimeDelta;
use message_schema::spend::Spend;
use policy::SpendLimit;
use proptest::prelude::*;
use review::{
    EscalationReason, Event, Pair, PairFailure, PairId, PairMember, PairReport, PairSetup,
    PairStatus, PairStep, Phase, RunState, Says, Signal, SignalWords, Transcript,
};

use super::{ok, refused};
use crate::table::{Note, Table, agent, claude, kept};

const ITERATIONS: u8 = 3;
const SECONDS: u32 = 20;

fn id() -> PairId {
    PairId(message_schema::id::MessageId::new("pair-1").expect("an id"))
}

fn setup(reviewer: bool) -> PairSetup {
    let member = |name: &str| PairMember {
        agent: agent(name),
        command: "x".to_owned(),
        output: "text".to_owned(),
    };
    PairSetup {
        author: member("claude"),
        reviewer: reviewer.then(|| member("codex")),
        workdir: "/".to_owned(),
        task: "a task".to_owned(),
        pr: None,
        iterations: ITERATIONS,
        run_seconds: 10,
        seconds: SECONDS,
        turns: Some(30),
        words: SignalWords::default(),
    }
}

fn used(start: u16, ms: u64, turns: u32) -> Transcript {
    Transcript {
        start,
        ms,
        turns,
        ..Transcript::default()
    }
}

fn ended(start: u16, signal: Signal) -> PairStep {
    PairStep::Ended {
        signal,
        run: used(start, 1_000, 1),
    }
}

fn crashed(start: u16) -> PairStep {
    PairStep::Crashed {
        why: "it ended with code 1".to_owned(),
        run: used(start, 1_000, 1),
    }
}

fn interrupted(run: Option<Transcript>) -> PairStep {
    PairStep::Interrupted {
        why: "a person ended it".to_owned(),
        run,
    }
}

impl Table {
    /// Reports a step; returns the pair's state then, or the code it was declined with.
    fn step(&mut self, what: PairStep) -> Result<PairStatus, String> {
        self.tell(&Event::Pair(PairReport { pair: id(), what }))?;
        let Some(happened) = self.last_record().happened() else {
            panic!("it was not declined")
        };
        Ok(happened
            .pair
            .expect("an event of a pair says where it stands"))
    }

    fn steps(&mut self, steps: impl IntoIterator<Item = PairStep>) -> PairStatus {
        steps
            .into_iter()
            .map(|step| self.step(step).expect("it fits"))
            .last()
            .expect("a step")
    }
}

fn opened() -> Table {
    let mut table = Table::default();
    table.steps([PairStep::Opened(Box::new(setup(true))), PairStep::Started]);
    table
}

fn stands(status: PairStatus) -> (RunState, u8, Option<PairFailure>) {
    (
        status.pair.run(),
        status.pair.iteration(),
        status.pair.failure(),
    )
}

const DECLINED: &str = "decision_invalid";

#[test]
fn a_pair_goes_through_its_states_and_is_forgotten_when_it_is_over() {
    let mut table = opened();
    let status = table.steps([
        PairStep::Began(1),
        ended(1, Signal::Done),
        PairStep::Began(2),
    ]);
    assert_eq!(stands(status), (RunState::Reviewing, 1, None));
    assert_eq!((status.ms_left, status.turns_left), (19_000, Some(29)));
    let over = table.steps([ended(2, Signal::Pass)]);
    assert_eq!(stands(over), (RunState::Complete, 1, None));
    assert!(table.state.pair(&id()).is_none());
    assert_eq!(table.step(PairStep::Resumed), Err(DECLINED.to_owned()));
}

#[test]
fn what_a_pair_uses_counts_for_its_agent_and_the_day_and_without_a_budget_no_run_begins() {
    let limit = |tokens| SpendLimit {
        tokens: Some(tokens),
        micro_usd: None,
    };
    let mut table = opened();
    table.policy.budget.per_agent = limit(100);
    table.policy.budget.per_day = limit(150);
    let end = |start, tokens| PairStep::Ended {
        signal: Signal::Done,
        run: Transcript {
            spend: Spend::tokens(tokens),
            ..used(start, 1_000, 1)
        },
    };
    table.steps([PairStep::Began(1), end(1, 100)]);
    assert_eq!(
        table.step(end(1, 100)),
        Err(DECLINED.to_owned()),
        "an end is one"
    );
    let spent = |table: &Table, name| table.state.spent_by(&agent(name), table.now);
    assert_eq!(spent(&table, "claude"), Spend::tokens(100));
    assert_eq!(spent(&table, "codex"), Spend::tokens(0));
    // The reviewer has a budget of its own; an interrupted run counts as well.
    let run = Transcript {
        spend: Spend::tokens(49),
        ..used(2, 1_000, 1)
    };
    table.steps([
        PairStep::Began(2),
        interrupted(Some(run)),
        PairStep::Resumed,
    ]);
    assert_eq!(spent(&table, "codex"), Spend::tokens(49));
    table.steps([PairStep::Began(3)]);
    let crash = PairStep::Crashed {
        why: "it ended with code 1".to_owned(),
        run: Transcript {
            spend: Spend::tokens(1),
            ..used(3, 1_000, 1)
        },
    };
    table.steps([crash]);
    let unavailable = Err("provider_unavailable".to_owned());
    assert_eq!(table.step(PairStep::Began(4)), unavailable, "150 in all");
    // None of it changes the pair, which continues the next day.
    table.steps([interrupted(None), PairStep::Resumed]);
    table.now += TimeDelta::hours(14);
    table.steps([PairStep::Began(4)]);
}

#[test]
fn one_run_is_open_at_a_time_and_each_has_one_end() {
    let mut table = opened();
    assert_eq!(
        table.step(ended(1, Signal::Done)),
        Err(DECLINED.to_owned()),
        "none is begun"
    );
    assert_eq!(
        table.step(PairStep::Began(2)),
        Err(DECLINED.to_owned()),
        "it is the first"
    );
    table.steps([PairStep::Began(1)]);
    assert_eq!(
        table.step(PairStep::Began(1)),
        Err(DECLINED.to_owned()),
        "another driver"
    );
    assert_eq!(
        table.step(PairStep::Began(2)),
        Err(DECLINED.to_owned()),
        "the first goes on"
    );
    assert_eq!(table.step(ended(2, Signal::Done)), Err(DECLINED.to_owned()));
    assert_eq!(
        table.step(interrupted(None)),
        Err(DECLINED.to_owned()),
        "what runs has to be spoken of"
    );
    table.steps([ended(1, Signal::Done)]);
    assert_eq!(table.step(ended(1, Signal::Done)), Err(DECLINED.to_owned()));
}

#[test]
fn a_pair_needs_two_agents_of_the_workspace_and_means() {
    let declined = |change: &dyn Fn(&mut PairSetup)| {
        let mut setup = setup(true);
        change(&mut setup);
        Table::default().step(PairStep::Opened(Box::new(setup)))
    };
    let nobody = agent("nobody");
    for change in [
        &|setup: &mut PairSetup| setup.author.agent = agent("codex"),
        &|setup: &mut PairSetup| setup.author.agent = nobody.clone(),
        &|setup: &mut PairSetup| setup.iterations = 0,
        &|setup: &mut PairSetup| setup.run_seconds = 0,
        &|setup: &mut PairSetup| setup.seconds = 0,
        &|setup: &mut PairSetup| setup.turns = Some(0),
    ] as [&dyn Fn(&mut PairSetup); 6]
    {
        assert_eq!(declined(change), Err(DECLINED.to_owned()));
    }
    let mut table = opened();
    assert_eq!(
        table.step(PairStep::Opened(Box::new(setup(true)))),
        Err(DECLINED.to_owned()),
        "it is there"
    );
}

#[test]
fn what_is_used_up_ends_a_pair_but_takes_no_approval_back() {
    let spent = |signal| PairStep::Ended {
        signal,
        run: used(1, u64::from(SECONDS) * 1_000, 0),
    };
    let mut table = opened();
    let status = table.steps([PairStep::Began(1), spent(Signal::Done)]);
    assert_eq!(
        stands(status),
        (RunState::Failed, 1, Some(PairFailure::BudgetSpent))
    );
    let mut table = opened();
    let turns = PairStep::Crashed {
        why: "x".to_owned(),
        run: used(1, 1, 30),
    };
    assert_eq!(
        table.steps([PairStep::Began(1), turns]).pair.failure(),
        Some(PairFailure::BudgetSpent)
    );
    let mut table = opened();
    let pass = PairStep::Ended {
        signal: Signal::Pass,
        run: used(2, u64::from(SECONDS) * 1_000, 0),
    };
    let status = table.steps([
        PairStep::Began(1),
        ended(1, Signal::Done),
        PairStep::Began(2),
        pass,
    ]);
    assert_eq!(status.pair.run(), RunState::Complete);
}

#[test]
fn an_interrupted_pair_goes_on_where_it_stood_with_what_was_left() {
    let mut table = opened();
    table.steps([
        PairStep::Began(1),
        ended(1, Signal::Done),
        PairStep::Began(2),
        crashed(2),
        PairStep::Began(3),
    ]);
    let status = table.steps([interrupted(Some(used(3, 2_000, 4)))]);
    assert_eq!(
        stands(status),
        (RunState::Failed, 1, Some(PairFailure::Interrupted))
    );
    assert_eq!(table.step(PairStep::Began(4)), Err(DECLINED.to_owned()));
    assert!(kept(&table.state) == table.state, "a snapshot keeps it");
    let resumed = table.steps([PairStep::Resumed]);
    assert_eq!(stands(resumed), (RunState::Reviewing, 1, None));
    assert_eq!(
        (resumed.ms_left, resumed.turns_left, resumed.starts),
        (16_000, Some(24), 3)
    );
    // The restart of this turn is used up.
    let over = table.steps([PairStep::Began(4), crashed(4)]);
    assert_eq!(over.pair.failure(), Some(PairFailure::Crashed));
    assert_eq!(table.step(PairStep::Resumed), Err(DECLINED.to_owned()));
}

#[test]
fn what_a_person_lets_rest_is_over_and_what_it_asked_is_a_persons() {
    let mut table = asked();
    assert_eq!(
        table.step(PairStep::Dropped),
        Err("invalid_transition".to_owned()),
        "it goes on"
    );
    table.steps([interrupted(Some(used(2, 1, 0)))]);
    let status = table.steps([PairStep::Dropped]);
    assert_eq!(
        stands(status),
        (RunState::Failed, 1, Some(PairFailure::Interrupted))
    );
    assert_eq!(
        table.review().phase,
        Phase::Escalated(EscalationReason::InvocationFailed)
    );
    assert!(table.state.pair(&id()).is_none());
    assert_eq!(table.step(PairStep::Resumed), Err(DECLINED.to_owned()));
}

#[test]
fn only_what_was_interrupted_can_be_resumed() {
    let mut table = opened();
    assert_eq!(
        table.step(PairStep::Resumed),
        Err("invalid_transition".to_owned()),
        "it goes on"
    );
    let mut never = Table::default();
    never.steps([PairStep::Opened(Box::new(setup(true))), interrupted(None)]);
    assert_eq!(
        stands(never.steps([PairStep::Resumed])),
        (RunState::Init, 0, None)
    );
}

/// Returns a table on which the author requested a review while the pair ran, and the reviewer is at work.
fn asked() -> Table {
    let mut table = opened();
    table.steps([PairStep::Began(1)]);
    assert_eq!(table.request(), ok("reviewing"));
    table.steps([ended(1, Signal::Done), PairStep::Began(2)]);
    table
}

#[test]
fn a_pass_counts_only_where_the_gate_approved() {
    let mut table = asked();
    assert_eq!(
        stands(table.steps([ended(2, Signal::Pass)])),
        (RunState::Working, 2, None),
        "the request is open"
    );
    let mut table = asked();
    assert_eq!(table.lgtm("", None), ok("approved"));
    assert_eq!(
        table.steps([ended(2, Signal::Pass)]).pair.run(),
        RunState::Complete
    );
}

/// Opens a pair over an existing review, for this pull request or for none, up to its reviewer's turn.
fn opened_over(table: &mut Table, pr: Option<&str>) -> PairStatus {
    let pr = pr.map(|pr| pr.parse().expect("a number"));
    let setup = PairSetup { pr, ..setup(true) };
    table.steps([
        PairStep::Opened(Box::new(setup)),
        PairStep::Started,
        PairStep::Began(1),
        ended(1, Signal::Done),
        PairStep::Began(2),
    ])
}

#[test]
fn a_pair_answers_for_what_its_author_asked_since_or_for_the_pull_request_it_names() {
    for (pr, over) in [
        (None, (RunState::Complete, 1, None)),
        (Some("86"), (RunState::Working, 2, None)),
        (Some("086"), (RunState::Working, 2, None)),
        // Nobody has asked for the review of 87 yet, and without it nothing is approved.
        (Some("87"), (RunState::Working, 2, None)),
    ] {
        let mut table = Table::default();
        assert_eq!(table.request(), ok("reviewing"));
        opened_over(&mut table, pr);
        let status = table.steps([ended(2, Signal::Pass)]);
        assert_eq!(stands(status), over, "{pr:?}");
        assert_eq!(table.review().phase.word(), "reviewing", "{pr:?}");
    }
    // A pair does not escalate reviews that it does not answer for.
    for (pr, phase) in [(None, "reviewing"), (Some("86"), "escalated")] {
        let mut table = Table::default();
        assert_eq!(table.request(), ok("reviewing"));
        opened_over(&mut table, pr);
        let pair = table.state.pair(&id()).expect("it is open");
        let is_own = table.state.reviews().all(|(key, _)| pair.is_own(key));
        assert_eq!(is_own, phase == "escalated", "{pr:?}");
        table.steps([ended(2, Signal::Fail)]);
        assert_eq!(table.review().phase.word(), phase, "{pr:?}");
    }
}

#[test]
fn only_a_review_between_the_agents_of_a_pair_is_its_own() {
    let mut table = Table::default();
    opened_over(&mut table, None);
    for (number, from, to, is_own) in [
        (86, "claude", "codex", true),
        (87, "claude", "gemini", false),
        (88, "gemini", "codex", false),
        (89, "codex", "claude", false),
    ] {
        let body = format!("pr: {number}\nbranch: fix\ndiff_summary: a fix");
        let asked = table.send(&Note {
            from,
            to,
            envelope: "",
            body: &body,
            ..claude("review_request")
        });
        assert_eq!(asked, ok("reviewing"));
        let pair = table.state.pair(&id()).expect("it is open");
        let of = |key: &&review::ReviewKey| key.pr.as_str() == number.to_string();
        let key = table.state.reviews().map(|(key, _)| key).find(of);
        let key = key.expect("the review");
        assert_eq!(
            (pair.is_own(key), pair.asked_for.contains(key)),
            (is_own, is_own),
            "{key}"
        );
    }
    // A pair of one agent has no review at all.
    let mut pair = table.state.pair(&id()).expect("it is open").clone();
    pair.setup.reviewer = None;
    assert!(table.state.reviews().all(|(key, _)| !pair.is_own(key)));
}

#[test]
fn a_pull_request_that_is_named_and_with_a_person_stops_the_pair_at_once() {
    let mut table = Table::default();
    assert_eq!(table.request(), ok("reviewing"));
    assert_eq!(
        table.feedback_with(1, "escalation: a person should look", "F-001 P1 open"),
        ok("escalated")
    );
    let pr = Some("86".parse().expect("a number"));
    let setup = PairSetup { pr, ..setup(true) };
    let over = table.steps([PairStep::Opened(Box::new(setup)), PairStep::Started]);
    assert_eq!(
        stands(over),
        (RunState::Failed, 1, Some(PairFailure::WithAPerson))
    );
}

#[test]
fn a_pass_over_threads_that_the_author_left_ends_the_pair_at_once() {
    let fixing = || {
        let mut table = asked();
        assert_eq!(table.feedback_with(1, "", "F-001 P1 open"), ok("fixing"));
        table
    };
    // The feedback and the PASS come from one run: the author had no turn yet.
    let mut table = fixing();
    let status = table.steps([ended(2, Signal::Pass)]);
    assert_eq!(stands(status), (RunState::Working, 2, None));
    // Its whole turn is over, and the threads are unchanged.
    let over = table.steps([
        PairStep::Began(3),
        ended(3, Signal::Done),
        PairStep::Began(4),
        ended(4, Signal::Pass),
    ]);
    assert_eq!(
        stands(over),
        (RunState::Failed, 2, Some(PairFailure::Unanswered))
    );
    // A reviewer with something to say continues, and so does a review that the author moved.
    let mut table = fixing();
    let status = table.steps([
        ended(2, Signal::None),
        PairStep::Began(3),
        ended(3, Signal::Done),
        PairStep::Began(4),
        ended(4, Signal::None),
    ]);
    assert_eq!(stands(status), (RunState::Working, 3, None));
    let mut table = fixing();
    table.steps([ended(2, Signal::None), PairStep::Began(3)]);
    assert_eq!(table.addressed(1, &["F-001"]), ok("addressed"));
    let status = table.steps([
        ended(3, Signal::Done),
        PairStep::Began(4),
        ended(4, Signal::Pass),
    ]);
    assert_eq!(stands(status), (RunState::Working, 3, None));
}

#[test]
fn a_review_that_came_to_a_person_ends_the_pair_and_an_older_one_does_not() {
    let mut table = asked();
    assert_eq!(
        table.feedback_with(1, "escalation: a person should look", "F-001 P1 open"),
        ok("escalated")
    );
    let status = table.steps([ended(2, Signal::None)]);
    assert_eq!(status.pair.failure(), Some(PairFailure::WithAPerson));
    let mut table = Table::default();
    assert_eq!(table.request(), ok("reviewing"));
    assert_eq!(
        table.feedback_with(1, "escalation: a person should look", "F-001 P1 open"),
        ok("escalated")
    );
    table.steps([
        PairStep::Opened(Box::new(setup(true))),
        PairStep::Started,
        PairStep::Began(1),
    ]);
    assert_eq!(
        table.steps([ended(1, Signal::Done)]).pair.run(),
        RunState::Reviewing
    );
}

#[test]
fn a_pass_counts_nothing_over_a_review_that_came_to_a_person_meanwhile() {
    for iterations in [1, ITERATIONS] {
        let mut table = Table::default();
        let opened = PairStep::Opened(Box::new(PairSetup {
            iterations,
            ..setup(true)
        }));
        table.steps([opened, PairStep::Started, PairStep::Began(1)]);
        assert_eq!(table.request(), ok("reviewing"));
        table.steps([ended(1, Signal::Done), PairStep::Began(2)]);
        let escalates = table.feedback_with(1, "escalation: a person should look", "F-001 P1 open");
        assert_eq!(escalates, ok("escalated"));
        let over = table.steps([ended(2, Signal::Pass)]);
        assert_eq!(
            stands(over),
            (RunState::Failed, 1, Some(PairFailure::WithAPerson))
        );
    }
}

#[test]
fn a_word_that_would_say_two_things_opens_no_pair() {
    for words in [
        ("A", "A", "B"),
        ("A", "B", "A"),
        ("A", "B", "B"),
        ("", "A", "B"),
    ] {
        let (done, pass, fail) = words;
        let words = SignalWords {
            done: done.to_owned(),
            pass: pass.to_owned(),
            fail: fail.to_owned(),
        };
        let opened = PairStep::Opened(Box::new(PairSetup {
            words,
            ..setup(true)
        }));
        assert_eq!(Table::default().step(opened), Err(DECLINED.to_owned()));
    }
}

#[test]
fn what_a_pair_that_failed_leaves_open_is_a_persons() {
    let mut table = asked();
    table.steps([crashed(2), PairStep::Began(3), crashed(3)]);
    assert_eq!(
        table.review().phase,
        Phase::Escalated(EscalationReason::InvocationFailed)
    );
    let Some(happened) = table.last_record().happened() else {
        panic!("it happened")
    };
    let told: Vec<&str> = happened
        .messages
        .iter()
        .map(|message| message.to.as_str())
        .collect();
    assert_eq!(told, ["claude", "codex"]);
    assert!(
        happened
            .messages
            .iter()
            .all(|message| matches!(message.says, Says::Escalated { .. }))
    );
    assert_eq!(table.lgtm("", None), refused(&["invocation_closed"]));
    // A pair that can continue leaves its reviews unchanged.
    let mut table = asked();
    table.steps([interrupted(Some(used(2, 1, 0)))]);
    assert_eq!(table.review().phase.word(), "reviewing");
}

/// Generates the reports of a careless driver.
fn step() -> impl Strategy<Value = PairStep> {
    let signal = prop::sample::select(vec![
        Signal::Done,
        Signal::Pass,
        Signal::Fail,
        Signal::NearMiss,
        Signal::Unsent,
        Signal::None,
    ]);
    let run =
        (1_u16..14, 0_u64..3_000, 0_u32..4).prop_map(|(start, ms, turns)| used(start, ms, turns));
    prop_oneof![
        6 => (1_u16..14).prop_map(PairStep::Began),
        6 => (signal, run.clone()).prop_map(|(signal, run)| PairStep::Ended { signal, run }),
        3 => run.clone().prop_map(|run| PairStep::Crashed { why: "x".to_owned(), run }),
        1 => prop::option::of(run).prop_map(interrupted),
        1 => Just(PairStep::Resumed),
        1 => Just(PairStep::Dropped),
        1 => Just(PairStep::Started),
        1 => Just(PairStep::NotStarted { why: "x".to_owned() }),
    ]
}

proptest! {
    #[test]
    fn whatever_is_reported_a_pair_gives_nothing_back_and_ends(
        steps in prop::collection::vec(step(), 1..400),
        reviewer in any::<bool>(),
    ) {
        let mut table = Table::default();
        let mut was = table.steps([PairStep::Opened(Box::new(setup(reviewer)))]);
        let (mut begun, mut ends) = (0, 0);
        for step in steps {
            let (begins, closes) = match &step {
                PairStep::Began(_) => (1, 0),
                PairStep::Ended { .. } | PairStep::Crashed { .. } | PairStep::Interrupted { run: Some(_), .. } => (0, 1),
                PairStep::Interrupted { run: None, .. } | PairStep::Opened(_) | PairStep::Started
                | PairStep::NotStarted { .. } | PairStep::Resumed | PairStep::Dropped => (0, 0),
            };
            let is_a_persons = matches!(step, PairStep::Resumed | PairStep::Dropped);
            let Ok(now) = table.step(step) else { continue };
            (begun, ends) = (begun + begins, ends + closes);
            prop_assert!(begun == ends || begun == ends + 1);
            prop_assert_eq!(usize::from(now.starts), begun);
            prop_assert!(now.ms_left <= was.ms_left && now.turns_left <= was.turns_left);
            prop_assert!(now.pair.iteration() >= was.pair.iteration() && now.pair.iteration() <= ITERATIONS);
            prop_assert!(!was.pair.run().is_terminal() || is_a_persons, "only a person lets it go on");
            was = now;
        }
        // Interruptions may cut off and restart each run, but use up the rest of its budget.
        prop_assert_eq!(&table.replayed(), &table.state);
        prop_assert_eq!(&kept(&table.state), &table.state);
    }

    #[test]
    fn a_pair_that_is_driven_on_ends_within_four_runs_an_iteration(
        ends in prop::collection::vec(prop::sample::select(vec![0_u8, 0, 1, 1, 2]), 40),
    ) {
        let mut table = opened();
        let mut runs = 0_u16;
        for end in ends {
            let open = table.state.pair(&id()).map(|open| open.status.pair);
            if open.as_ref().is_none_or(|pair: &Pair| pair.run().is_terminal()) {
                break;
            }
            runs += 1;
            let bare = Transcript { start: runs, ..Transcript::default() };
            table.steps([PairStep::Began(runs), match end {
                0 => PairStep::Ended { signal: Signal::None, run: bare },
                1 => PairStep::Ended { signal: Signal::Done, run: bare },
                _ => PairStep::Crashed { why: "x".to_owned(), run: bare },
            }]);
        }
        prop_assert!(table.state.pair(&id()).is_none(), "it is over after {runs} runs");
        prop_assert!(runs <= 4 * u16::from(ITERATIONS));
    }
}
