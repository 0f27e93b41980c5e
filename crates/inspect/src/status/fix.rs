//! The command that fixes something, and who has to run it.

use message_schema::id::AgentName;
use review::ReviewKey;
use serde::Serialize;

/// Spells one of our commands for an agent or, without one, for a person.
pub type Spell<'a> = dyn Fn(Option<&AgentName>, &str) -> String + 'a;

/// A command for somebody to run. Fields are added, never changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FixCommand {
    /// An agent's name, `person` (who decides), or `operator` (who runs the daemon).
    pub actor: String,
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
        fix(
            agent.to_string(),
            (self.0)(Some(agent), words),
            effect.into(),
        )
    }

    /// Makes a command for the person who decides.
    pub fn person(&self, words: &str, effect: impl Into<String>) -> FixCommand {
        fix("person".to_owned(), (self.0)(None, words), effect.into())
    }

    /// Makes a step for the operator that is not one of our commands.
    pub fn by_hand(run: String, effect: impl Into<String>) -> FixCommand {
        fix("operator".to_owned(), run, effect.into())
    }

    /// Makes a command for the operator.
    pub fn operator(&self, words: &str, effect: impl Into<String>) -> FixCommand {
        fix("operator".to_owned(), (self.0)(None, words), effect.into())
    }
}

fn fix(actor: String, run: String, effect: String) -> FixCommand {
    let blank = |word: &str| BLANKS.into_iter().find(|blank| *blank == word);
    let fill = run.split(' ').filter_map(blank).collect();
    FixCommand {
        actor,
        run,
        effect,
        fill,
    }
}

/// Names the review on a person's command line: by number, and by reviewer where there are several.
pub fn named(key: &ReviewKey, is_alone: bool) -> String {
    if is_alone {
        return key.pr.to_string();
    }
    format!("{} --reviewer {}{}", key.pr, key.reviewer, of_repo(key))
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
