//! Quotes words for a shell, in the commands that answers suggest.

use std::ffi::OsStr;
use std::path::Path;

use message_schema::id::AgentName;

/// A command of ours, with the workspace and the agent if they are given; a person's command has no agent.
pub fn settled(words: &str, root: Option<&Path>, agent: Option<&AgentName>) -> String {
    let root = root.map_or_else(String::new, |root| {
        format!(" --root {}", quoted(root.as_os_str()))
    });
    let agent = agent.map_or_else(String::new, |agent| format!(" --agent {agent}"));
    format!("settled {words}{root}{agent}")
}

/// Quotes a word so that a shell takes it as one.
pub fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.into_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_where_a_shell_would_take_it_apart() {
        let quoted = |word: &str| quoted(word.as_ref());
        assert_eq!(quoted("./mailroom"), "./mailroom");
        assert_eq!(quoted("my mail"), "'my mail'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn a_command_names_the_workspace_and_the_agent_that_are_given() {
        let agent: AgentName = "codex".parse().expect("a name");
        let root = Path::new("my mail");
        for (root, agent, command) in [
            (None, None, "settled why 86"),
            (Some(root), None, "settled why 86 --root 'my mail'"),
            (None, Some(&agent), "settled why 86 --agent codex"),
            (
                Some(root),
                Some(&agent),
                "settled why 86 --root 'my mail' --agent codex",
            ),
        ] {
            assert_eq!(settled("why 86", root, agent), command);
        }
    }
}
