//! What is wrong with a review in each state it can be in, and what it waits for: each case changes a recorded ledger.
//! `UPDATE=1` rewrites `golden/states.txt`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use chrono::TimeDelta;
use inspect::status::WorkspaceStatus;
use inspect::status::fix::FixCommand;
use inspect::status::overview::{ListedReviews, Status};
use inspect::status::problems::by_kind;
use message_schema::id::AgentName;
use review::Policy;

use crate::recorded_workspace::{at, check, workspace};
use crate::rewritten::{rewrite, rewrite_phase};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");

const APPROVED: &str =
    r#""at":"2026-11-23T08:01:28.292Z","commit":"0badcafe00000000000000000000000000000000""#;

/// Each case is a pull request, the phase that its last records lead to, and the state of its first thread.
const CASES: [(&str, &str, &str); 25] = [
    ("88", r#"{"approved":{"merge_ready":true,APPROVED}}"#, ""),
    ("88", r#"{"approved":{"merge_ready":false,APPROVED}}"#, ""),
    (
        "88",
        r#"{"approved":{"merge_ready":true,"stale":true,APPROVED}}"#,
        "",
    ),
    ("88", r#"{"closed":"merged"}"#, ""),
    ("88", r#"{"closed":"not_merged"}"#, ""),
    ("88", r#"{"closed":"commented"}"#, ""),
    ("86", r#"{"escalated":"max_rounds_exceeded"}"#, ""),
    ("86", r#"{"escalated":"reviewer_budget_exceeded"}"#, ""),
    ("86", r#"{"escalated":"reviewer_timeout"}"#, ""),
    ("86", r#"{"escalated":"author_timeout"}"#, ""),
    ("86", r#"{"escalated":"protocol_violation"}"#, ""),
    (
        "86",
        r#"{"escalated":"blocker_held"}"#,
        r#"{"held":"veto"}"#,
    ),
    ("86", r#"{"escalated":"invocation_failed"}"#, ""),
    ("86", r#"{"escalated":"no_reviewer"}"#, ""),
    ("86", r#"{"escalated":"spend_exceeded"}"#, ""),
    ("86", r#"{"escalated":"cancelled"}"#, ""),
    ("86", r#"{"escalated":{"reviewer":"ask Ann"}}"#, ""),
    ("86", r#"{"fixing":{"due":"2026-11-24T08:01:29.033Z"}}"#, ""),
    (
        "86",
        r#"{"fixing":{"due":"2026-11-24T08:01:29.033Z"}}"#,
        r#"{"held":"person"}"#,
    ),
    (
        "86",
        r#"{"fixing":{"due":"2026-11-24T08:01:29.033Z"}}"#,
        r#""resolved""#,
    ),
    (
        "86",
        r#"{"addressed":{"report":{},"due":"2026-11-24T08:01:29.033Z"}}"#,
        "",
    ),
    (
        "86",
        r#"{"awaiting":{"due":"2026-11-24T08:01:29.033Z"}}"#,
        "",
    ),
    ("86", "", r#"{"held":"veto"}"#),
    ("86", "", r#"{"held":"escalate"}"#),
    ("86", "", r#""resolved""#),
];

fn spelled(agent: Option<&AgentName>, words: &str) -> String {
    let agent = agent.map_or_else(String::new, |agent| format!(" --agent {agent}"));
    format!("settled {words}{agent}")
}

fn of(fix: &FixCommand) -> String {
    format!("{}: {} # {}", fix.actor, fix.run, fix.effect)
}

/// The problems of a pull request's review, and what it waits for.
fn told(root: &Path, pr: &str, hours: i64) -> String {
    let status = WorkspaceStatus::read(root).expect("a workspace");
    let (policy, now) = (Policy::default(), at(TimeDelta::hours(hours)));
    let mut text = String::new();
    let of_review = |review: &str| review.starts_with(&format!("#{pr} "));
    let problems = status.problems(&policy, now, &spelled).into_iter();
    for problem in problems.filter(|problem| problem.review.as_deref().is_some_and(of_review)) {
        text += &format!(
            "  {}: {}\n    {}\n",
            problem.kind.word(),
            problem.what,
            of(&problem.fix)
        );
    }
    for (key, review) in status.index.state().reviews() {
        if key.pr.as_str() == pr {
            let why = status.why(key, review, &policy, now, &spelled);
            text += &serde_json::to_string_pretty(&why).expect("plain values");
            text.push('\n');
        }
    }
    text
}

#[test]
fn each_state_of_a_review_has_its_problems_and_its_next_step() {
    let mut text = String::new();
    for (pr, phase, thread) in CASES {
        let root = workspace();
        // The file that waits to be judged is the first thing that every review waits for.
        fs::remove_file(root.path().join("agents/claude/outbox/n-1.yaml")).expect("a file");
        let phase = phase.replace("APPROVED", APPROVED);
        if !phase.is_empty() {
            let records: &[usize] = if pr == "88" { &[4] } else { &[9, 11] };
            for record in records {
                rewrite_phase(root.path(), *record, &phase);
            }
        }
        if !thread.is_empty() {
            rewrite(
                root.path(),
                6,
                r#""state":"open""#,
                &format!(r#""state":{thread}"#),
            );
        }
        text += &format!("# {pr} {phase} {thread}\n{}\n", told(root.path(), pr, 1));
    }
    check(GOLDEN, "states.txt", Path::new("/nowhere"), &text);
}

/// Puts a pipe, files and a link in the places of an agent's directories, and a file where none of them is.
fn replace_directories(agent: &Path) {
    for directory in ["sent", "archive", "dead_letter", "inbox/taken"] {
        let _ = fs::remove_dir_all(agent.join(directory));
    }
    let mode = rustix::fs::Mode::RWXU;
    let pipe = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, agent.join("sent"), pipe, mode, 0).expect("a pipe");
    std::os::unix::fs::symlink("inbox", agent.join("dead_letter")).expect("a link");
    for file in ["archive", "inbox/taken", "outbox/sent"] {
        fs::write(agent.join(file), "").expect("a file");
    }
}

#[test]
fn every_alert_is_a_problem_with_the_command_for_its_file() {
    let root = workspace();
    let path = |name: &str| root.path().join(name);
    let alert = |kind: &str, name: &str| {
        let path = path(name);
        format!(
            r#"{{"kind":"{kind}","path":"{}","what":"{kind}"}}"#,
            path.display()
        )
    };
    let alerts = [
        alert("outbox_owner", "agents/claude/outbox"),
        alert("unreadable", "agents/claude/outbox"),
        alert("unreadable", "settled.toml"),
        alert("unreadable", "a\\nb"),
        alert("unreadable", "agents/gemini/sent"),
        alert("unreadable", "agents/gemini/archive"),
        alert("unreadable", "agents/gemini/inbox/taken"),
        alert("unreadable", "agents/gemini/dead_letter"),
        alert("unreadable", "agents/gemini/outbox/sent"),
        alert("unwritable", "agents/codex/inbox"),
        alert("unwritable", "settled.toml"),
        alert("unwritable", "agents/none/inbox"),
        alert("unwritable", "agents/gemini/inbox/closed"),
        alert("unwritable", "settled.toml/inbox"),
        alert("sender_unproven", "agents/codex/inbox/x.yaml"),
        alert("sent_differs", "agents/codex/sent/q-1.yaml"),
        alert("shared_ledger", "agents"),
        alert("host_clock", "agents"),
    ];
    fs::write(
        path(".settled/alerts.json"),
        format!("[{}]", alerts.join(",")),
    )
    .expect("a file");
    // The mode says that nobody may write there.
    let closed = path("agents/gemini/inbox/closed");
    fs::create_dir(&closed).expect("a directory");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o500)).expect("its owner's");
    replace_directories(&path("agents/gemini"));
    let status = WorkspaceStatus::read(root.path()).expect("a workspace");
    let problems = status.problems(&Policy::default(), at(TimeDelta::zero()), &spelled);
    let mut text = String::new();
    for problem in &problems {
        text += &format!(
            "{}: {}\n  {}\n",
            problem.kind.word(),
            problem.what,
            of(&problem.fix)
        );
    }
    for (kind, (count, first)) in by_kind(&problems) {
        text += &format!("{count} {}, first {}\n", kind.word(), first.what);
    }
    check(GOLDEN, "alerts.txt", root.path(), &text);
    assert!(status.unwritable_inbox("codex").is_some());
    assert!(status.unwritable_inbox("claude").is_none());
}

#[test]
fn a_short_overview_names_first_who_must_act_and_counts_the_others() {
    let root = workspace();
    let status = WorkspaceStatus::read(root.path()).expect("a workspace");
    let limited = |listed, most| {
        let mut status = Status::of(&status, None, listed);
        status.limit(most);
        let reviews: Vec<&str> = status
            .reviews
            .iter()
            .map(|row| row.review.as_str())
            .collect();
        let left_out = status.left_out.map_or(0, std::num::NonZero::get);
        (reviews.join(", "), left_out, status.unlisted())
    };
    let all = "#86 claude -> codex, #87 claude -> gemini, #88 codex -> claude".to_owned();
    assert_eq!(limited(ListedReviews::All, 3), (all, 0, 0));
    assert_eq!(
        limited(ListedReviews::All, 2),
        ("#86 claude -> codex, #87 claude -> gemini".to_owned(), 1, 0)
    );
    assert_eq!(
        limited(ListedReviews::All, 1),
        ("#86 claude -> codex".to_owned(), 2, 0)
    );
}
