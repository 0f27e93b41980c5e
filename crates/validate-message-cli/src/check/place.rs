//! Determines from a file's path whether it is a message, and in which workspace.
//!
//! Names alone decide, so that a file in git's index and one on the disk get the same answer.

use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

/// The directories of an agent that hold messages. A refused message (`dead_letter`) was judged already, and its
/// reports are no messages.
const MAILBOXES: [&str; 4] = ["inbox", "outbox", "sent", "archive"];

/// Returns the working directory. Asks for it once per process: ten thousand files are checked from one directory.
fn here() -> Option<&'static Path> {
    static HERE: OnceLock<Option<PathBuf>> = OnceLock::new();
    HERE.get_or_init(|| std::env::current_dir().ok()).as_deref()
}

/// Returns the absolute path.
pub(crate) fn absolute(path: &Path) -> io::Result<PathBuf> {
    match here() {
        Some(here) if path.is_relative() && !path.as_os_str().is_empty() => {
            std::path::absolute(here.join(path))
        }
        Some(_) | None => std::path::absolute(path),
    }
}

/// Returns whether the file has the name of a message.
pub(crate) fn is_named_as_message(path: &Path) -> bool {
    let is_hidden = path
        .file_name()
        .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    let extension = path.extension().and_then(|extension| extension.to_str());
    !is_hidden && extension.is_some_and(|extension| matches!(extension, "yaml" | "yml" | "json"))
}

/// Returns whether the file is where reviewers keep their findings packets, below `packets/findings`.
pub(crate) fn is_among_findings(path: &Path) -> bool {
    path.ancestors()
        .skip(1)
        .any(|directory| directory.ends_with("packets/findings"))
}

/// Returns whether it is a directory in which the daemon keeps packets of its own: briefs and tasks.
pub(crate) fn is_the_daemons(directory: &Path) -> bool {
    directory.ends_with("packets/briefs") || directory.ends_with("packets/handoff")
}

/// Returns the workspace around a file or directory in an agent's mailbox, such as `agents/<agent>/outbox`.
pub(crate) fn workspace_around_mailbox(path: &Path) -> Option<&Path> {
    path.ancestors().find_map(|mailbox| {
        let is_mailbox = mailbox.file_name().is_some_and(|name| MAILBOXES.iter().any(|known| name == *known));
        let agents = mailbox.parent()?.parent()?;
        let is_of_agent =
            matches!(agents.components().next_back(), Some(Component::Normal(name)) if name == "agents");
        (is_mailbox && is_of_agent).then(|| agents.parent()).flatten()
    })
}

/// Returns whether the daemon delivers into the file's directory, or its reader archives finished messages there.
pub(crate) fn is_behind_the_daemon(path: &Path) -> bool {
    let directory = path.parent().and_then(|directory| {
        // A bare name does not say in which directory it is.
        let is_here = directory.components().all(|part| part == Component::CurDir);
        if is_here { here() } else { Some(directory) }
    });
    directory
        .and_then(Path::file_name)
        .is_some_and(|name| name == "inbox" || name == "archive")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mailbox_says_where_its_workspace_is() {
        let around = |path| workspace_around_mailbox(Path::new(path)).and_then(Path::to_str);
        assert_eq!(around("agents/a/outbox/x.yaml"), Some(""));
        assert_eq!(
            around("mail/room/agents/a/inbox/archive/x.yaml"),
            Some("mail/room")
        );
        assert_eq!(around("/r/agents/a/sent"), Some("/r"));
        assert_eq!(around("agents/a/dead_letter/x.yaml"), None);
        assert_eq!(around("agents/outbox/x.yaml"), None);
        assert_eq!(around("packets/valid/inbox/x.yaml"), None);
    }

    #[test]
    fn findings_lie_below_their_directory() {
        let is = |path| is_among_findings(Path::new(path));
        assert!(is("packets/findings/r1.yaml") && is("/r/packets/findings/a/r1.yaml"));
        assert!(!is("packets/r1.yaml") && !is("packets/findings") && !is("findings/r1.yaml"));
        assert!(!is("my_packets/findings/r1.yaml"));
    }

    #[test]
    fn dotfiles_and_other_endings_are_no_messages() {
        assert!(
            ["a.yaml", "x/a.yml", "a.b.json"]
                .iter()
                .all(|name| is_named_as_message(Path::new(name)))
        );
        assert!(
            [".a.yaml", "a.yaml.tmp", "a.YAML", "yaml", "a"]
                .iter()
                .all(|name| !is_named_as_message(Path::new(name)))
        );
    }
}
