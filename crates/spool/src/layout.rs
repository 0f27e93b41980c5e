//! Joins the directories of a workspace to paths, names its files, and makes the empty tree.
//!
//! `dirs` spells the directories; other modules define what the files contain.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use crate::{Digest, FileName, Mailbox, SpoolError, dirs};

const SEGMENT_DIGITS: usize = 20;

/// A workspace's tree.
#[derive(Debug, Clone)]
pub struct Layout {
    root: PathBuf,
}

impl Layout {
    /// Describes the workspace at `root` without touching it.
    pub fn new(root: impl Into<PathBuf>) -> Layout {
        Layout { root: root.into() }
    }

    /// Creates the tree of a workspace with these agents and keeps what exists. Returns what it created, relative to
    /// the root.
    pub fn init(root: impl Into<PathBuf>, agents: &[&str]) -> Result<Vec<PathBuf>, SpoolError> {
        let layout = Layout::new(root);
        for agent in agents {
            if !dirs::is_agent_name(agent) {
                let source = std::io::Error::from(std::io::ErrorKind::InvalidInput);
                return Err(SpoolError::Io {
                    operation: "make a mailbox for",
                    path: PathBuf::from(agent),
                    source,
                });
            }
        }
        let mut made = Vec::new();
        for directory in tree(agents) {
            let path = layout.root.join(&directory);
            if !path.is_dir() {
                std::fs::create_dir_all(&path).map_err(SpoolError::io("make", &path))?;
                made.push(directory);
            }
        }
        layout.sync_tree(&made)?;
        Ok(made)
    }

