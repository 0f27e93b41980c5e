//! Tests of states that a real workspace hardly reaches within a test: passed deadlines, used-up limits, approvals that
//! hold for nothing.

use chrono::{DateTime, TimeDelta, Utc};
use message_schema::envelope::Priority;
use message_schema::limit::Rounds;
use review::{
    Approval, CloseReason, EscalationReason, GENERATIONS_MAX, GIVEN_BACK_PER_DAY, Phase, Policy,
    Profile, PullAction, PullEvent, Review, ReviewKey, State,
};
use serde_json::json;
use spool::{Digest, Folded, Verified};
use workspace::index::LedgerIndex;

use super::{Actor, Missing, Why};
use crate::status::WorkspaceStatus;
use crate::status::pending::{ClaimedReview, PendingFile, PendingMail};
use crate::status::problems::ProblemKind;

fn now() -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::days(20_000)
}

fn key() -> ReviewKey {
    let name = |name: &str| name.parse().expect("a name");
    ReviewKey::new(
        None,
        &"86".parse().expect("a number"),
        name("claude"),
        name("codex"),
    )
}

fn review(phase: Phase) -> Review {
    Review {
        generation: 1,
        rounds: Rounds::default(),
        granted: 0,
        first_round: 1,
        round: 1,
        phase,
        since: now() - TimeDelta::hours(3),
        closed_by: None,
        threads: Default::default(),
        commit: None,
        priority: Priority::P1,
        asked: 1,
        given_back: Vec::new(),
        fixes: None,
        reassigned_to: None,
        failed: None,
        spent: message_schema::spend::Spend::default(),
        past_requests: Vec::new(),
        reading: review::ReadingState::default(),
    }
}

fn status(review: &Review, pull: Option<PullAction>, serving: bool) -> WorkspaceStatus {
    let pull = pull.map(|action| PullEvent {
        repo: None,
        pr: key().pr,
        action,
        author: None,
        head: None,
    });
    let mut index = LedgerIndex::default();
    index.state = State::of([(&key(), review)], &pull, []);
    let verified = Verified {
        records: 0,
        segments: 0,
        bytes: 0,
        last: Digest::ZERO,
        torn: None,
    };
    WorkspaceStatus {
        index,
        folded: Folded {
            verified,
            snapshot: None,
            passed_over: Vec::new(),
        },
        serving: Some(serving),
        agents: vec![key().author, key().reviewer],
        unjudged: PendingMail::default(),
        dead: Vec::new(),
        alerts: Vec::new(),
        host: None,
        heard: Vec::new(),
    }
}

fn spell(agent: Option<&message_schema::id::AgentName>, words: &str) -> String {
    let agent = agent.map_or_else(String::new, |agent| format!(" --agent {agent}"));
    format!("settled {words}{agent}")
}

fn ask(status: &WorkspaceStatus, review: &Review) -> Why {
    status.why(&key(), review, &Policy::default(), now(), &spell)
}

/// The kind of thing that is missing, and the first command.
fn short(review: &Review, pull: Option<PullAction>) -> (Missing, Option<String>) {
    let why = ask(&status(review, pull, true), review);
    (why.kind, why.fixes.into_iter().next().map(|fix| fix.run))
}

fn approval(commit: Option<&str>) -> Approval {
    Approval {
        commit: commit.map(|commit| commit.parse().expect("a commit")),
        merge_ready: true,
        at: now(),
        stale: false,
        by_rule: false,
        broken: Default::default(),
        evidence: None,
        by_person: None,
    }
}

#[test]
fn a_deadline_that_has_come_misses_a_daemon_only_where_none_serves() {
    let overdue = review(Phase::Fixing {
        due: now() - TimeDelta::hours(1),
    });
    let unserved = status(&overdue, None, false);
    let why = ask(&unserved, &overdue);
    assert_eq!(
        (why.kind, why.actor.as_ref().map(Actor::as_str)),
        (Missing::Daemon, Some("operator"))
    );
    assert_eq!(
        unserved.problems(&Policy::default(), now(), &spell)[0].kind,
        ProblemKind::DeadlineOverdue
    );

    let served = status(&overdue, None, true);
    assert_eq!(ask(&served, &overdue).kind, Missing::Request);
    let problems = served.problems(&Policy::default(), now(), &spell);
    assert_eq!(
        (problems[0].kind, problems[0].fix.run.as_str()),
        (ProblemKind::DeadlineOverdue, "settled doctor")
    );
    let just_now = review(Phase::Fixing {
        due: now() - TimeDelta::seconds(1),
    });
    assert_eq!(
        status(&just_now, None, true).problems(&Policy::default(), now(), &spell),
        [],
        "a daemon may take a moment"
    );
}

