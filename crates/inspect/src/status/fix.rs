//! The command that fixes something, and who has to run it.

use message_schema::id::AgentName;
use review::ReviewKey;
use serde::Serialize;

/// Writes a command of ours as it is run in this workspace: by an agent, or by a person.
pub type Spell<'a> = dyn Fn(Option<&AgentName>, &str) -> String + 'a;

/// A command, for somebody. Fields are added, never changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FixCommand {
    /// An agent's name, `person` (a decision), or `operator` (who runs the daemon).
    pub actor: String,
    /// The command.
    pub run: String,
    /// The effect of the command.
    pub effect: String,
    /// The words in it that have to be replaced first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fill: Vec<&'static str>,
}

/// Placeholders that only the user of the command can fill in.
const BLANKS: [&str; 4] = ["FILE", "SHA", "TEXT", "BRANCH"];

/// Spells the commands of one workspace.
pub struct FixCommands<'a>(pub &'a Spell<'a>);

impl FixCommands<'_> {
    /// A command for an agent.
    pub fn agent(&self, agent: &AgentName, words: &str, effect: impl Into<String>) -> FixCommand {
        fix(
            agent.to_string(),
            (self.0)(Some(agent), words),
            effect.into(),
        )
    }

    /// A command for the person who decides.
    pub fn person(&self, words: &str, effect: impl Into<String>) -> FixCommand {
        fix("person".to_owned(), (self.0)(None, words), effect.into())
    }

    /// Something else than a command of ours, for the operator.
    pub fn by_hand(run: String, effect: impl Into<String>) -> FixCommand {
        fix("operator".to_owned(), run, effect.into())
    }

    /// A command for the operator.
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

/// The review's name on a person's command line: the number, and the reviewer where there are several.
pub fn named(key: &ReviewKey, is_alone: bool) -> String {
    if is_alone {
        return key.pr.to_string();
    }
    format!("{} --reviewer {}{}", key.pr, key.reviewer, of_repo(key))
}

/// The pull request as options: `--pr 86`, and the repository where it has one.
pub fn of_pr(key: &ReviewKey) -> String {
    format!("--pr {}{}", key.pr, of_repo(key))
}

/// The repository as an option, with a blank before it; nothing where there is none.
pub(crate) fn of_repo(key: &ReviewKey) -> String {
    key.repo
        .as_ref()
        .map_or_else(String::new, |repo| format!(" --repo {repo}"))
}
