//! The command that fixes something, and who has to run it.

use std::fmt;

use message_schema::id::AgentName;
use review::ReviewKey;
use serde::{Serialize, Serializer};

/// Spells one of our commands for an agent or, without one, for a person.
pub type Spell<'a> = dyn Fn(Option<&AgentName>, &str) -> String + 'a;

/// The actor that has to run a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Actor {
    /// This agent.
    Agent(AgentName),
    /// The person who decides.
    Person,
    /// The person who runs the daemon.
    Operator,
}

impl Actor {
    /// Returns an agent's name, `person` or `operator`.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Agent(agent) => agent.as_str(),
            Self::Person => "person",
            Self::Operator => "operator",
        }
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for Actor {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

/// A command for somebody to run. Fields are added, never changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FixCommand {
    /// The actor that has to run it.
    pub actor: Actor,
    /// The command.
    pub run: String,
    /// The effect of the command.
    pub effect: String,
    /// The words in it that its user has to replace first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fill: Vec<&'static str>,
}

/// Placeholders that only the command's user can fill in.
const BLANKS: [&str; 4] = ["FILE", "SHA", "TEXT", "BRANCH"];

/// Spells the commands of one workspace.
pub struct FixCommands<'a>(pub &'a Spell<'a>);

impl FixCommands<'_> {
    /// Makes a command for an agent.
    pub fn agent(&self, agent: &AgentName, words: &str, effect: impl Into<String>) -> FixCommand {
        let actor = Actor::Agent(agent.clone());
        fix(actor, (self.0)(Some(agent), words), effect.into())
    }

    /// Makes a command for the person who decides.
    pub fn person(&self, words: &str, effect: impl Into<String>) -> FixCommand {
        fix(Actor::Person, (self.0)(None, words), effect.into())
    }

    /// Makes a step for the operator that is not one of our commands.
    pub fn by_hand(run: String, effect: impl Into<String>) -> FixCommand {
        fix(Actor::Operator, run, effect.into())
    }

    /// Makes a command for the operator.
    pub fn operator(&self, words: &str, effect: impl Into<String>) -> FixCommand {
        fix(Actor::Operator, (self.0)(None, words), effect.into())
    }
}

fn fix(actor: Actor, run: String, effect: String) -> FixCommand {
    let blank = |word: &str| BLANKS.into_iter().find(|blank| *blank == word);
    let fill = run.split(' ').filter_map(blank).collect();
    FixCommand {
        actor,
        run,
        effect,
        fill,
    }
}

/// Spells the pull request as options: `--pr 86`, and the repository where it has one.
pub fn of_pr(key: &ReviewKey) -> String {
    format!("--pr {}{}", key.pr, of_repo(key))
}

/// Spells the repository as an option after a blank; empty where there is none.
pub(crate) fn of_repo(key: &ReviewKey) -> String {
    key.repo
        .as_ref()
        .map_or_else(String::new, |repo| format!(" --repo {repo}"))
}
