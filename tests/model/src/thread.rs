//! One thread alone, without a limit on rounds: its own rules end it. And the stance rule as it was published, without
//! a count of replies, which does not.

use message_schema::packet::{Action, Stance};
use review::{Dialogue, REPLIES_MAX, RoundKind, Thread};
use stateright::{Checker, HasDiscoveries, Model, Property};

use crate::invariants::rank;

/// The count of replies in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replies {
    /// The daemon's count.
    Counted,
    /// No count, as in the published rule: same stance + 1, else 0, `reply` below 2.
    Forgotten,
}

/// A thread, and true if the last step lowered its rank.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Talk {
    thread: Thread,
    is_falling: bool,
}

/// A walk of one thread.
struct Alone(Replies);

impl Model for Alone {
    type State = Talk;
    type Action = (Action, Stance);

    fn init_states(&self) -> Vec<Talk> {
        [Stance::SeeksChange, Stance::Accepts]
            .map(|stance| Talk {
                thread: opened(stance),
                is_falling: true,
            })
            .to_vec()
    }

    fn actions(&self, talk: &Talk, steps: &mut Vec<(Action, Stance)>) {
        for stance in [Stance::SeeksChange, Stance::Accepts] {
            let legal = talk.thread.legal_actions(stance, RoundKind::Earlier);
            steps.extend(legal.iter().map(|action| (*action, stance)));
        }
    }

    fn next_state(&self, talk: &Talk, (action, stance): (Action, Stance)) -> Option<Talk> {
        let mut thread = talk.thread.after(action, stance);
        if self.0 == Replies::Forgotten {
            thread.dialogue.replies = 0;
        }
        let is_bounded = thread.dialogue.replies <= REPLIES_MAX;
        Some(Talk {
            is_falling: is_bounded && rank(&thread) < rank(&talk.thread),
            thread,
        })
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always(
            "the thread's rank falls with every action",
            |_, talk: &Talk| talk.is_falling,
        )]
    }
}

/// Walks a thread through all legal actions of its reviewer. Returns the number of states, and a path to a step that
/// does not lower its rank, if one exists.
pub fn alone(replies: Replies) -> (usize, Option<Vec<(Action, Stance)>>) {
    let walk = Alone(replies)
        .checker()
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    let way = walk
        .discoveries()
        .into_values()
        .next()
        .map(|path| path.into_actions());
    (walk.unique_state_count(), way)
}

/// Follows a sequence of replies from a thread opened with `seeks_change`, while each is legal and none leads to an
/// earlier thread. Returns the threads, and whether the sequence ended by a repetition.
pub fn follow(replies: Replies, stances: impl IntoIterator<Item = Stance>) -> (Vec<Thread>, bool) {
    let mut seen = vec![opened(Stance::SeeksChange)];
    for stance in stances {
        let last = seen.last().expect("the thread that was opened");
        if !last
            .legal_actions(stance, RoundKind::Earlier)
            .contains(&Action::Reply)
        {
            return (seen, false);
        }
        let mut next = last.after(Action::Reply, stance);
        if replies == Replies::Forgotten {
            next.dialogue.replies = 0;
        }
        if seen.contains(&next) {
            return (seen, true);
        }
        seen.push(next);
    }
    (seen, false)
}

fn opened(stance: Stance) -> Thread {
    Thread::discussed(Dialogue {
        stance,
        round_count: 0,
        replies: 0,
    })
}