#[test]
fn an_approval_of_no_commit_or_not_to_be_merged_misses_something() {
    let bound = short(&review(Phase::Approved(approval(Some("abc1234")))), None);
    assert_eq!(
        bound,
        (
            Missing::Nothing,
            Some("settled gate check --pr 86 --head abc1234".to_owned())
        )
    );
    let approved = review(Phase::Approved(approval(Some("abc1234"))));
    let runs = |pull| -> Vec<String> {
        let fixes = ask(&status(&approved, pull, true), &approved).fixes;
        fixes.into_iter().map(|fix| fix.run).collect()
    };
    assert_eq!(
        runs(None),
        [
            "settled gate check --pr 86 --head abc1234",
            "settled pr merged 86"
        ]
    );
    assert_eq!(runs(Some(PullAction::Merged)), [""; 0]);
    let (kind, run) = short(&review(Phase::Approved(approval(None))), None);
    assert_eq!(kind, Missing::Head);
    assert!(
        run.is_some_and(
            |run| run.contains("--declared-head SHA") && run.ends_with("--agent claude")
        )
    );
    let waits = Approval {
        merge_ready: false,
        ..approval(Some("abc1234"))
    };
    let waits = short(&review(Phase::Approved(waits)), None);
    assert_eq!(
        waits,
        (
            Missing::MergeReady,
            Some("settled review reopen 86".to_owned())
        )
    );
}

#[test]
fn what_the_limits_forbid_is_not_proposed() {
    let escalated = |why| review(Phase::Escalated(why));
    let max = short(&escalated(EscalationReason::MaxRoundsExceeded), None);
    assert_eq!(
        max,
        (
            Missing::Decision,
            Some("settled review grant 86 --rounds 1".to_owned())
        )
    );
    let late = short(&escalated(EscalationReason::AuthorTimeout), None);
    assert_eq!(
        late,
        (
            Missing::Decision,
            Some("settled review reopen 86".to_owned())
        )
    );

    let closes = (Missing::Decision, Some("settled pr closed 86".to_owned()));
    let used = Review {
        generation: GENERATIONS_MAX,
        ..escalated(EscalationReason::AuthorTimeout)
    };
    assert_eq!(short(&used, None), closes);
    let last = Review {
        generation: GENERATIONS_MAX,
        ..escalated(EscalationReason::MaxRoundsExceeded)
    };
    assert_eq!(
        short(&last, None),
        max,
        "a round can be granted all the same"
    );
    let stale = Approval {
        stale: true,
        ..approval(Some("abc1234"))
    };
    assert_eq!(
        short(
            &Review {
                generation: GENERATIONS_MAX,
                ..review(Phase::Approved(stale))
            },
            None
        ),
        closes
    );
    let given_back = vec![now() - TimeDelta::hours(5); GIVEN_BACK_PER_DAY];
    let given = Review {
        given_back,
        ..escalated(EscalationReason::MaxRoundsExceeded)
    };
    assert_eq!(short(&given, None), closes);
    let long_ago = vec![now() - TimeDelta::hours(25); GIVEN_BACK_PER_DAY];
    let again = Review {
        given_back: long_ago,
        ..escalated(EscalationReason::AuthorTimeout)
    };
    assert_eq!(short(&again, None), late);
}

#[test]
fn a_closed_review_misses_a_request_only_when_its_pull_request_is_open_again() {
    let merged = review(Phase::Closed(CloseReason::Merged));
    assert_eq!(
        short(&merged, Some(PullAction::Merged)),
        (Missing::Nothing, None)
    );
    let not_merged = review(Phase::Closed(CloseReason::NotMerged));
    assert_eq!(
        short(&not_merged, Some(PullAction::Reopened)).0,
        Missing::Request
    );
    let commented = review(Phase::Closed(CloseReason::Commented));
    assert_eq!(
        short(&commented, None),
        (
            Missing::Nothing,
            Some("settled review reopen 86".to_owned())
        )
    );
}

