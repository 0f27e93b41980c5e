//! Every value that people or programs read by a word or a sentence, with both.

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};
use message_schema::envelope::Priority;
use message_schema::id::{AgentName, CommitSha, DiffDigest, PrNumber, Repo, RepoPath};
use message_schema::limit::Rounds;
use message_schema::packet::Severity;
use message_schema::spend::Spend;
use pair_machine::{PairId, PairReport, PairStep, Signal, Transcript};
use serde::Serialize;

use crate::alert::{Alert, Late, NoClaim, ToldAlert};
use crate::deadline::{Deadline, patience};
use crate::event::{
    Act, Event, LedgerAccepted, PersonsDecision, PullAction, PullEvent, SentDiffers, Which,
};
use crate::failure::{FailureCause, RunFailure};
use crate::host_change::{HostChange, HostDecision, JoinedHost};
use crate::key::{ReviewKey, TaskId};
use crate::pulls::Pulls;
use crate::reading::{Change, ObservedRun, ReadingState, ReadingStep, edited_tests};
use crate::refusal::Clause;
use crate::spend::{DayBudget, RunSpend, UsedUp};

fn agent(name: &str) -> AgentName {
    name.parse().expect("a name")
}

fn repo(name: &str) -> Repo {
    Repo::new(name).expect("a repository")
}

fn commit(sha: &str) -> CommitSha {
    sha.parse().expect("a commit")
}

fn files(names: &[&str]) -> Vec<RepoPath> {
    let path = |name: &&str| RepoPath::new(*name).expect("a path");
    names.iter().map(path).collect()
}

fn key(of: Option<&str>) -> ReviewKey {
    let (repo, pr) = (of.map(repo), "086".parse().expect("a number"));
    ReviewKey::new(repo.as_ref(), &pr, agent("claude"), agent("codex"))
}

fn run(command: &str, exit: Option<i32>, head: Option<&str>) -> ObservedRun {
    ObservedRun {
        command: command.to_owned(),
        exit,
        duration_ms: 1_200,
        output: DiffDigest::new(format!("sha256:{}", "0".repeat(64))).expect("a digest"),
        head: head.map(commit),
    }
}

#[test]
fn every_event_has_its_word_its_pull_request_and_its_sentence() {
    let mut words = BTreeSet::new();
    let mut page = String::new();
    for event in of_reviewers().into_iter().chain(of_others()) {
        words.insert(event.word());
        let which = event.which().and_then(|which| which.reviewer.as_ref());
        let which = which.map_or_else(String::new, |reviewer| format!(" of {reviewer}"));
        let pr = event.pr().map_or("-", PrNumber::as_str);
        page += &format!("{} {pr}{which}: {}\n", event.word(), event.sentence());
        let is_decision = matches!(event, Event::Person(_));
        assert_eq!(event.decision().is_some(), is_decision, "{event:?}");
        let passed = event.deadline().map(|(key, which)| (key.clone(), which));
        let is_deadline = matches!(event, Event::Deadline { .. });
        let expected = is_deadline.then(|| (key(None), Deadline::PickUp));
        assert_eq!(passed, expected, "{event:?}");
    }
    assert_eq!(words, Event::WORDS.into());
    assert_eq!(page, include_str!("tests/events.txt"));
}

/// Reports about a reviewer at work.
fn of_reviewers() -> Vec<Event> {
    let which = || Which::of(&key(None));
    let failure = |run: Option<&str>| RunFailure {
        cause: FailureCause::Crashed,
        why: "exit code 1".to_owned(),
        retry_after: None,
        run: run.map(str::to_owned),
    };
    let turns = |count| Event::Turns {
        which: which(),
        count,
    };
    vec![
        Event::Deadline {
            review: key(None),
            which: Deadline::PickUp,
        },
        Event::Taken(which()),
        turns(1),
        turns(3),
        Event::Started(which()),
        Event::Failed {
            which: which(),
            failure: failure(None),
        },
        Event::Failed {
            which: which(),
            failure: failure(Some("r-1")),
        },
        Event::Spent(RunSpend {
            review: key(None),
            agent: agent("codex"),
            run: "r-1".to_owned(),
            spend: Spend::tokens(7),
        }),
        Event::Observed {
            which: which(),
            files: files(&["a.rs", "b.rs"]),
        },
        Event::Ran {
            which: which(),
            run: run("make", Some(2), None),
        },
        Event::Ran {
            which: which(),
            run: run("make", None, None),
        },
    ]
}

