//! Creates the directories of a workspace and never overwrites any.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use message_schema::id::AgentName;
use spool::{Layout, SpoolError};

use crate::{config, orders};

/// The reasons a workspace cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// A directory could not be created.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// The directory of orders could not be created.
    #[error("cannot make the place for orders: {0}")]
    Orders(#[source] std::io::Error),
    /// The config template could not be written.
    #[error("{path}: {source}", path = path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// Why.
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
                .expect("it lies below the root")
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

/// Whether the directory is a workspace, that is, has mailboxes. Fails if it cannot be examined.
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

/// The agents that have a mailbox. Directories whose names are not valid agent names are ignored.
pub fn agents(root: &Path) -> Result<Vec<AgentName>, SpoolError> {
    let names = Layout::known_agents(root)?;
    Ok(names
        .into_iter()
        .filter_map(|name| AgentName::new(name).ok())
        .filter(|name| !name.is_daemon())
        .collect())
}
