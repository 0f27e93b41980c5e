//! The run view (`docs/protocol.md`, section 7): the five states of a run, the eight transitions between them, and each
//! generation of a review seen as a run. `machine` decides what moves a pair of commands through them.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RunState {
    /// Created; nothing runs yet.
    Init,
    /// The author works.
    Working,
    /// The reviewer reviews.
    Reviewing,
    /// Ended successfully.
    Complete,
    /// Ended without success.
    Failed,
}

/// An attempt to move a run to a state that it cannot reach from its own (`invalid_transition`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidTransition {
    /// The state it is in.
    pub from: RunState,
    /// The state it should have entered.
    pub to: RunState,
}

impl fmt::Display for InvalidTransition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a run cannot go from {} to {}",
            self.from.word(),
            self.to.word()
        )
    }
}

impl std::error::Error for InvalidTransition {}

impl RunState {
    /// Every state, in the order of the protocol.
    pub const ALL: [Self; 5] = [
        Self::Init,
        Self::Working,
        Self::Reviewing,
        Self::Complete,
        Self::Failed,
    ];

    /// Returns the state's name in the loop.
    pub fn word(self) -> &'static str {
        match self {
            Self::Init => "init",
            Self::Working => "working",
            Self::Reviewing => "reviewing",
            Self::Complete => "complete",
            Self::Failed => "failed",
        }
    }

    /// Returns the name under which it is stored.
    pub fn stored(self) -> &'static str {
        match self {
            Self::Init => "submitted",
            Self::Working => "working",
            Self::Reviewing => "reviewing",
            Self::Complete => "completed",
            Self::Failed => "failed",
        }
    }

    /// Reads a stored name; an unknown one is a failed run.
    pub fn from_stored(name: &str) -> Self {
        Self::ALL
            .into_iter()
            .find(|run| run.stored() == name)
            .unwrap_or(Self::Failed)
    }

    /// Reads a loop name; `None` for any other word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|run| run.word() == word)
    }

    /// True if no state follows.
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Complete | Self::Failed => true,
            Self::Init | Self::Working | Self::Reviewing => false,
        }
    }

    /// Returns the states that a run can enter from here.
    pub fn successors(self) -> &'static [Self] {
        match self {
            Self::Init => &[Self::Working, Self::Failed],
            Self::Working => &[Self::Reviewing, Self::Complete, Self::Failed],
            Self::Reviewing => &[Self::Working, Self::Complete, Self::Failed],
            Self::Complete | Self::Failed => &[],
        }
    }

    /// Moves to a state. Moving to the current state changes nothing.
    pub fn go(self, to: Self) -> Result<Self, InvalidTransition> {
        if self == to || self.successors().contains(&to) {
            Ok(to)
        } else {
            Err(InvalidTransition { from: self, to })
        }
    }
}

/// Serialized as its stored name.
impl Serialize for RunState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.stored())
    }
}

impl<'de> Deserialize<'de> for RunState {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        std::borrow::Cow::<str>::deserialize(deserializer).map(|name| Self::from_stored(&name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_eight_transitions_and_no_other() {
        let legal: Vec<(&str, &str)> = RunState::ALL
            .into_iter()
            .flat_map(|from| RunState::ALL.into_iter().map(move |to| (from, to)))
            .filter(|(from, to)| from != to && from.go(*to).is_ok())
            .map(|(from, to)| (from.word(), to.word()))
            .collect();
        let expected = [
            ("init", "working"),
            ("init", "failed"),
            ("working", "reviewing"),
            ("working", "complete"),
            ("working", "failed"),
            ("reviewing", "working"),
            ("reviewing", "complete"),
            ("reviewing", "failed"),
        ];
        assert_eq!(legal, expected);
    }

    #[test]
    fn the_same_state_again_is_no_transition() {
        assert!(RunState::ALL.into_iter().all(|run| run.go(run) == Ok(run)));
    }

    #[test]
    fn an_unknown_stored_name_is_a_failed_run() {
        assert!(
            RunState::ALL
                .into_iter()
                .all(|run| RunState::from_stored(run.stored()) == run)
        );
        assert_eq!(
            RunState::from_stored("complete"),
            RunState::Failed,
            "that is the loop's name, not the stored one"
        );
        assert_eq!(RunState::from_stored(""), RunState::Failed);
    }

    #[test]
    fn a_state_has_a_name_in_the_loop_and_one_in_the_ledger() {
        let names: Vec<_> = RunState::ALL
            .into_iter()
            .map(|run| (run.word(), run.stored(), run.is_terminal()))
            .collect();
        let expected = [
            ("init", "submitted", false),
            ("working", "working", false),
            ("reviewing", "reviewing", false),
            ("complete", "completed", true),
            ("failed", "failed", true),
        ];
        assert_eq!(names, expected);
        for run in RunState::ALL {
            assert_eq!(RunState::from_word(run.word()), Some(run));
        }
        assert_eq!(RunState::from_word("submitted"), None, "a stored name");
    }

    #[test]
    fn an_illegal_transition_names_both_states() {
        let refused = RunState::Complete.go(RunState::Working);
        let text = refused.map_err(|illegal| illegal.to_string());
        assert_eq!(
            text,
            Err("a run cannot go from complete to working".to_owned())
        );
    }
}
