//! The states of a review to draw, each brought about on a stage by messages, orders and time.

use review::{Act, Event, PersonsDecision, PullAction, PullEvent};

use super::stage::{Stage, which};

const FINDINGS: &str = "  - id: F-001
    severity: P1
    blocking: true
    status: open
    title: Empty diff is not handled
    file: docs/protocol/review_loop.md
    lines: 40-45
    evidence: A branch without commits makes the reviewer wait for ever.
    recommendation: Say what the reviewer does with an empty diff.
  - id: F-002
    severity: P3
    blocking: false
    status: open
    title: Wording of the fallback
    recommendation: Clarify the wording.
";

pub(crate) fn opened(mut stage: Stage) -> Stage {
    stage.request(86);
    stage
}

pub(crate) fn taken(stage: Stage) -> Stage {
    let mut stage = opened(stage);
    stage.wait(120);
    stage.order(Event::Taken(which(86)));
    stage.wait(60);
    stage.order(Event::Turns {
        which: which(86),
        count: 3,
    });
    stage
}

pub(crate) fn fixing(stage: Stage) -> Stage {
    let mut stage = taken(stage);
    stage.wait(200);
    stage.feedback(86, 1, 1, FINDINGS);
    stage.wait(2_460);
    stage
}

pub(crate) fn addressed(stage: Stage) -> Stage {
    let mut stage = fixing(stage);
    let body = "pr: 86\nround: 1\ncommit_sha: 0123456789abcdef0123456789abcdef01234567\n\
                addressed_finding_ids: [F-001]\nchanges_summary: An empty diff is answered with a comment.\n";
    stage.send("claude", "review_addressed", 86, body);
    stage.wait(60);
    stage
}

pub(crate) fn escalated(stage: Stage) -> Stage {
    let mut stage = taken(stage);
    stage.order(Event::Turns {
        which: which(86),
        count: 5,
    });
    stage.wait(840);
    stage
}

pub(crate) fn approved(stage: Stage) -> Stage {
    let mut stage = opened(stage);
    let body = "quality_gate_result: pass\nmerge_ready: true\nvalidated_head: 9b2f41c07de1a3b85c6f2e94d1a07b3c5e8f6a21\n";
    stage.wait(300);
    stage.send("codex", "review_lgtm", 86, body);
    stage.wait(30);
    stage
}

pub(crate) fn overdue(stage: Stage) -> Stage {
    let mut stage = taken(stage);
    stage.nobody_serves(3_000);
    stage
}

pub(crate) fn dead_letters(stage: Stage) -> Stage {
    let mut stage = fixing(stage);
    let body = "pr: 86\nround: 7\ncommit_sha: 0123456789abcdef0123456789abcdef01234567\nchanges_summary: Fixed.\n";
    stage.send("claude", "review_addressed", 86, body);
    stage.wait(20);
    stage
}

pub(crate) fn quota(stage: Stage) -> Stage {
    let mut stage = taken(stage);
    stage.gives_up(86, "my quota is used up, try again at 14:00");
    stage.wait(30);
    stage
}

pub(crate) fn held(stage: Stage) -> Stage {
    let mut stage = fixing(stage);
    stage.order(Event::Person(PersonsDecision {
        which: which(86),
        by: "ann".to_owned(),
        reason: "I look at it myself".to_owned(),
        act: Act::Hold("F-001".parse().expect("an id")),
    }));
    stage.wait(20);
    stage
}

pub(crate) fn hostile(stage: Stage) -> Stage {
    let mut stage = taken(stage);
    let long = "x".repeat(9_000);
    let findings = format!(
        "  - id: F-001\n    severity: P1\n    blocking: true\n    status: open\n    \
         title: \"\\e[2J\\e[31m\\u202E approved \\u2066 \\a\\r #99 nothing is missing\"\n    \
         evidence: \"<script>alert(1)</script> \\e]52;c;cm0gLXJm\\a {long}\"\n    recommendation: \"審査待ち\\u0000\"\n"
    );
    stage.feedback(86, 1, 1, &findings);
    stage.request(87);
    stage.gives_up(87, "\\e[2J\\u202Edead\\a <b>approved</b>");
    stage
}

pub(crate) fn several(stage: Stage) -> Stage {
    let mut stage = fixing(stage);
    stage.request(93);
    stage.request(91);
    stage.order(Event::Taken(which(91)));
    stage.order(Event::Turns {
        which: which(91),
        count: 8,
    });
    stage.wait(600);
    stage
}

pub(crate) fn thousand(mut stage: Stage) -> Stage {
    for pr in 1..=1_000 {
        let body = format!(
            "pr: {pr}\nbranch: b\ndiff_summary: d\nmax_turns_reviewer: 8\nmax_runtime_s_reviewer: 600\n"
        );
        stage.lay_message("claude", "review_request", pr, "", &body);
    }
    stage.wait(60);
    stage
}

/// Approved, and then the author pushed.
pub(crate) fn outdated(stage: Stage) -> Stage {
    let mut stage = approved(stage);
    stage.order(Event::Pull(PullEvent {
        repo: None,
        pr: "86".parse().expect("a number"),
        action: PullAction::Synchronize,
        author: None,
        head: Some(
            "0123456789abcdef0123456789abcdef01234567"
                .parse()
                .expect("a commit"),
        ),
    }));
    stage.wait(30);
    stage
}

/// An approval without evidence of reading, which the config must require.
pub(crate) fn unread(mut stage: Stage) -> Stage {
    let body = "pr: 86\nbranch: claude/empty-diff\ndeclared_head: 9b2f41c07de1a3b85c6f2e94d1a07b3c5e8f6a21\n\
                changed_files: [src/diff.rs, tests/diff.rs]\n\
                diff_summary: Says what the reviewer does with an empty diff.\nmax_turns_reviewer: 8\nmax_runtime_s_reviewer: 600\n";
    stage.send("claude", "review_request", 86, body);
    stage.order(Event::Taken(which(86)));
    stage.wait(120);
    let body = "quality_gate_result: pass\nmerge_ready: true\nvalidated_head: 9b2f41c07de1a3b85c6f2e94d1a07b3c5e8f6a21\n";
    stage.send("codex", "review_lgtm", 86, body);
    stage.wait(30);
    stage
}

/// The author has five minutes left of its day.
pub(crate) fn nearly_over(stage: Stage) -> Stage {
    let mut stage = fixing(stage);
    stage.wait(24 * 3_600 - 2_460 - 300);
    stage
}

/// The author has fixed the findings and requested again; the reviewer has not taken the request yet.
pub(crate) fn asked_again(stage: Stage) -> Stage {
    let mut stage = addressed(stage);
    stage.request(86);
    stage.wait(90);
    stage
}

/// Other reviews with other movers: a person, the author, the reviewer.
pub(crate) fn among_others(mut stage: Stage) -> Stage {
    for pr in [91, 88, 93] {
        stage.request(pr);
    }
    stage.order(Event::Taken(which(91)));
    stage.order(Event::Turns {
        which: which(91),
        count: 8,
    });
    stage.order(Event::Taken(which(88)));
    stage.feedback(88, 1, 1, FINDINGS);
    stage
}
