//! Every walk, and the smaller ones that fit into the suite.

use std::collections::{BTreeMap, BTreeSet};

use message_schema::id::{CommitSha, FindingId};
use message_schema::limit::Rounds;
use message_schema::packet::Severity;
use review::{
    Act, GatePolicy, HandoffMode, HandoffPolicy, HumanPaths, LateFindings, Policy, Profile, Role,
    SpendBudget, SpendLimit, ThreadMode,
};

use super::Bounds;
use crate::describe::{Say, Slot};
use crate::inputs::{AUTHOR, PR, REVIEWER, THIRD, agent};

fn base(name: &'static str, rounds: u64) -> Bounds {
    let roles = |_: &str| BTreeSet::<Role>::new();
    let agents = [AUTHOR, REVIEWER, THIRD, "llama"].map(|name| (agent(name), roles(name)));
    let policy = Policy {
        agents: BTreeMap::from(agents),
        rounds: Rounds::new(rounds).expect("1 to 3 rounds"),
        ..Policy::default()
    };
    Bounds {
        name,
        policy,
        generations: 2,
        slots: &[Slot::P1],
        says: Say::ALL,
        odd: false,
        reviewers: &[REVIEWER],
        prs: &[PR],
        requests: TWO_HEADS,
        reports: &[
            "",
            "addressed_finding_ids: [F-1]",
            "addressed_finding_ids: [X]",
        ],
        supersedes: false,
        turns: 2,
        counts: false,
        pulls: false,
        pull_author: None,
        acts: Vec::new(),
        decisions: 0,
        crashes: false,
        fixes: 0,
    }
}

fn explicit(bounds: Bounds) -> Bounds {
    Bounds {
        policy: Policy {
            threads: ThreadMode::Explicit,
            ..bounds.policy
        },
        ..bounds
    }
}

fn late(bounds: Bounds) -> Bounds {
    Bounds {
        policy: Policy {
            late_findings: LateFindings::Defer,
            ..bounds.policy
        },
        ..bounds
    }
}

fn handoff(mode: HandoffMode, bounds: Bounds) -> Bounds {
    let handoff = HandoffPolicy {
        mode,
        threshold: Severity::P1,
        bots: BTreeSet::from(["fixer-bot".to_owned()]),
        target: Some(agent(THIRD)),
        verify_agents: BTreeSet::from([agent(AUTHOR)]),
        ..HandoffPolicy::default()
    };
    Bounds {
        policy: Policy {
            handoff,
            ..bounds.policy
        },
        pulls: true,
        ..bounds
    }
}

fn advisory(bounds: Bounds) -> Bounds {
    Bounds {
        policy: Policy {
            profile: Profile::Advisory,
            ..bounds.policy
        },
        ..bounds
    }
}

/// One thread with every saying.
fn talk(rounds: u64) -> Bounds {
    let reports: &[&str] = &["", "addressed_finding_ids: [X]"];
    Bounds {
        reports,
        odd: rounds < 3,
        ..base("talk", rounds)
    }
}

/// Requests with all options, and fewer sayings.
fn limits(rounds: u64) -> Bounds {
    let requests: &[&str] = &[
        "",
        "declared_head: aaaaaa1",
        "declared_head: aaaaaa2",
        "max_rounds: 1",
        "max_rounds: 3",
    ];
    let reports: &[&str] = &[
        "",
        "addressed_finding_ids: [F-1]",
        "touched_files: [beta.rs]",
    ];
    late(Bounds {
        requests,
        reports,
        says: Say::FEW,
        ..base("limits", rounds)
    })
}

/// Another reviewer, who gets the request if the first one's command fails.
fn fallback(rounds: u64) -> Bounds {
    let bounds = means(rounds, 1);
    Bounds {
        name: "fallback",
        policy: Policy {
            reviewers: [REVIEWER, THIRD].map(agent).into(),
            ..bounds.policy
        },
        reviewers: &[REVIEWER, THIRD],
        generations: 2,
        requests: ONE_HEAD,
        says: Say::MEANS,
        supersedes: false,
        ..bounds
    }
}

/// The reviewer's budgets: attempts, replacements, turns, takes.
fn means(rounds: u64, generations: u32) -> Bounds {
    let reports: &[&str] = &[""];
    Bounds {
        generations,
        reports,
        says: Say::MEANS,
        supersedes: true,
        counts: true,
        ..base("means", rounds)
    }
}

/// A token budget, which runs use up in any phase.
fn spend(generations: u32) -> Bounds {
    let walk = base("spend", 1);
    let per_review = SpendLimit {
        tokens: Some(2),
        micro_usd: None,
    };
    Bounds {
        generations,
        says: Say::FEW,
        requests: ONE_HEAD,
        reports: &[""],
        counts: true,
        turns: 1,
        policy: Policy {
            budget: SpendBudget {
                per_review,
                ..SpendBudget::default()
            },
            ..walk.policy
        },
        ..walk
    }
}

