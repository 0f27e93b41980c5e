//! Lists the legal actions on a thread for every reachable value of its counters.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use message_schema::packet::{Action, Stance};
use review::{Dialogue, REPLIES_MAX, RoundKind, Thread, ThreadState};

pub(super) fn section() -> String {
    let reached = reached();
    let mut text = String::from(
        "\n## Legal actions on an open thread\n\nBy its counters: `round_count` is how often the stance was repeated in a row, `replies` how many were\n\
         given. Resolve, veto and escalate are always legal; the table says when reply is. Resolve closes a\n\
         thread, veto and escalate hand it to a person; on a thread that is not open no action is legal, but a\n\
         resolved one can be opened again, once, and then only be escalated.\n\n\
         | round_count | replies | same stance | other stance | last round |\n|---|---|---|---|---|\n",
    );
    for (round_count, replies) in reached {
        let thread = thread(Stance::SeeksChange, round_count, replies);
        let says = |stance, round_kind| {
            let legal = thread.legal_actions(stance, round_kind);
            if legal.contains(&Action::Reply) {
                "reply"
            } else {
                "no reply"
            }
        };
        let _ = writeln!(
            text,
            "| {round_count} | {replies} | {} | {} | {} |",
            says(Stance::SeeksChange, RoundKind::Earlier),
            says(Stance::Accepts, RoundKind::Earlier),
            says(Stance::SeeksChange, RoundKind::Last)
        );
    }
    let _ = writeln!(
        text,
        "\nA thread alone, without any limit of rounds, is discussed in at most {} cycles after the one that opened\n\
         it ({} if the stance never changes), opened again included. Without the limit of {REPLIES_MAX} replies there is no such\n\
         number: a stance that changes with every cycle never counts beyond 0.",
        longest(&STANCES),
        longest(&[Stance::SeeksChange])
    );
    text
}

fn thread(stance: Stance, round_count: u8, replies: u8) -> Thread {
    Thread::discussed(Dialogue {
        stance,
        round_count,
        replies,
    })
}

const STANCES: [Stance; 2] = [Stance::SeeksChange, Stance::Accepts];

/// The counters an open thread can have, in order.
fn reached() -> BTreeSet<(u8, u8)> {
    let mut seen = BTreeMap::new();
    let mut open = vec![thread(Stance::SeeksChange, 0, 0)];
    while let Some(thread) = open.pop() {
        let Dialogue {
            stance,
            round_count,
            replies,
        } = thread.dialogue;
        if seen.insert((round_count, replies, stance), ()).is_some() {
            continue;
        }
        for stance in STANCES {
            if thread
                .legal_actions(stance, RoundKind::Earlier)
                .contains(&Action::Reply)
            {
                open.push(thread.after(Action::Reply, stance));
            }
        }
    }
    seen.into_keys()
        .map(|(round_count, replies, _)| (round_count, replies))
        .collect()
}

/// The most cycles that a thread can take until it closes permanently, if its reviewer takes only these stances: the
/// longest path through its actions, and another one after a reopening.
fn longest(stances: &[Stance]) -> u32 {
    fn cycles(thread: &Thread, stances: &[Stance]) -> u32 {
        let ends = |stance: Stance, action| 1 + after(&thread.after(action, stance), stances);
        stances
            .iter()
            .flat_map(|&stance| {
                thread
                    .legal_actions(stance, RoundKind::Earlier)
                    .iter()
                    .map(move |action| (stance, *action))
            })
            .map(|(stance, action)| ends(stance, action))
            .max()
            .unwrap_or(0)
    }
    fn after(thread: &Thread, stances: &[Stance]) -> u32 {
        match thread.state {
            ThreadState::Open => cycles(thread, stances),
            // Reopening takes a cycle without an action.
            ThreadState::Resolved if !thread.was_reopened() => {
                let again = thread.raised_again(ThreadState::Open);
                1 + cycles(&again, stances)
            }
            // A thread that was resolved a second time can only be escalated.
            ThreadState::Resolved => 1,
            ThreadState::Held(_) | ThreadState::Deferred => 0,
        }
    }
    cycles(&thread(Stance::SeeksChange, 0, 0), stances)
}