    /// Lists the missing directories of the tree with these agents, relative to the root. An unreadable directory does
    /// not count as missing.
    pub fn missing(&self, agents: &[&str]) -> Vec<PathBuf> {
        let is_missing = |path: &PathBuf| match self.root.join(path).metadata() {
            Ok(data) => !data.is_dir(),
            Err(error) => matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ),
        };
        tree(agents).into_iter().filter(is_missing).collect()
    }

    /// Makes new directories survive a power cut: without its mailboxes an agent's messages could not be delivered.
    fn sync_tree(&self, made: &[PathBuf]) -> Result<(), SpoolError> {
        let above = |path: &Path| path.ancestors().map(Path::to_owned).collect::<Vec<_>>();
        let mut dirs: BTreeSet<PathBuf> = made
            .iter()
            .flat_map(|path| above(path))
            .map(|path| self.root.join(path))
            .collect();
        if !made.is_empty() {
            // The root may be new as well.
            let root =
                std::path::absolute(&self.root).map_err(SpoolError::io("sync", &self.root))?;
            dirs.extend(root.parent().map(Path::to_owned));
        }
        dirs.iter().try_for_each(|dir| {
            let synced = std::fs::File::open(dir).and_then(|dir| dir.sync_all());
            synced.map_err(SpoolError::io("sync", dir))
        })
    }

    /// Lists the agents of a workspace, sorted: directories under `agents/` that are neither hidden nor links and have
    /// an outbox or an inbox.
    pub fn known_agents(root: impl AsRef<Path>) -> Result<Vec<String>, SpoolError> {
        let mut agents = Layout::agent_directories(root.as_ref())?;
        agents.retain(|agent| Layout::has_mailbox(root.as_ref(), agent));
        Ok(agents)
    }

    /// Lists the directories under `agents/` that have an agent's name and are no links, whatever they contain; sorted.
    pub fn agent_directories(root: impl AsRef<Path>) -> Result<Vec<String>, SpoolError> {
        let path = root.as_ref().join(dirs::AGENTS);
        if path.is_symlink() {
            return Err(SpoolError::io("list", &path)(
                std::io::ErrorKind::NotADirectory.into(),
            ));
        }
        let mut agents = Vec::new();
        for listed in std::fs::read_dir(&path).map_err(SpoolError::io("list", &path))? {
            let listed = listed.map_err(SpoolError::io("list", &path))?;
            // If its kind is unknown, the attempt to list it will tell.
            let may_be = listed.file_type().map_or(true, |kind| kind.is_dir());
            if let Ok(name) = listed.file_name().into_string()
                && dirs::is_agent_name(&name)
                && may_be
            {
                agents.push(name);
            }
        }
        agents.sort_unstable();
        Ok(agents)
    }

    /// Returns whether a directory under `agents/` is an agent's: it has an outbox or an inbox.
    pub fn has_mailbox(root: impl AsRef<Path>, agent: &str) -> bool {
        let home = root.as_ref().join(agent_home(agent));
        is_real_dir(&home)
            && [dirs::OUTBOX, dirs::INBOX]
                .iter()
                .any(|directory| is_real_dir(&home.join(directory)))
    }

    /// Returns the workspace's root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the path of an agent's outbox.
    pub fn outbox(&self, agent: &str) -> PathBuf {
        self.root.join(agent_dir(agent, dirs::OUTBOX))
    }

    /// Returns the path of an agent's inbox.
    pub fn inbox(&self, agent: &str) -> PathBuf {
        self.root.join(agent_dir(agent, dirs::INBOX))
    }

    /// Returns the path of an agent's directory, which holds its mailboxes.
    pub fn agent(&self, agent: &str) -> PathBuf {
        self.root.join(agent_home(agent))
    }

    /// Returns the directory of an agent's accepted originals.
    pub fn sent(&self, agent: &str) -> PathBuf {
        self.root.join(agent_dir(agent, dirs::SENT))
    }

    /// Returns the directory of an agent's refused originals and the reports on them.
    pub fn dead_letter(&self, agent: &str) -> PathBuf {
        self.root.join(agent_dir(agent, dirs::DEAD_LETTER))
    }

    /// Returns the directory of the inbox messages that an agent is working on.
    pub fn taken(&self, agent: &str) -> PathBuf {
        self.root.join(agent_dir(agent, dirs::TAKEN))
    }

    /// Returns the directory of the messages that an agent has finished with.
    pub fn archive(&self, agent: &str) -> PathBuf {
        self.root.join(agent_dir(agent, dirs::ARCHIVE))
    }

    /// Returns the directory of a mailbox.
    pub fn mailbox(&self, mailbox: &Mailbox) -> PathBuf {
        self.root.join(mailbox_dir(mailbox))
    }

    /// Returns the path of a folder of `packets/`.
    pub fn packets(&self, folder: &str) -> PathBuf {
        self.root.join(packets_dir(folder))
    }

    /// Returns the directory of the ledger's segments.
    pub fn ledger(&self) -> PathBuf {
        self.root.join(dirs::LEDGER)
    }

    /// Returns the directory of the ledger's snapshots.
    pub fn snapshots(&self) -> PathBuf {
        self.root.join(dirs::SNAPSHOTS)
    }

    /// Returns the directory that holds the directories of all agents.
    pub fn agents(&self) -> PathBuf {
        self.root.join(dirs::AGENTS)
    }

    /// Returns the directory of the orders that the daemon has not recorded yet.
    pub fn orders(&self) -> PathBuf {
        self.root.join(dirs::ORDERS)
    }

    /// Returns the directory of the runs' folders.
    pub fn runs(&self) -> PathBuf {
        self.root.join(dirs::RUNS)
    }

    /// Returns the directory of the runs' worktrees.
    pub fn trees(&self) -> PathBuf {
        self.root.join(dirs::TREES)
    }

    /// Returns the directory of the pairs' folders.
    pub fn pairs(&self) -> PathBuf {
        self.root.join(dirs::PAIRS)
    }

    /// Returns the directory of what this host knows of a shared ledger.
    pub fn host(&self) -> PathBuf {
        self.root.join(dirs::HOST)
    }

    /// Returns the daemon's own directory, which also holds the ledger.
    pub fn own(&self) -> PathBuf {
        self.root.join(dirs::OWN)
    }
}

/// Lists every directory of a workspace with these agents, relative to the root.
fn tree(agents: &[&str]) -> Vec<PathBuf> {
    let ours = [
        dirs::LEDGER,
        dirs::CURSORS,
        dirs::TORN,
        dirs::AGENTS,
        dirs::PULLS,
    ]
    .iter()
    .map(PathBuf::from);
    let packets = dirs::PACKET_FOLDERS
        .iter()
        .map(|folder| packets_dir(folder));
    let of_agent = |agent| {
        dirs::OF_AGENT
            .iter()
            .map(move |directory| agent_dir(agent, directory))
    };
    ours.chain(packets)
        .chain(agents.iter().flat_map(|agent| of_agent(agent)))
        .collect()
}

