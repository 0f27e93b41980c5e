//! Writes our commands as answers suggest them, for a shell.

use std::path::Path;

use message_schema::id::AgentName;
pub use runner::shell::quoted;

/// A command of ours, with the workspace and the agent if they are given; a person's command has no agent.
pub fn settled(words: &str, root: Option<&Path>, agent: Option<&AgentName>) -> String {
    let root = root.map_or_else(String::new, |root| {
        format!(" --root {}", quoted(root.as_os_str()))
    });
    let agent = agent.map_or_else(String::new, |agent| format!(" --agent {agent}"));
    format!("settled {words}{root}{agent}")
}

#[cfg(test)]
mod tests {
    use super::*;

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