/// Reports of pull requests, people, pairs and hosts.
fn of_others() -> Vec<Event> {
    let transcript = || Transcript {
        start: 2,
        ms: 5,
        turns: 0,
        spend: Spend::default(),
        said: String::new(),
        length: 0,
        messages: Vec::new(),
    };
    let why = || "no program".to_owned();
    let person = |act| {
        Event::Person(PersonsDecision {
            which: Which::of(&key(None)),
            by: "ada".to_owned(),
            reason: "seen".to_owned(),
            act,
        })
    };
    let pair = |what| {
        let pair = PairId("pair-1".parse().expect("an id"));
        Event::Pair(PairReport { pair, what })
    };
    vec![
        Event::Pull(PullEvent {
            repo: None,
            pr: "86".parse().expect("a number"),
            action: PullAction::Merged,
            author: None,
            head: None,
        }),
        person(Act::Reopen),
        person(Act::Hold("F-001".parse().expect("an id"))),
        pair(PairStep::Started),
        pair(PairStep::Began(2)),
        pair(PairStep::NotStarted { why: why() }),
        pair(PairStep::Interrupted {
            why: why(),
            run: None,
        }),
        pair(PairStep::Ended {
            signal: Signal::Pass,
            run: transcript(),
        }),
        pair(PairStep::Crashed {
            why: why(),
            run: transcript(),
        }),
        Event::LedgerAccepted(LedgerAccepted {
            by: "ada".to_owned(),
            reason: "seen".to_owned(),
            head: "00".to_owned(),
        }),
        Event::SentDiffers(SentDiffers {
            agent: agent("claude"),
            file: "a.yaml".to_owned(),
            seq: 1,
        }),
        Event::Host(HostChange::Claimed {
            host: "tower".to_owned(),
            agents: vec![agent("codex")],
        }),
    ]
}

#[test]
fn every_alert_has_its_code_its_thread_and_its_sentence() {
    let mut page = String::new();
    for alert in of_requests().into_iter().chain(of_responses()) {
        let ToldAlert {
            code,
            message,
            thread,
        } = ToldAlert::from(&alert);
        let thread = thread.map_or_else(String::new, |id| format!(" {id}"));
        page += &format!("{code}{thread}: {message}\n");
        // The record has the code as its key.
        let json = serde_json::to_string(&alert).expect("plain values are JSON");
        assert!(json.contains(&format!("\"{code}\"")), "{json}");
    }
    assert_eq!(page, include_str!("tests/alerts.txt"));
}

/// Alerts about a request.
fn of_requests() -> Vec<Alert> {
    let rounds = |number| Rounds::new(number).expect("a limit");
    let task = || TaskId::new(&"086".parse().expect("a number"), 1);
    let ignored = |why| Alert::HandoffRefIgnored { why };
    vec![
        Alert::RoundsLimited {
            asked: rounds(3),
            allowed: rounds(1),
        },
        Alert::NothingSuperseded {
            named: "m-1".parse().expect("an id"),
            round: 2,
        },
        Alert::RunTriggerIgnored {
            author: agent("claude"),
        },
        ignored(NoClaim::NoTask {
            named: "x".to_owned(),
            author: agent("claude"),
        }),
        ignored(NoClaim::Elsewhere {
            pr: "87".parse().expect("a number"),
            task: task(),
        }),
        ignored(NoClaim::Another { task: task() }),
        ignored(NoClaim::NotFirst),
    ]
}