#[test]
fn a_reviewer_is_named_where_the_pull_request_has_several() {
    let one = review(Phase::Escalated(EscalationReason::AuthorTimeout));
    let other = ReviewKey {
        reviewer: "gemini".parse().expect("a name"),
        ..key()
    };
    let mut two = status(&one, None, true);
    two.index.state = State::of([(&key(), &one), (&other, &one)], [], []);
    assert_eq!(
        ask(&two, &one).fixes[0].run,
        "settled review reopen 86 --reviewer codex"
    );
}

#[test]
fn two_repositories_with_one_number_are_told_apart() {
    let one = review(Phase::Escalated(EscalationReason::AuthorTimeout));
    let of = |repo: &str| ReviewKey {
        repo: Some(repo.parse().expect("a repository")),
        ..key()
    };
    let (first, second) = (of("a/x"), of("b/y"));
    let mut two = status(&one, None, true);
    two.index.state = State::of([(&first, &one), (&second, &one)], [], []);
    let why = two.why(&first, &one, &Policy::default(), now(), &spell);
    assert_eq!(
        why.fixes[0].run,
        "settled review reopen 86 --reviewer codex --repo a/x"
    );
}

#[test]
fn the_mail_of_a_reviewer_that_took_over_waits_for_the_daemon_too() {
    let reassigned = Review {
        reassigned_to: Some("gemini".parse().expect("a name")),
        ..review(Phase::Fixing {
            due: now() + TimeDelta::hours(1),
        })
    };
    let missing = |agent: &str| {
        let mut unserved = status(&reassigned, None, false);
        unserved.unjudged.files.push(PendingFile {
            agent: agent.parse().expect("a name"),
            file: spool::FileName::new("answer.yaml").expect("a file name"),
            since: None,
            about: ClaimedReview {
                pr: Some(key().pr),
                is_review: true,
            },
        });
        ask(&unserved, &reassigned).kind
    };
    assert_eq!(missing("gemini"), Missing::Daemon);
    assert_eq!(missing("claude"), Missing::Daemon);
    assert_eq!(
        missing("codex"),
        Missing::Request,
        "a reviewer that was replaced moves nothing"
    );
}

/// A request for `abc1234` that is taken and wants `cargo test`, with what the daemon's side saw of that command.
fn asked(runs: &[(&str, i32)]) -> Review {
    let open = json!({
        "request": "q-1", "priority": "P1", "turns": 8, "runtime_s": 600, "attempts_left": 3,
        "supersessions_left": 2, "pick_up_by": now(), "taken_at": now(), "head": "abc1234",
        "validation_commands": [" cargo test"],
    });
    let run = |(head, exit): &(&str, i32)| {
        let run = json!({
            "command": "cargo test", "exit": exit, "duration_ms": 1, "head": head,
            "output": format!("sha256:{}", "0".repeat(64)),
        });
        serde_json::from_value(run).expect("a run")
    };
    let mut review = review(Phase::Reviewing(
        serde_json::from_value(open).expect("an open request"),
    ));
    review.reading.runs = runs.iter().map(run).collect();
    review
}

#[test]
fn a_command_is_in_the_way_once_until_it_passed_on_the_commit_of_the_round() {
    let mut policy = Policy::default();
    policy.gate.validation_commands = vec!["cargo test ".to_owned()];
    let gate = |runs| {
        let review = asked(runs);
        let status = status(&review, None, true);
        let why = status.why(&key(), &review, &policy, now(), &spell);
        why.gate
    };
    let unmet = ["`cargo test` must be recorded as passing"];
    assert_eq!(gate(&[]), unmet);
    assert_eq!(gate(&[("abc1234", 1)]), unmet);
    assert_eq!(gate(&[("def5678", 0)]), unmet, "a run on another commit");
    assert_eq!(gate(&[("abc1234", 0)]), [""; 0]);
}

