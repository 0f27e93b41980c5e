//! Tests what a host that shares its ledger says of the others, of agents that live elsewhere or nowhere, and of the files
//! that wait in vain in their outboxes.

use std::fs;

use chrono::TimeDelta;
use fleet::Fleet;
use inspect::status::WorkspaceStatus;
use inspect::status::overview::{ListedReviews, Status};
use inspect::status::problems::{Problem, ProblemKind};
use inspect::status::why::Missing;
use message_schema::id::AgentName;
use review::{HostChange, JoinedHost, Policy};
use serde_json::json;
use spool::HostName;

use crate::recorded_workspace::{at, workspace};

fn spelled(agent: Option<&AgentName>, words: &str) -> String {
    let agent = agent.map_or_else(String::new, |agent| format!(" --agent {agent}"));
    format!("settled {words}{agent}")
}

fn agent(name: &str) -> AgentName {
    name.parse().expect("a name")
}

fn host(name: &str) -> HostName {
    name.parse().expect("a host's name")
}

/// Claude lives on the tower, codex and gemini on the laptop, qwen on a box whose key was retired.
fn fleet() -> Fleet {
    let mut fleet = Fleet::default();
    for (name, agents) in [
        ("tower", &["claude"][..]),
        ("laptop", &["codex", "gemini"]),
        ("box", &["qwen"]),
    ] {
        let joined = HostChange::Joined(JoinedHost {
            host: name.to_owned(),
            key: format!("key of {name}"),
            version: "0.1.0".to_owned(),
            agents: agents.iter().copied().map(agent).collect(),
            policy: String::new(),
        });
        fleet.change(&joined, &host(name)).expect("a new host");
    }
    fleet.retire(&host("box")).expect("a host");
    fleet.note(&host("laptop"), 12, at(TimeDelta::zero()));
    fleet
}

/// The recorded workspace on the tower, with files in the outboxes of all three agents.
fn on_the_tower() -> WorkspaceStatus {
    let root = workspace();
    for file in [
        "codex/outbox/a.yaml",
        "gemini/outbox/b.yaml",
        "gemini/outbox/c.yaml",
    ] {
        fs::write(root.path().join("agents").join(file), "id: x\n").expect("a file");
    }
    let mut status = WorkspaceStatus::read(root.path()).expect("a workspace");
    status.index.fleet = fleet();
    status.host = Some(host("tower"));
    status
}

fn line(problem: &Problem) -> String {
    let path = problem.path.as_ref();
    let path = path.map_or_else(String::new, |path| format!(" [{}]", path.display()));
    let (kind, what) = (problem.kind.word(), &problem.what);
    format!(
        "{kind}{path}: {what} -> {} # {}",
        problem.fix.run, problem.fix.effect
    )
}

/// The problems with mail.
fn mail(status: &WorkspaceStatus) -> Vec<String> {
    const OF_MAIL: [ProblemKind; 3] = [
        ProblemKind::NoHome,
        ProblemKind::MailLeft,
        ProblemKind::MailUnjudged,
    ];
    let problems = status.problems(&Policy::default(), at(TimeDelta::zero()), &spelled);
    let of_mail = problems.iter().filter(|it| OF_MAIL.contains(&it.kind));
    of_mail.map(line).collect()
}

#[test]
fn mail_that_no_host_handles_is_a_problem_and_so_is_mail_in_an_outbox_that_nobody_reads() {
    let mut status = on_the_tower();
    status.agents.push(agent("pi"));
    assert_eq!(
        mail(&status),
        [
            "no_home: pi has no home on any host: no host reads its outbox, and messages to it wait -> settled host claim pi # makes this host its home",
            "no_home: qwen is at home on host box, whose key was retired: no host reads its outbox, and messages to it wait -> settled host move-home qwen --to tower # makes this host its home",
            "mail_unjudged: mail waits to be judged and no daemon serves: 1 of claude -> settled serve # judges and delivers it",
            "mail_left [agents/codex/outbox]: codex is at home on host laptop: nobody sends the 1 file in its outbox here; move to agents/codex/outbox on host laptop -> settled host move-home codex --to tower # moves its home back here, where they are sent",
            "mail_left [agents/gemini/outbox]: gemini is at home on host laptop: nobody sends the 2 files in its outbox here; move to agents/gemini/outbox on host laptop -> settled host move-home gemini --to tower # moves its home back here, where they are sent",
        ]
    );
    // Without hosts all mail is this daemon's; one that serves judges it, and without mail nothing waits.
    status.host = None;
    assert_eq!(
        mail(&status),
        [
            "mail_unjudged: mail waits to be judged and no daemon serves: 1 of claude, 1 of codex, 2 of gemini -> settled serve # judges and delivers it"
        ]
    );
    status.serving = Some(true);
    assert_eq!(mail(&status), [""; 0]);
    status.serving = Some(false);
    status.unjudged.counts.clear();
    assert_eq!(mail(&status), [""; 0]);
}

#[test]
fn a_review_whose_mover_has_no_home_waits_for_the_operator() {
    let mut status = on_the_tower();
    let of_86 = |status: &WorkspaceStatus| {
        let mut reviews = status.index.state().reviews();
        let found = reviews.find(|(key, _)| key.pr.as_str() == "86");
        let (key, review) = found.expect("a review");
        let now = at(TimeDelta::zero());
        let why = status.why(key, review, &Policy::default(), now, &spelled);
        let fixes: Vec<String> = why.fixes.into_iter().map(|fix| fix.run).collect();
        (why.kind, why.missing.unwrap_or_default(), fixes)
    };
    assert_ne!(of_86(&status).0, Missing::Home);
    status.index.fleet.retire(&host("laptop")).expect("a host");
    let missing = "codex is at home on host laptop, whose key was retired: no host reads its outbox, and messages to it wait";
    let fix = "settled host move-home codex --to tower".to_owned();
    assert_eq!(
        of_86(&status),
        (Missing::Home, missing.to_owned(), vec![fix])
    );
}

#[test]
fn each_host_is_listed_with_its_agents_and_the_last_that_was_heard_of_it() {
    let mut status = on_the_tower();
    let heard = |name: &str| {
        json!({
            "host": name, "version": "0.1.1", "seq": 11, "standing": "waiting",
            "at": "2026-11-23T08:10:01Z", "heard_at": "2026-11-23T08:10:00Z", "behind": 1,
        })
    };
    let heard = json!([heard("tower"), heard("laptop")]);
    status.heard = serde_json::from_value(heard).expect("heartbeats");
    let shown = Status::of(&status, None, ListedReviews::Current).hosts;
    assert_eq!(
        serde_json::to_value(shown).expect("plain values"),
        json!([
            {
                "name": "box", "is_this": false, "agents": ["qwen"], "version": "0.1.0",
                "key": "key of box", "is_retired": true,
            },
            {
                "name": "laptop", "is_this": false, "agents": ["codex", "gemini"], "version": "0.1.0",
                "key": "key of laptop", "is_retired": false,
                "last_record": 12, "last_at": "2026-11-23T08:10:00Z",
                "heard": {
                    "at": "2026-11-23T08:10:00Z", "version": "0.1.1", "state": "waiting",
                    "behind": 1, "clock_ahead_ms": 1_000,
                },
            },
            {
                "name": "tower", "is_this": true, "agents": ["claude"], "version": "0.1.0",
                "key": "key of tower", "is_retired": false,
            },
        ])
    );
}
