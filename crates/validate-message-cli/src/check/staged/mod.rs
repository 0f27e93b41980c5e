//! What is staged: files as they stand in git's index, never as they lie in the working tree.
//!
//! Which index and which repository, git decides (`GIT_INDEX_FILE`, `GIT_DIR`), as it does for its
//! other commands; `git commit -a` and `-p` hand their hooks an index of their own.

mod batch;
mod entries;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use message_schema::id::PacketPath;

use self::batch::Batch;
use self::entries::IndexEntry;
use super::packet::{self, FoundPacket};
use super::place;

/// The index, and how its paths are called from where the command was started.
pub(crate) struct Staged {
    /// The directory of the working tree that the index's paths start from.
    top: PathBuf,
    /// The way from there to the current directory: empty, or ending in a slash.
    prefix: String,
    /// The way from the current directory up to there: empty, or `../` some times.
    up: String,
    batch: Mutex<Batch>,
    /// What lies in a `packets` directory, by its path. Listed when a message first asks.
    packets: OnceLock<Result<BTreeMap<String, IndexEntry>, String>>,
}

/// A message in the index.
pub(crate) struct Blob {
    /// Its path as one would type it in the current directory.
    pub(crate) shown: String,
    /// Its path from the top.
    path: String,
    id: String,
}

impl Staged {
    /// Asks git where the index is; the error holds git's words.
    pub(crate) fn open() -> io::Result<Self> {
        let told = entries::git(&[
            "rev-parse",
            "--show-toplevel",
            "--show-prefix",
            "--show-cdup",
        ])?;
        let told = String::from_utf8_lossy(&told).into_owned();
        let [top, prefix, up] = told.splitn(4, '\n').take(3).collect::<Vec<_>>()[..] else {
            return Err(io::Error::other(format!("git rev-parse said {told:?}")));
        };
        Ok(Self {
            top: PathBuf::from(top),
            prefix: prefix.to_owned(),
            up: up.to_owned(),
            batch: Mutex::new(Batch::start()?),
            packets: OnceLock::new(),
        })
    }

    /// Lists the messages that the next commit adds or changes: what lies in a mailbox, or, when
    /// paths are given, what of it lies in them and the files among them wherever they lie.
    pub(crate) fn messages(&self, paths: &[PathBuf]) -> io::Result<Vec<Blob>> {
        let wanted: Vec<String> = paths.iter().map(|path| self.inside(path)).collect();
        let is_wanted = |path: &str| {
            let is_message = place::is_named_as_message(Path::new(path))
                && place::workspace_around_mailbox(Path::new(path)).is_some();
            let is_in = |directory: &String| directory.is_empty() || is_beneath(path, directory);
            wanted.iter().any(|file| file == path)
                || is_message && (wanted.is_empty() || wanted.iter().any(is_in))
        };
        let entries = entries::changed()?;
        let files = entries
            .into_iter()
            .filter(|(path, entry)| entry.is_file && is_wanted(path));
        Ok(files
            .map(|(path, entry)| Blob {
                shown: self.shown(&path),
                path,
                id: entry.id,
            })
            .collect())
    }

    /// Reads a message: at most one byte more than one may have.
    pub(crate) fn read(&self, blob: &Blob) -> io::Result<Vec<u8>> {
        self.read_id(&blob.id)
    }

    fn read_id(&self, id: &str) -> io::Result<Vec<u8>> {
        self.batch
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .read(id)
    }

    /// Finds the packet that a message names: in the index, else, as only a file git does not
    /// know is missing there, in the working tree.
    pub(crate) fn packet(
        &self,
        blob: &Blob,
        root: Option<&Path>,
        path: &PacketPath,
    ) -> io::Result<FoundPacket> {
        let Some(root) = self.workspace_of(blob, root) else {
            return Ok(FoundPacket::NotLooked);
        };
        if let Some(refused) = packet::outside_of_packets(path) {
            return Ok(refused);
        }
        let packets = self
            .packets
            .get_or_init(|| entries::packets().map_err(|error| error.to_string()));
        let packets = packets
            .as_ref()
            .map_err(|why| io::Error::other(why.clone()))?;
        let mut at = if root.is_empty() {
            String::new()
        } else {
            format!("{root}/")
        };
        for part in path
            .as_str()
            .split('/')
            .filter(|part| !part.is_empty() && *part != ".")
        {
            at.push_str(part);
            match packets.get(&at) {
                Some(entry) if entry.is_symlink => return Ok(packet::symlink(part)),
                Some(entry) if entry.is_file => {
                    let place = PathBuf::from(self.shown(&at));
                    return self
                        .read_id(&entry.id)
                        .map(|bytes| packet::sized(bytes, place));
                }
                Some(_) | None => at.push('/'),
            }
        }
        packet::open_beneath(&self.top.join(&root), path)
    }

    /// The workspace a staged message belongs to, from the top.
    fn workspace_of(&self, blob: &Blob, root: Option<&Path>) -> Option<String> {
        if let Some(root) = root {
            return Some(self.inside(root));
        }
        if let Some(root) = place::workspace_around_mailbox(Path::new(&blob.path)) {
            return Some(root.to_string_lossy().into_owned());
        }
        packet::workspace_of(Path::new(&blob.shown)).map(|root| self.inside(&root))
    }

    /// A path of the command line as the index would call it. One outside keeps its own name,
    /// which is nothing's.
    fn inside(&self, path: &Path) -> String {
        let inside = if path.is_absolute() {
            let resolved = path.canonicalize();
            let inside = path.strip_prefix(&self.top).ok();
            inside
                .or_else(|| resolved.as_ref().ok()?.strip_prefix(&self.top).ok())
                .map(Path::to_owned)
        } else {
            Some(Path::new(&self.prefix).join(path))
        };
        let mut parts: Vec<String> = Vec::new();
        for part in inside.as_deref().unwrap_or(path).components() {
            match part {
                std::path::Component::ParentDir => {
                    parts.pop();
                }
                std::path::Component::CurDir => {}
                std::path::Component::Normal(_)
                | std::path::Component::RootDir
                | std::path::Component::Prefix(_) => {
                    parts.push(part.as_os_str().to_string_lossy().into_owned());
                }
            }
        }
        parts.join("/")
    }

    fn shown(&self, path: &str) -> String {
        match path.strip_prefix(&self.prefix) {
            Some(inside) => inside.to_owned(),
            None => format!("{}{path}", self.up),
        }
    }
}

fn is_beneath(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory)
        .is_some_and(|rest| rest.starts_with('/'))
}