const TWO_PULLS: &[&str] = &[PR, "87"];
const ONE_HEAD: &[&str] = &["declared_head: aaaaaa1"];
const TWO_HEADS: &[&str] = &["declared_head: aaaaaa1", "declared_head: aaaaaa2"];

/// Two pull requests of an agent that gets the tasks itself: either may fix what the other left, naming no findings or
/// all. With an earlier task, both may name that one.
fn chain(fixes: usize, bounds: Bounds) -> Bounds {
    let walk = handoff(HandoffMode::Full, bounds);
    let requests: &[&str] = if fixes == 0 {
        &["handoff_ref: handoff-pr86-1", "handoff_ref: handoff-pr87-1"]
    } else {
        &["", "handoff_ref: packets/handoff/handoff-pr85-1.yaml"]
    };
    let policy = HandoffPolicy {
        target: Some(agent(AUTHOR)),
        ..walk.policy.handoff.clone()
    };
    Bounds {
        policy: Policy {
            handoff: policy,
            ..walk.policy
        },
        reports: &[""],
        says: Say::CHAIN,
        requests,
        fixes,
        ..walk
    }
}

/// Files that only a person may approve: one of the two requests changes them, and a plain request may.
fn human(bounds: Bounds) -> Bounds {
    let paths = HumanPaths::new(vec!["ci/".to_owned()]).expect("a pattern");
    let gate = GatePolicy {
        human_paths: paths,
        ..bounds.policy.gate.clone()
    };
    let requests: &[&str] = &[
        "declared_head: aaaaaa1\nchanged_files: [ci/build.yml]",
        "declared_head: aaaaaa2\nchanged_files: [alpha.rs]",
        "declared_head: aaaaaa3",
    ];
    Bounds {
        policy: Policy {
            gate,
            ..bounds.policy
        },
        requests,
        ..bounds
    }
}

/// Decisions of people. Between them, termination does not depend on people.
fn people(rounds: u64, decisions: u8) -> Bounds {
    let id = || FindingId::new("F-1").expect("an id");
    let acts = vec![
        Act::Reopen,
        Act::Cancel,
        Act::Grant { rounds: 1 },
        Act::Hold(id()),
        Act::Release(id()),
        Act::Resolve(id()),
        Act::WontFix(id()),
        Act::Queue(id()),
        Act::Approve { head: None },
        Act::Approve {
            head: CommitSha::new("aaaaaa2").ok(),
        },
    ];
    let reports: &[&str] = &[""];
    Bounds {
        acts,
        decisions,
        reports,
        says: Say::TALK,
        ..base("people", rounds)
    }
}

const EVERY_REPORT: &[&str] = &[
    "",
    "addressed_finding_ids: [F-1]",
    "addressed_finding_ids: [F-2]",
    "addressed_finding_ids: [F-3]",
    "addressed_finding_ids: [F-1, F-2]",
    "addressed_finding_ids: [F-1, F-3]",
    "addressed_finding_ids: [F-2, F-3]",
    "addressed_finding_ids: [X]",
];