/// Returns whether a directory exists and is not only a link to one. An unreadable directory counts as present: a
/// message to an agent behind a disk that does not answer waits and is not refused.
fn is_real_dir(path: &Path) -> bool {
    match path.symlink_metadata() {
        Ok(data) => data.is_dir(),
        Err(error) => !matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
        ),
    }
}

/// Returns `agents/<agent>`.
pub(crate) fn agent_home(agent: &str) -> PathBuf {
    Path::new(dirs::AGENTS).join(agent)
}

/// Returns `agents/<agent>/<directory>`.
pub(crate) fn agent_dir(agent: &str, directory: &str) -> PathBuf {
    agent_home(agent).join(directory)
}

/// Lists the directories of a known agent that are recreated when missing.
pub(crate) fn remade_dirs(agent: &str) -> Vec<PathBuf> {
    let ours = dirs::OF_AGENT
        .iter()
        .filter(|directory| **directory != dirs::OUTBOX);
    ours.map(|directory| agent_dir(agent, directory)).collect()
}

/// Returns `packets/<folder>`.
pub(crate) fn packets_dir(folder: &str) -> PathBuf {
    Path::new(dirs::PACKETS).join(folder)
}

/// Returns a mailbox's directory, relative to the root.
pub(crate) fn mailbox_dir(mailbox: &Mailbox) -> PathBuf {
    match mailbox {
        Mailbox::Inbox(agent) => agent_dir(agent, dirs::INBOX),
        Mailbox::DeadLetter(agent) => agent_dir(agent, dirs::DEAD_LETTER),
        Mailbox::Packets(folder) => packets_dir(folder),
        Mailbox::PullRequest(number) => Path::new(dirs::PULLS).join(number),
    }
}

/// Lists the directories in which a delivered file may be later, its mailbox first.
pub(crate) fn resting_places(mailbox: &Mailbox) -> Vec<PathBuf> {
    match mailbox {
        Mailbox::Inbox(agent) => [dirs::INBOX, dirs::TAKEN, dirs::ARCHIVE, dirs::INBOX_ARCHIVE]
            .map(|place| agent_dir(agent, place))
            .into(),
        Mailbox::DeadLetter(_) | Mailbox::Packets(_) | Mailbox::PullRequest(_) => {
            vec![mailbox_dir(mailbox)]
        }
    }
}

/// Returns the name of the segment that starts with record `first`.
pub(crate) fn segment_name(first: u64) -> FileName {
    FileName::new(format!("{first:0SEGMENT_DIGITS$}.jsonl"))
        .expect("digits and an extension are a name")
}

/// Reads a segment's first record number from its name.
pub(crate) fn segment_first(name: &FileName) -> Option<u64> {
    let digits = std::str::from_utf8(name.as_bytes())
        .ok()?
        .strip_suffix(".jsonl")?;
    let plain = digits.len() == SEGMENT_DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    if plain { digits.parse().ok() } else { None }
}

/// Returns the name of the snapshot taken after record `seq`.
pub(crate) fn snapshot_name(seq: u64) -> FileName {
    FileName::new(format!("{seq:0SEGMENT_DIGITS$}.snapshot"))
        .expect("digits and an extension are a name")
}

/// Returns the name under which a snapshot is written before it is renamed; a kill may leave such a file.
pub(crate) fn snapshot_temporary() -> FileName {
    FileName::new("new.tmp").expect("fixed text is a name")
}

/// Returns the name of a snapshot that was set aside when a person accepted the ledger up to record `accepted`.
pub(crate) fn snapshot_aside(seq: u64, accepted: u64) -> FileName {
    FileName::new(format!(
        "{seq:0SEGMENT_DIGITS$}.snapshot.accepted-{accepted}"
    ))
    .expect("digits and letters are a name")
}

/// Reads from a snapshot's name the record after which it was taken.
pub(crate) fn snapshot_seq(name: &FileName) -> Option<u64> {
    let digits = std::str::from_utf8(name.as_bytes())
        .ok()?
        .strip_suffix(".snapshot")?;
    let plain = digits.len() == SEGMENT_DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    if plain { digits.parse().ok() } else { None }
}

