//! Random play by every agent at the table: whatever they send, the rank falls with each accepted message and never
//! rises, the bound on messages holds, and replay gives the same state.

use crate::table::{Note, Table, claude, codex};
use message_schema::limit::Rounds;
use proptest::prelude::*;
use review::messages_max;

/// One attempted move; most are illegal.
#[derive(Clone, Debug)]
enum Play {
    Request {
        head: u8,
    },
    Supersede,
    Feedback {
        round: u32,
        findings: String,
        escalate: bool,
    },
    Addressed {
        round: u32,
        all: bool,
    },
    Lgtm {
        findings: Option<String>,
    },
    Swapped,
    Third,
}

fn findings() -> impl Strategy<Value = String> {
    let finding = (
        prop::sample::select(vec!["F-1", "F-2", "F-3"]),
        prop::sample::select(vec!["P0", "P1", "P3"]),
        prop::sample::select(vec!["open", "fixed", "not_fixed"]),
        prop::sample::select(vec![
            "",
            " action: resolve",
            " action: veto",
            " action: reply",
            " action: escalate",
        ]),
    );
    prop::collection::btree_map(
        Just(()).prop_flat_map(|()| prop::sample::select(vec![0, 1, 2])),
        finding,
        0..3,
    )
    .prop_map(|findings| {
        let mut used = std::collections::BTreeSet::new();
        findings
            .values()
            .filter(|(id, ..)| used.insert(*id))
            .map(|(id, severity, status, action)| format!("{id} {severity} {status}{action}\n"))
            .collect()
    })
}

fn play() -> impl Strategy<Value = Play> {
    prop_oneof![
        4 => (0..6_u8).prop_map(|head| Play::Request { head }),
        1 => Just(Play::Supersede),
        4 => (1..5_u32, findings(), prop::bool::weighted(0.1))
            .prop_map(|(round, findings, escalate)| Play::Feedback { round, findings, escalate }),
        4 => (1..5_u32, any::<bool>()).prop_map(|(round, all)| Play::Addressed { round, all }),
        2 => prop::option::of(findings()).prop_map(|findings| Play::Lgtm { findings }),
        1 => Just(Play::Swapped),
        1 => Just(Play::Third),
    ]
}

fn make(table: &mut Table, play: &Play) -> bool {
    let lgtm = "quality_gate_result: pass\nmerge_ready: true";
    let said = match play {
        Play::Request { head } => table.request_with(&format!("declared_head: aaaaaa{head}")),
        Play::Supersede => table.supersede(),
        Play::Feedback {
            round,
            findings,
            escalate,
        } => {
            let fields = if *escalate { "escalation: stuck" } else { "" };
            table.feedback_with(*round, fields, findings)
        }
        Play::Addressed { round, all } => {
            table.addressed(*round, if *all { &[] } else { &["F-1"] })
        }
        Play::Lgtm { findings } => table.lgtm("", findings.as_deref()),
        Play::Swapped => table.send(&Note {
            from: "claude",
            to: "codex",
            body: lgtm,
            ..codex("review_lgtm")
        }),
        Play::Third => table.send(&Note {
            from: "gemini",
            body: "pr: 86\nbranch: b\ndiff_summary: s",
            ..claude("review_request")
        }),
    };
    said.is_ok()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_rank_falls_with_every_accepted_message(
        rounds in 1..=3_u64,
        plays in prop::collection::vec(play(), 1..60),
        share in 0.0..=1.0_f64,
    ) {
        let mut table = Table::default();
        table.policy.rounds = Rounds::new(rounds).expect("1 to 3");
        let mut accepted_of_generation = (0, 0);
        for play in &plays {
            let before = table.rank();
            let state = table.state.clone();
            let accepted = make(&mut table, play);
            let after = table.rank();
            if let Some((key, review)) = state.reviews().next() {
                let now = table.state.review(key).expect("reviews stay");
                if now.generation == review.generation {
                    prop_assert!(review.run().go(now.run()).is_ok(), "{play:?}: {:?} -> {:?}", review.run(), now.run());
                }
            }
            if accepted {
                prop_assert!(after < before, "{play:?} was accepted: {before:?} -> {after:?}");
                let generation = table.review().generation;
                let (of, count) = accepted_of_generation;
                accepted_of_generation = (generation, if of == generation { count + 1 } else { 1 });
                prop_assert!(accepted_of_generation.1 <= messages_max(table.review().rounds));
            } else {
                prop_assert!(after <= before, "{play:?} was refused: {before:?} -> {after:?}");
                if after == before {
                    prop_assert_eq!(
                        table.state.reviews().collect::<Vec<_>>(),
                        state.reviews().collect::<Vec<_>>(),
                        "a refusal that costs nothing changes no review"
                    );
                }
            }
        }
        prop_assert_eq!(table.replayed(), table.state.clone());
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "an index")]
        let taken_after = (table.records.len() as f64 * share) as usize;
        prop_assert_eq!(table.restored(taken_after), table.state);
    }
}