/// Alerts about a response.
fn of_responses() -> Vec<Alert> {
    let thread = || "F-001".parse().expect("an id");
    let names = ["a", "b", "c", "d", "e", "f", "g"];
    let how = || "it is so".to_owned();
    vec![
        Alert::ResolvedBySilence { thread: thread() },
        Alert::SeverityKept {
            thread: thread(),
            severity: Severity::P1,
            stated: Severity::P3,
        },
        Alert::BlockingKept { thread: thread() },
        Alert::FindingDeferred {
            thread: thread(),
            round: 2,
            why: Late::OutsideTouched,
        },
        Alert::FindingDeferred {
            thread: thread(),
            round: 2,
            why: Late::InTask,
        },
        Alert::OtherCommit {
            validated: commit("abc1234"),
            head: commit("def5678"),
        },
        Alert::ApprovalStale {
            commit: commit("abc1234"),
            head: commit("def5678"),
        },
        Alert::ApprovalUnbound,
        Alert::EvidenceMissing { what: how() },
        Alert::NotObserved {
            files: files(&names[..5]),
        },
        Alert::NotObserved {
            files: files(&names),
        },
        Alert::CommandsDeclared {
            commands: vec!["make".to_owned(), "lint".to_owned()],
        },
        Alert::ApprovalBarred {
            clause: Clause::P0,
            how: how(),
        },
        Alert::TurnsOverdrawn {
            declared: 9,
            allowed: 8,
        },
        Alert::GateAdvises {
            clause: Clause::P0,
            how: how(),
        },
    ]
}

#[test]
fn every_change_of_hosts_has_its_actor_and_its_sentence() {
    let decision = || HostDecision {
        by: "ada".to_owned(),
        reason: "it is\ngone".to_owned(),
    };
    let joined = |agents: &[&str]| {
        HostChange::Joined(JoinedHost {
            host: "tower".to_owned(),
            key: "ed25519:00".to_owned(),
            version: "0.1.0".to_owned(),
            agents: agents.iter().map(|name| agent(name)).collect(),
            policy: String::new(),
        })
    };
    for (change, is_decided, expected) in [
        (joined(&[]), false, "tower: host tower joined"),
        (
            joined(&["claude", "codex"]),
            false,
            "tower: host tower joined, the home of claude, codex",
        ),
        (
            HostChange::Claimed {
                host: "tower".to_owned(),
                agents: vec![agent("codex")],
            },
            false,
            "tower: host tower is the home of codex",
        ),
        (
            HostChange::HomeMoved {
                agent: agent("codex"),
                from: "tower".to_owned(),
                to: "box".to_owned(),
                decision: decision(),
            },
            true,
            "ada: ada: moved the home of codex from tower to box (it is\\ngone)",
        ),
        (
            HostChange::KeyRetired {
                host: "tower".to_owned(),
                decision: decision(),
            },
            true,
            "ada: ada: retired the key of host tower (it is\\ngone)",
        ),
        (
            HostChange::PolicyChanged {
                policy: String::new(),
                decision: decision(),
            },
            true,
            "ada: ada: changed the policy of all hosts (it is\\ngone)",
        ),
    ] {
        assert_eq!(
            format!("{}: {}", change.actor(), change.sentence()),
            expected
        );
        assert_eq!(change.decision().is_some(), is_decided, "{expected}");
    }
}

#[test]
fn a_word_on_the_screen_is_the_word_in_the_ledger() {
    fn is_so<T: Serialize + Copy>(values: &[T], word: impl Fn(T) -> &'static str) {
        for value in values {
            let json = serde_json::to_value(value).expect("a word is JSON");
            assert_eq!(json, word(*value));
        }
    }
    use Clause as C;
    use FailureCause as F;
    use PullAction as P;
    is_so(
        &[Deadline::PickUp, Deadline::Runtime, Deadline::Author],
        Deadline::word,
    );
    is_so(
        &[
            F::Untold,
            F::GaveUp,
            F::Crashed,
            F::Unreadable,
            F::Missing,
            F::NotLoggedIn,
            F::Quota,
            F::ProviderUnavailable,
        ],
        F::word,
    );
    is_so(
        &[
            C::P0,
            C::Blocking,
            C::Nits,
            C::Validation,
            C::Contradiction,
            C::Evidence,
            C::ReviewerOtherVendor,
            C::HumanPaths,
            C::Head,
        ],
        |clause: C| clause.as_str(),
    );
    is_so(
        &[P::Opened, P::Synchronize, P::Reopened, P::Closed, P::Merged],
        P::word,
    );
}

