//! Real reviews, brought to an open request by random legal moves.

use message_schema::id::FindingId;
use message_schema::limit::Rounds;
use message_schema::packet::Stance;
use proptest::prelude::*;
use review::{Act, Phase, Profile, ThreadMode};

use super::decide;
use crate::table::Table;

/// Moves, each picked among those that are possible when it is made.
#[derive(Clone, Debug)]
pub(super) struct Play {
    rounds: u64,
    explicit: bool,
    advisory: bool,
    findings: Vec<&'static str>,
    cycles: Vec<Cycle>,
}

#[derive(Clone, Debug)]
struct Cycle {
    /// The legal action and the stance for each thread, by index.
    deals: Vec<(usize, bool)>,
    /// True if the response reopens a resolved thread.
    back: bool,
    /// The author's report: nothing, one finding, or all.
    report: u8,
    /// A person's decision about a thread: hold, resolve, or none.
    person: u8,
}

const FINDINGS: [&str; 5] = [
    "P0 open ",
    "P1 open ",
    "P2 open blocking: true; ",
    "P2 open blocking: false; ",
    "P3 open ",
];

pub(super) fn play() -> impl Strategy<Value = Play> {
    let deals = prop::collection::vec((0..4_usize, any::<bool>()), 4);
    let cycle = (deals, prop::bool::weighted(0.3), 0..3_u8, 0..8_u8).prop_map(
        |(deals, back, report, person)| Cycle {
            deals,
            back,
            report,
            person,
        },
    );
    (
        1..=3_u64,
        any::<bool>(),
        prop::bool::weighted(0.2),
        prop::collection::vec(prop::sample::select(FINDINGS.to_vec()), 0..4),
        prop::collection::vec(cycle, 0..5),
    )
        .prop_map(|(rounds, explicit, advisory, findings, cycles)| Play {
            rounds,
            explicit,
            advisory,
            findings,
            cycles,
        })
}

impl Play {
    /// Returns the table with an open request at the end; `None` if the moves lead to none.
    pub(super) fn table(&self) -> Option<Table> {
        let mut table = Table::default();
        table.policy.rounds = Rounds::new(self.rounds).expect("1 to 3");
        table.policy.threads = if self.explicit {
            ThreadMode::Explicit
        } else {
            ThreadMode::Inferred
        };
        table.policy.profile = if self.advisory {
            Profile::Advisory
        } else {
            Profile::Gate
        };
        table.request().expect("opens");
        for (number, cycle) in self.cycles.iter().enumerate() {
            let findings = if number == 0 {
                self.opening()
            } else {
                cycle.findings(&table)
            };
            let round = table.review().round;
            let news = format!("N-{number:03} P3 open title: news {number}; file: n{number}.rs\n");
            // A feedback that resolves everything and raises nothing is refused.
            table
                .feedback(round, &findings)
                .or_else(|_| table.feedback(round, &(findings.clone() + &news)))
                .unwrap_or_else(|codes| panic!("{codes:?}:\n{findings}"));
            cycle.go_on(&mut table)?;
        }
        Some(table)
    }

    fn opening(&self) -> String {
        let lines = self.findings.iter().enumerate();
        lines
            .map(|(n, finding)| format!("F-{n:03} {finding}title: finding {n}; file: f{n}.rs\n"))
            .collect()
    }
}

/// Returns the line of a finding whose thread has a title of its own; only a P2 states whether it blocks.
fn line(id: &FindingId, thread: &review::Thread, more: &str) -> String {
    let blocking = match thread.severity.as_str() {
        "P2" => format!("blocking: {}; ", thread.blocking),
        _ => String::new(),
    };
    format!("{id} {} open {blocking}{more}\n", thread.severity)
}

impl Cycle {
    fn findings(&self, table: &Table) -> String {
        let review = table.review();
        let round_kind = review.round_kind();
        let mut text = String::new();
        for ((id, thread), (pick, seeks)) in review.open_threads().zip(&self.deals) {
            let stance = if *seeks {
                Stance::SeeksChange
            } else {
                Stance::Accepts
            };
            let legal = thread.legal_actions(stance, round_kind);
            // Replies make a review long.
            let action = legal[legal.len() - 1 - pick % legal.len()];
            text += &line(id, thread, &format!("stance: {stance}; action: {action}"));
        }
        let resolved = |thread: &review::Thread| thread.state == review::ThreadState::Resolved;
        let back = review
            .threads
            .iter()
            .filter(|(_, t)| resolved(t) && !t.is_settled_for_good());
        text + &back
            .filter(|_| self.back)
            .map(|(id, thread)| line(id, thread, "evidence: it is back"))
            .collect::<String>()
    }

    /// Leads to the next open request, if necessary through a person who reopens the review.
    fn go_on(&self, table: &mut Table) -> Option<()> {
        let ids: Vec<FindingId> = table
            .review()
            .open_threads()
            .map(|(id, _)| id.clone())
            .collect();
        if let Some(id) = ids.first() {
            match self.person {
                0 => decide(table, Act::Hold(id.clone())),
                1 => decide(table, Act::Resolve(id.clone())),
                _ => {}
            }
        }
        let review = table.review();
        if review.phase.is_final() || review.is_last(review.round) {
            if !review.phase.is_final() {
                return None;
            }
            decide(table, Act::Reopen);
        }
        if matches!(table.review().phase, Phase::Fixing { .. })
            && (self.report > 0 || table.review().open_blockers() > 0)
        {
            let named: Vec<&str> = ids
                .iter()
                .take(usize::from(self.report % 2))
                .map(FindingId::as_str)
                .collect();
            let round = table.review().round;
            table.addressed(round, &named).ok()?;
        }
        table.request().ok().map(|_| ())
    }
}