#[test]
fn an_lgtm_is_proposed_wherever_the_brief_offers_one() {
    let held = json!({
        "severity": "P1", "blocking": true, "opened_in": 1, "state": { "held": "person" },
        "dialogue": { "stance": "seeks_change", "round_count": 0, "replies": 0 },
    });
    let mut review = asked(&[]);
    review.threads.insert(
        "F-1-001".parse().expect("an id"),
        serde_json::from_value(held).expect("a thread"),
    );
    let proposes = |profile| {
        let policy = Policy {
            profile,
            ..Policy::default()
        };
        let status = status(&review, None, true);
        let fixes = status.why(&key(), &review, &policy, now(), &spell).fixes;
        let is_proposed = fixes.iter().any(|fix| fix.run.contains("lgtm 86"));
        let may = status.index.state().may_approve(&policy, &key(), &review);
        assert_eq!(is_proposed, may, "{profile:?}");
        is_proposed
    };
    assert!(!proposes(Profile::Gate));
    assert!(
        proposes(Profile::Advisory),
        "a gate that only advises refuses nothing"
    );
}

/// A thread that blocks, in this state.
fn blocker(state: &serde_json::Value) -> review::Thread {
    let thread = json!({
        "severity": "P1", "blocking": true, "opened_in": 1, "state": state,
        "dialogue": { "stance": "seeks_change", "round_count": 0, "replies": 0 },
    });
    serde_json::from_value(thread).expect("a thread")
}

#[test]
fn an_author_fixes_what_blocks_and_then_asks_again() {
    for (blockers, expected) in [
        (
            0,
            "claude must request the next round: nothing blocking is open",
        ),
        (1, "claude must fix the blocking finding and report back"),
        (2, "claude must fix 2 blocking findings and report back"),
    ] {
        let mut fixing = review(Phase::Fixing {
            due: now() + TimeDelta::hours(1),
        });
        let id = |n| format!("F-{n}").parse().expect("an id");
        let threads = (0..blockers).map(|n| (id(n), blocker(&json!("open"))));
        fixing.threads = threads.collect();
        let missing = ask(&status(&fixing, None, true), &fixing).missing;
        assert_eq!(missing.as_deref(), Some(expected));
    }
}

#[test]
fn where_no_agent_may_approve_a_person_does_once_nothing_blocks() {
    let mut policy = Policy::default();
    let paths = review::HumanPaths::new(vec![".github/".to_owned()]);
    policy.gate.human_paths = paths.expect("a pattern");
    let commands = |review: &Review| -> Vec<String> {
        let status = status(review, None, true);
        let fixes = status.why(&key(), review, &policy, now(), &spell).fixes;
        fixes.into_iter().map(|fix| fix.run).collect()
    };
    let mut review = asked(&[]);
    let approve = "settled review approve 86".to_owned();
    assert!(
        commands(&review).contains(&approve),
        "{:?}",
        commands(&review)
    );
    let id = "F-1".parse().expect("an id");
    review.threads.insert(id, blocker(&json!("open")));
    assert!(
        !commands(&review).contains(&approve),
        "{:?}",
        commands(&review)
    );
}

#[test]
fn an_author_is_named_where_two_ask_the_same_reviewer() {
    let one = asked(&[]);
    let brief = |author: &str, reviewer: &str| {
        let other = ReviewKey {
            author: author.parse().expect("a name"),
            reviewer: reviewer.parse().expect("a name"),
            ..key()
        };
        let mut two = status(&one, None, true);
        two.index.state = State::of([(&key(), &one), (&other, &one)], [], []);
        ask(&two, &one).fixes[0].run.clone()
    };
    let alone = "settled brief 86 --agent codex";
    let named = "settled brief 86 --author claude --agent codex";
    assert_eq!(brief("qwen", "codex"), named);
    assert_eq!(brief("qwen", "gemini"), alone);
    assert_eq!(brief("claude", "gemini"), alone);
}

#[test]
fn a_review_whose_number_another_author_has_now_waits_for_nobody() {
    let cancelled = review(Phase::Escalated(EscalationReason::Cancelled));
    assert_eq!(short(&cancelled, None).0, Missing::Decision);
    let other = ReviewKey {
        author: "qwen".parse().expect("a name"),
        ..key()
    };
    let open = asked(&[]);
    let mut given = status(&cancelled, None, true);
    given.index.state = State::of([(&key(), &cancelled), (&other, &open)], [], []);
    let why = ask(&given, &cancelled);
    assert_eq!(
        (why.kind, why.missing, why.fixes),
        (Missing::Nothing, None, vec![])
    );
}

#[test]
fn a_commented_review_in_its_last_generation_is_not_reopened() {
    let last = Review {
        generation: GENERATIONS_MAX,
        ..review(Phase::Closed(CloseReason::Commented))
    };
    assert_eq!(short(&last, None), (Missing::Nothing, None));
}