/// Returns the name under which the torn bytes of a segment are kept; equal bytes get equal names.
pub(crate) fn torn_name(segment: &Path, offset: u64, digest: &Digest) -> FileName {
    let stem = segment
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned())
        .unwrap_or_default();
    let digest: String = digest
        .to_string()
        .chars()
        .skip("sha256:".len())
        .take(16)
        .collect();
    FileName::new(format!("{stem}.{offset}.{digest}.torn"))
        .expect("digits and an extension are a name")
}

/// Returns the name of the hidden file in which the `n`-th file (from 0) of record `seq` is written before it is
/// renamed.
pub(crate) fn temporary_name(seq: u64, n: u32) -> FileName {
    let name = if n == 0 {
        format!(".settled-{seq}.tmp")
    } else {
        format!(".settled-{seq}.{n}.tmp")
    };
    FileName::new(name).expect("digits and fixed text are a name")
}

/// Returns the name of the hidden file to which the original of record `seq` is copied before it is renamed. It differs
/// from the other temporary name because a report of the same record may be beside it.
pub(crate) fn away_temporary(seq: u64) -> FileName {
    FileName::new(format!(".settled-{seq}.away.tmp")).expect("digits and fixed text are a name")
}

/// Returns the name of a lane's cursor file; `lane` is an agent, `packets` or `events/pr`, a slash and a directory.
pub(crate) fn cursor_name(lane: &str) -> FileName {
    FileName::new(format!("{}.cursor", lane.replace('/', ".")))
        .expect("an agent's name is short and no path")
}

/// Returns the name under which a new cursor file is written before it is renamed.
pub(crate) fn cursor_temporary(name: &FileName) -> FileName {
    FileName::new([name.as_bytes(), b".tmp"].concat()).expect("a cursor's name is short")
}

/// Returns whether a file is a cursor.
pub(crate) fn is_cursor(name: &FileName) -> bool {
    name.as_bytes().ends_with(b".cursor")
}

/// Returns whether a file in an outbox is meant as a message.
pub fn is_candidate(name: &FileName) -> bool {
    let bytes = name.as_bytes();
    !bytes.starts_with(b".")
        && [&b".yaml"[..], b".yml", b".json"]
            .iter()
            .any(|ending| bytes.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn init_makes_the_tree_once() {
        let root = tempfile::tempdir().expect("a directory");
        let made = Layout::init(root.path(), &["claude"]).expect("a tree");
        assert!(
            made.contains(&PathBuf::from("agents/claude/outbox")),
            "{made:?}"
        );
        assert_eq!(
            Layout::init(root.path(), &["claude"]).expect("a tree"),
            Vec::<PathBuf>::new()
        );
        assert_eq!(
            Layout::known_agents(root.path()).expect("agents"),
            ["claude"]
        );
        assert!(Layout::init(root.path(), &["../x"]).is_err());
    }

    #[test]
    fn an_agent_has_a_mailbox_of_its_own_and_no_link_or_file_is_one() {
        let root = tempfile::tempdir().expect("a directory");
        let root = root.path();
        Layout::init(root, &["claude"]).expect("a tree");
        assert_eq!(Layout::new(root).own(), root.join(".settled"));
        let agents = Layout::new(root).agents();
        std::os::unix::fs::symlink("claude", agents.join("link")).expect("a link");
        std::fs::create_dir_all(agents.join("bare/inbox.d")).expect("a directory");
        std::fs::create_dir_all(agents.join("reader/inbox")).expect("a directory");
        std::fs::create_dir_all(agents.join("files")).expect("a directory");
        std::fs::write(agents.join("files/outbox"), "").expect("a file");
        let names = ["bare", "claude", "files", "link", "nobody", "reader"];
        let has = names.map(|agent| Layout::has_mailbox(root, agent));
        assert_eq!(has, [false, true, false, false, false, true]);
    }

    #[test]
    fn only_messages_are_candidates() {
        let is = |text: &str| is_candidate(&FileName::new(text).expect("a name"));
        assert!(is("a.yaml") && is("a.yml") && is("a.json"));
        assert!(
            !is(".a.yaml") && !is("a.yaml.tmp") && !is("a.tmp") && !is("yaml") && !is("a.YAML~")
        );
    }

    #[test]
    fn segments_are_named_by_their_first_record() {
        assert_eq!(segment_first(&segment_name(42)), Some(42));
        assert_eq!(
            segment_first(&FileName::new("42.jsonl").expect("a name")),
            None
        );
    }
}