/// Returns every walk, each small enough to finish.
pub fn all() -> Vec<Bounds> {
    let three: &[Slot] = &[Slot::P1, Slot::P1, Slot::P1];
    let two: &[Slot] = &[Slot::P1, Slot::P1];
    let mixed: &[Slot] = &[Slot::P0, Slot::P3];
    let judged: &[Slot] = &[Slot::P2, Slot::P3];
    let report: &[&str] = &[""];
    let touched: &[&str] = &["", "touched_files: [alpha.rs]"];
    let verify: &[&str] = &["declared_head: aaaaaa1", "run_trigger: verify"];
    let fix: &[&str] = &[
        "handoff_ref: handoff-pr85-1\ndeclared_head: aaaaaa1",
        "declared_head: aaaaaa2",
    ];
    let mut walks: Vec<Bounds> = (1..=3).map(talk).collect();
    walks.extend((1..=3).map(|rounds| explicit(talk(rounds))));
    walks.extend((1..=3).map(limits));
    walks.extend([
        means(1, 2),
        means(2, 2),
        means(3, 1),
        fallback(1),
        fallback(2),
    ]);
    walks.extend([
        Bounds {
            name: "three threads",
            generations: 1,
            slots: three,
            says: Say::SOME,
            reports: EVERY_REPORT,
            ..base("", 3)
        },
        Bounds {
            name: "three threads again",
            slots: three,
            says: Say::FEW,
            reports: report,
            ..base("", 3)
        },
        explicit(Bounds {
            name: "two threads",
            slots: two,
            says: Say::SOME,
            reports: report,
            ..base("", 3)
        }),
        Bounds {
            name: "mixed",
            slots: mixed,
            says: Say::FEW,
            reports: touched,
            ..base("", 3)
        },
        late(Bounds {
            name: "judged",
            slots: judged,
            says: Say::SOME,
            reports: touched,
            ..base("", 2)
        }),
        Bounds {
            name: "all generations",
            generations: 5,
            says: Say::FEW,
            reports: report,
            ..base("", 3)
        },
        Bounds {
            name: "two reviewers",
            reviewers: &[REVIEWER, THIRD],
            generations: 3,
            says: Say::FEW,
            reports: report,
            ..base("", 2)
        },
        people(3, 1),
        people(3, 2),
        human(Bounds {
            name: "a person's paths",
            says: Say::FEW,
            ..people(2, 2)
        }),
        advisory(Bounds {
            name: "advisory",
            slots: mixed,
            says: Say::SOME,
            reports: touched,
            ..base("", 2)
        }),
        handoff(
            HandoffMode::Off,
            Bounds {
                name: "handoff off",
                says: Say::MEANS,
                ..people(1, 1)
            },
        ),
        handoff(
            HandoffMode::Threshold,
            Bounds {
                name: "handoff threshold",
                slots: mixed,
                says: Say::MEANS,
                reports: report,
                ..base("", 2)
            },
        ),
        handoff(
            HandoffMode::Full,
            Bounds {
                name: "handoff full",
                requests: verify,
                reports: report,
                says: Say::FEW,
                ..base("", 2)
            },
        ),
        handoff(
            HandoffMode::Full,
            Bounds {
                name: "handoff, a bot's",
                pull_author: Some("fixer-bot"),
                says: Say::MEANS,
                ..people(1, 1)
            },
        ),
        Bounds {
            name: "fix",
            fixes: 2,
            slots: mixed,
            says: Say::FIX,
            requests: fix,
            reports: report,
            ..base("", 2)
        },
        Bounds {
            name: "fix and more",
            fixes: 1,
            slots: two,
            says: Say::FIX,
            requests: fix,
            reports: report,
            ..base("", 2)
        },
        chain(
            0,
            Bounds {
                name: "chain",
                prs: TWO_PULLS,
                generations: 1,
                ..base("", 1)
            },
        ),
        chain(
            1,
            Bounds {
                name: "two fixes",
                slots: two,
                prs: TWO_PULLS,
                generations: 1,
                ..base("", 1)
            },
        ),
        chain(
            1,
            Bounds {
                name: "claimed again",
                slots: two,
                ..base("", 1)
            },
        ),
        Bounds {
            name: "five reviews",
            fixes: 1,
            generations: 5,
            says: Say::FEW,
            requests: fix,
            reports: report,
            ..base("", 3)
        },
        Bounds {
            name: "crashes",
            crashes: true,
            says: Say::TALK,
            supersedes: true,
            reports: report,
            ..base("", 2)
        },
    ]);
    walks
}

/// Returns walks of every kind that a test finishes in a second or two.
pub fn small() -> Vec<Bounds> {
    let two: &[Slot] = &[Slot::P1, Slot::P1];
    let report: &[&str] = &[""];
    let fix: &[&str] = &[
        "handoff_ref: handoff-pr85-1\ndeclared_head: aaaaaa1",
        "declared_head: aaaaaa2",
    ];
    vec![
        Bounds {
            odd: false,
            requests: ONE_HEAD,
            ..talk(2)
        },
        limits(1),
        Bounds {
            counts: false,
            says: Say::FEW,
            ..means(1, 2)
        },
        Bounds {
            requests: ONE_HEAD,
            ..means(1, 1)
        },
        Bounds {
            generations: 1,
            ..fallback(1)
        },
        spend(1),
        explicit(Bounds {
            name: "two threads",
            slots: two,
            says: Say::FEW,
            reports: report,
            ..base("", 2)
        }),
        Bounds {
            says: Say::FEW,
            ..people(2, 1)
        },
        human(Bounds {
            name: "a person's paths",
            says: Say::MEANS,
            ..people(1, 1)
        }),
        advisory(Bounds {
            name: "advisory",
            says: Say::FEW,
            reports: report,
            ..base("", 1)
        }),
        handoff(
            HandoffMode::Full,
            Bounds {
                name: "handoff full",
                says: Say::FEW,
                reports: report,
                ..base("", 1)
            },
        ),
        handoff(
            HandoffMode::Full,
            Bounds {
                name: "handoff, a bot's",
                pull_author: Some("fixer-bot"),
                says: Say::MEANS,
                reports: report,
                ..base("", 1)
            },
        ),
        chain(
            0,
            Bounds {
                name: "chain",
                prs: TWO_PULLS,
                generations: 1,
                ..base("", 1)
            },
        ),
        chain(
            1,
            Bounds {
                name: "claimed again",
                slots: two,
                ..base("", 1)
            },
        ),
        Bounds {
            name: "fix",
            fixes: 1,
            generations: 3,
            requests: fix,
            says: Say::FEW,
            reports: report,
            ..base("", 2)
        },
        Bounds {
            name: "crashes",
            crashes: true,
            says: Say::FEW,
            reports: report,
            requests: ONE_HEAD,
            ..base("", 2)
        },
        Bounds {
            name: "all generations",
            generations: 5,
            says: Say::MEANS,
            reports: report,
            ..base("", 1)
        },
    ]
}