#[test]
fn an_agent_has_less_time_for_what_is_urgent() {
    let hours = [Priority::P0, Priority::P1, Priority::P2, Priority::P3].map(patience);
    assert_eq!(hours, [2, 24, 48, 7 * 24].map(TimeDelta::hours));
}

#[test]
fn a_review_and_a_task_are_known_by_their_names() {
    assert_eq!(key(None).to_string(), "#86 claude -> codex");
    let named = key(Some("Acme/Shop.git"));
    assert_eq!(named.to_string(), "acme/shop#86 claude -> codex");
    let task = TaskId::new(&"086".parse().expect("a number"), 2);
    assert_eq!(
        (task.to_string().as_str(), task.as_str()),
        ("handoff-pr86-2", "handoff-pr86-2")
    );
    for (name, is_it) in [
        ("handoff-pr86-2", true),
        (" handoff-pr86-2\n", true),
        ("packets/handoff/handoff-pr86-2.yaml", true),
        ("packets/handoff/handoff-pr86-2", false),
        ("handoff-pr86-2.yaml", false),
        ("handoff-pr86-1", false),
    ] {
        assert_eq!(task.is_named_by(name), is_it, "{name}");
    }
}

#[test]
fn people_name_a_review_by_its_number_and_what_tells_it_from_others() {
    let of = |pr: &str, of: Option<&str>, reviewer: Option<&str>| Which {
        pr: pr.parse().expect("a number"),
        repo: of.map(repo),
        reviewer: reviewer.map(agent),
    };
    let review = key(Some("acme/shop"));
    let current = agent("gemini");
    for (which, may_mean) in [
        (of("86", None, None), true),
        (of("0086", Some("Acme/Shop"), None), true),
        (of("86", None, Some("codex")), true),
        (of("86", None, Some("gemini")), true),
        (of("87", None, None), false),
        (of("86", Some("acme/till"), None), false),
        (of("86", None, Some("claude")), false),
        (of("87", Some("acme/till"), Some("claude")), false),
        (Which::of(&review), true),
        (Which::at_work(&review, &current), true),
    ] {
        assert_eq!(which.may_mean(&review, &current), may_mean, "{which:?}");
    }
    let at_work = Which::at_work(&review, &current);
    assert_eq!(at_work, of("86", Some("acme/shop"), Some("gemini")));
}

#[test]
fn a_pull_request_is_what_its_last_event_says_and_keeps_the_rest() {
    let mut pulls = Pulls::default();
    let mut note = |of: Option<&str>, action, author: Option<&str>, head: Option<&str>| {
        pulls.note(&PullEvent {
            repo: of.map(repo),
            pr: "086".parse().expect("a number"),
            action,
            author: author.map(str::to_owned),
            head: head.map(commit),
        });
        let known = |of: Option<&str>| {
            let pull = pulls.get(of.map(repo).as_ref(), &"86".parse().expect("a number"));
            pull.map_or_else(
                || "-".to_owned(),
                |pull| {
                    let is_open = if pull.is_open() { "open" } else { "over" };
                    let head = pull.head.map_or_else(|| "-".to_owned(), String::from);
                    let author = pull.author.unwrap_or_else(|| "-".to_owned());
                    format!("{} {is_open} {author} {head}", pull.last.word())
                },
            )
        };
        [
            known(Some("acme/shop")),
            known(Some("acme/till")),
            known(None),
        ]
    };
    use PullAction as P;
    let shop = Some("acme/shop");
    assert_eq!(
        note(shop, P::Opened, Some("ada"), None),
        ["opened open ada -", "-", "opened open ada -"]
    );
    assert_eq!(
        note(Some("Acme/Shop.git"), P::Synchronize, None, Some("abc1234")),
        [
            "synchronize open ada abc1234",
            "-",
            "synchronize open ada abc1234"
        ]
    );
    // An event without a repository may be about any.
    assert_eq!(
        note(None, P::Closed, None, Some("def5678")),
        [
            "closed over ada def5678",
            "closed over ada def5678",
            "closed over ada def5678"
        ]
    );
    assert_eq!(
        note(Some("acme/till"), P::Reopened, Some("bob"), None),
        [
            "closed over ada def5678",
            "reopened open bob def5678",
            "reopened open bob def5678"
        ]
    );
    let other = "87".parse().expect("a number");
    assert_eq!(pulls.get(None, &other), None);
}

