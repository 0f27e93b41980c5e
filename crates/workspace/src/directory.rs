//! Creates the directories of a workspace, without overwriting anything, and lists its agents.

use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use message_schema::id::AgentName;
use spool::{FileName, Layout, SpoolError};

use crate::{config, orders};

/// The reason a workspace cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// A directory could not be created.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// The directory of orders could not be created.
    #[error("cannot create the directory for orders: {0}")]
    Orders(#[source] std::io::Error),
    /// The config template could not be written.
    #[error("{path}: {source}", path = path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
}

/// Creates the missing parts of a workspace with these agents and leaves the rest unchanged. Returns the new paths,
/// relative to the root.
pub fn init(root: &Path, agents: &[AgentName]) -> Result<Vec<PathBuf>, InitError> {
    let names: Vec<&str> = agents.iter().map(AgentName::as_str).collect();
    let mut made = Layout::init(root, &names)?;
    if orders::make(root).map_err(InitError::Orders)? {
        let orders = orders::directory(root);
        made.push(
            orders
                .strip_prefix(root)
                .expect("it is below the root")
                .to_owned(),
        );
    }
    let path = root.join(config::FILE);
    let write = |mut file: std::fs::File| {
        file.write_all(config::TEMPLATE.as_bytes())?;
        file.sync_all()?;
        std::fs::File::open(root)?.sync_all()
    };
    match std::fs::File::create_new(&path).and_then(write) {
        Ok(()) => made.push(config::FILE.into()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(source) => return Err(InitError::Config { path, source }),
    }
    Ok(made)
}

/// True if the directory is a workspace, that is, has mailboxes. Fails if it cannot be examined.
pub fn is_workspace(root: &Path) -> std::io::Result<bool> {
    match Layout::new(root).agents().metadata() {
        Ok(data) => Ok(data.is_dir()),
        Err(error)
            if matches!(
                error.kind(),
                std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// The agents that have a mailbox. Ignores directories whose names are not valid for agents.
pub fn agents(root: &Path) -> Result<Vec<AgentName>, SpoolError> {
    let mut agents = candidates(root)?;
    agents.retain(|agent| has_mailbox(root, agent));
    Ok(agents)
}

/// The agents that may have a mailbox, sorted: real directories with a valid name. Examines none of them.
pub fn candidates(root: &Path) -> Result<Vec<AgentName>, SpoolError> {
    let names = Layout::agent_directories(root)?;
    Ok(names
        .into_iter()
        .filter_map(|name| AgentName::new(name).ok())
        .filter(|name| !name.is_daemon())
        .collect())
}

/// Reads the name of an agent that can have a mailbox; the error is for a person.
pub fn agent_name(text: &str) -> Result<AgentName, String> {
    match AgentName::new(text) {
        Ok(name) if name.is_daemon() => Err("`settled` is the daemon's own name".to_owned()),
        Ok(name) if name.as_str() == config::PERSON => Err(
            "`person` is reserved: in `reviewers` it stands for a person; choose another name"
                .to_owned(),
        ),
        Ok(name) => Ok(name),
        Err(error) => Err(error.to_string()),
    }
}

/// True if this agent has a mailbox.
pub fn has_mailbox(root: &Path, agent: &AgentName) -> bool {
    Layout::has_mailbox(root, agent.as_str())
}

/// The messages that wait in an agent's outbox, sorted by name.
pub fn waiting(root: &Path, agent: &AgentName) -> Vec<FileName> {
    let Ok(listed) = std::fs::read_dir(Layout::new(root).outbox(agent.as_str())) else {
        return Vec::new();
    };
    let names =
        listed.filter_map(|entry| FileName::new(entry.ok()?.file_name().into_encoded_bytes()).ok());
    let mut names: Vec<FileName> = names.filter(spool::is_candidate).collect();
    names.sort_unstable();
    names
}

/// Finds an agent whose outbox belongs to the user of this process: a script of such an agent could decide like a
/// person. A missing outbox does not prove another owner.
pub fn agent_of_this_user(root: &Path) -> Result<Option<AgentName>, SpoolError> {
    let (layout, uid) = (Layout::new(root), rustix::process::geteuid().as_raw());
    let is_ours = |agent: &AgentName| {
        let outbox = layout.outbox(agent.as_str()).symlink_metadata();
        outbox.map_or(true, |data| data.uid() == uid)
    };
    Ok(agents(root)?.into_iter().find(is_ours))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_mailbox_has_the_name_of_the_daemon_or_of_a_person() {
        let daemon = agent_name("settled").expect_err("the daemon's name");
        assert!(daemon.contains("daemon"), "{daemon}");
        let person = agent_name("person").expect_err("a reserved name");
        assert!(person.contains("reserved"), "{person}");
        assert!(agent_name("personal").is_ok());
    }

    #[test]
    fn an_outbox_that_is_gone_or_a_link_proves_no_other_owner() {
        let root = tempfile::tempdir().expect("a directory");
        let inbox = Layout::new(root.path()).inbox("codex");
        std::fs::create_dir_all(inbox).expect("an inbox");
        let agent = || {
            agent_of_this_user(root.path())
                .expect("a list of agents")
                .map(String::from)
        };
        assert_eq!(agent().as_deref(), Some("codex"));
        std::os::unix::fs::symlink("/proc/1", Layout::new(root.path()).outbox("codex"))
            .expect("a link");
        assert_eq!(agent().as_deref(), Some("codex"));
    }

    fn agent(name: &str) -> AgentName {
        name.parse().expect("a name")
    }

    #[test]
    fn a_workspace_is_created_once_and_nothing_in_it_is_overwritten() {
        let root = tempfile::tempdir().expect("a directory");
        let made = init(root.path(), &[agent("codex")]).expect("a workspace");
        for path in ["agents/codex/outbox", ".settled/orders", "settled.toml"] {
            assert!(made.contains(&PathBuf::from(path)), "{path}");
            assert!(root.path().join(path).exists(), "{path}");
        }
        let config = root.path().join(config::FILE);
        let template = std::fs::read_to_string(&config);
        assert_eq!(template.expect("a config"), config::TEMPLATE);
        std::fs::write(&config, "# mine\n").expect("a config");
        let again = init(root.path(), &[agent("codex")]).expect("a workspace");
        assert!(again.is_empty(), "{again:?}");
        assert_eq!(
            std::fs::read_to_string(&config).expect("a config"),
            "# mine\n"
        );
        let other = init(root.path(), &[agent("pi")]).expect("a workspace");
        assert!(
            other.iter().all(|path| path.starts_with("agents/pi")),
            "{other:?}"
        );
    }

    #[test]
    fn a_workspace_has_a_directory_of_mailboxes() {
        let root = tempfile::tempdir().expect("a directory");
        let at = |name: &str| root.path().join(name);
        std::fs::create_dir_all(at("real/agents")).expect("a directory");
        std::fs::create_dir(at("empty")).expect("a directory");
        std::fs::create_dir(at("odd")).expect("a directory");
        std::fs::write(at("odd/agents"), "").expect("a file");
        std::fs::write(at("file"), "").expect("a file");
        for (name, is_one) in [
            ("real", true),
            ("empty", false),
            ("odd", false),
            ("file", false),
            ("missing", false),
        ] {
            let looked = is_workspace(&at(name)).expect("an answer");
            assert_eq!(looked, is_one, "{name}");
        }
        is_workspace(&at("no\0name")).expect_err("nobody can look there");
    }

    #[test]
    fn the_agents_are_the_directories_with_a_name_and_a_mailbox() {
        let root = tempfile::tempdir().expect("a directory");
        init(root.path(), &["pi", "codex"].map(agent)).expect("a workspace");
        let directories = Layout::new(root.path()).agents();
        for name in ["bare", "settled", "no name", ".hidden"] {
            std::fs::create_dir(directories.join(name)).expect("a directory");
        }
        std::fs::create_dir_all(directories.join("settled/inbox")).expect("an inbox");
        let names = |agents: Result<Vec<AgentName>, SpoolError>| -> Vec<String> {
            let agents = agents.expect("a list");
            agents.iter().map(ToString::to_string).collect()
        };
        assert_eq!(names(agents(root.path())), ["codex", "pi"]);
        assert_eq!(names(candidates(root.path())), ["bare", "codex", "pi"]);
        assert!(has_mailbox(root.path(), &agent("pi")));
        assert!(!has_mailbox(root.path(), &agent("bare")));
    }

    #[test]
    fn what_waits_in_an_outbox_is_listed_by_name_without_what_is_still_written() {
        let root = tempfile::tempdir().expect("a directory");
        init(root.path(), &[agent("codex")]).expect("a workspace");
        let outbox = Layout::new(root.path()).outbox("codex");
        for name in ["c.yaml", "a.yaml", "b.yaml", ".d.yaml", "e.tmp"] {
            std::fs::write(outbox.join(name), "").expect("a file");
        }
        let listed = waiting(root.path(), &agent("codex"));
        let listed: Vec<String> = listed.iter().map(ToString::to_string).collect();
        assert_eq!(listed, ["a.yaml", "b.yaml", "c.yaml"]);
        assert_eq!(waiting(root.path(), &agent("pi")), []);
    }
}