#[test]
fn what_a_reviewer_read_counts_until_another_diff_is_asked_for() {
    let digest = |digit: &str| DiffDigest::new(format!("sha256:{}", digit.repeat(64))).ok();
    let change = |digit: &str| Change {
        digest: digest(digit),
        files: files(&["a.rs"]),
        ..Change::default()
    };
    let mut reading = ReadingState::default();
    let mut add = |step: ReadingStep| {
        reading.add(&step);
        let runs: Vec<String> = reading.runs.iter().map(ToString::to_string).collect();
        (
            reading.observed.len(),
            runs.len(),
            reading.change == change("1"),
        )
    };
    assert_eq!(add(ReadingStep::Asked(change("1"))), (0, 0, true));
    let read = || ReadingStep::Observed(files(&["a.rs"]));
    assert_eq!(add(read()), (1, 0, true));
    assert_eq!(add(read()), (1, 0, true));
    let ran = |command, exit| ReadingStep::Ran(run(command, exit, Some("abc1234")));
    assert_eq!(add(ran("make", Some(1))), (1, 1, true));
    assert_eq!(add(ran("lint", Some(0))), (1, 2, true));
    assert_eq!(
        add(ran("make", Some(0))),
        (1, 2, true),
        "the last run of each"
    );
    assert_eq!(
        add(ReadingStep::Asked(change("1"))),
        (1, 2, true),
        "the same diff"
    );
    assert_eq!(add(ReadingStep::Asked(change("2"))), (0, 0, false));
    assert_eq!(add(read()), (1, 0, false));
    let unknown = || ReadingStep::Asked(Change::default());
    assert_eq!(add(unknown()), (0, 0, false));
    assert_eq!(add(read()), (1, 0, false));
    assert_eq!(
        add(unknown()),
        (0, 0, false),
        "an unknown diff is never the same"
    );
}

#[test]
fn a_run_counts_for_its_commit_and_if_it_ended_with_zero() {
    let all = [
        run("make", Some(0), Some("abc1234")),
        run("lint", Some(2), Some("def5678")),
        run("test", None, None),
    ];
    let mut reading = ReadingState {
        observed: files(&["a.rs"]).into_iter().collect(),
        runs: all.to_vec(),
        ..ReadingState::default()
    };
    let on = |sha: Option<&str>| -> Vec<&str> {
        let sha = sha.map(commit);
        let runs = reading.runs_on(sha.as_ref());
        runs.map(|run| run.command.as_str()).collect()
    };
    let expected: [&[&str]; 3] = [&["make"], &[], &[]];
    assert_eq!(
        [on(Some("abc1234")), on(Some("0000000")), on(None)],
        expected
    );
    assert_eq!(
        all.each_ref().map(ObservedRun::passed),
        [true, false, false]
    );
    let output = format!("1200 ms, output sha256:{}", "0".repeat(64));
    assert_eq!(
        all.map(|run| run.to_string()),
        [
            format!("make: exit code 0, {output}"),
            format!("lint: exit code 2, {output}"),
            format!("test: ended by a signal or its time limit, {output}"),
        ]
    );
    reading.forget_reader();
    assert_eq!((reading.observed.len(), reading.runs.len()), (0, 3));
    let changed = files(&["src/a.rs", "tests/a.rs"]);
    assert_eq!(edited_tests(&changed), [&changed[1]]);
}

#[test]
fn a_budget_that_is_used_up_is_named_as_in_the_config() {
    let used_up = |budget| {
        let until = DateTime::<Utc>::UNIX_EPOCH;
        UsedUp {
            budget,
            spend: Spend::tokens(7),
            until,
        }
        .to_string()
    };
    assert_eq!(
        [DayBudget::PerDay, DayBudget::PerAgent].map(used_up),
        [
            "budget.per_day is used up: 7 tokens today",
            "budget.per_agent is used up: 7 tokens today",
        ]
    );
}
