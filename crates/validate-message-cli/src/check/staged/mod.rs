//! Staged files: those in git's index, never those in the working tree.
//!
//! Git decides which index and repository to use (`GIT_INDEX_FILE`, `GIT_DIR`), as for its other commands; `git commit
//! -a` and `-p` give their hooks an index of their own.

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

/// The index, and the names of its paths in the directory where the command was started.
pub(crate) struct Staged {
    /// The directory of the working tree to which the index's paths are relative.
    top: PathBuf,
    /// The path from there to the current directory: empty, or ending in a slash.
    prefix: String,
    /// The path from the current directory up to there: empty, or repeated `../`.
    up: String,
    /// The files that the next commit adds, changes or removes.
    changed: Vec<(String, IndexEntry)>,
    batch: Mutex<Batch>,
    /// The files in `packets` directories, by path; listed once a message needs one.
    packets: OnceLock<Result<BTreeMap<String, IndexEntry>, String>>,
}

/// A message or packet in the index.
pub(crate) struct Blob {
    /// Its path relative to the current directory, as one would type it.
    pub(crate) shown: String,
    /// True if it is a symbolic link in place of a message or of a mailbox.
    pub(crate) is_link: bool,
    /// Its path from the top.
    path: String,
    id: String,
}

impl Staged {
    /// Asks git where the index is; the error holds git's message.
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
            changed: entries::changed()?,
            batch: Mutex::new(Batch::start()?),
            packets: OnceLock::new(),
        })
    }

    /// Lists what the next commit makes worth checking: the messages it adds or changes, those whose packet it changes
    /// or removes, the packets it adds or changes that no message names, and the links in place of mail. If paths are given, only those below them,
    /// and the given files themselves in any directory.
    pub(crate) fn subjects(&self, paths: &[PathBuf]) -> io::Result<Vec<Blob>> {
        let wanted: Vec<String> = paths.iter().map(|path| self.inside(path)).collect();
        let is_wanted = |path: &str| {
            let is_in =
                |place: &String| place.is_empty() || place == path || is_beneath(path, place);
            wanted.is_empty() || wanted.iter().any(is_in)
        };
        let is_checked = |path: &str| {
            wanted.iter().any(|file| file == path) || is_message(path) && is_wanted(path)
        };
        let mut subjects: BTreeMap<&str, &str> = self
            .changed
            .iter()
            .filter(|(path, entry)| entry.is_file && is_checked(path))
            .map(|(path, entry)| (path.as_str(), entry.id.as_str()))
            .collect();
        let packets: BTreeMap<&str, &IndexEntry> = self
            .changed
            .iter()
            .filter(|(path, _)| !is_message(path) && is_beneath_packets(path))
            .map(|(path, entry)| (path.as_str(), entry))
            .collect();
        let namers = self.namers(&packets)?;
        for (message, id, packet) in &namers {
            if is_wanted(message) || is_wanted(packet) {
                subjects.insert(message, id);
            }
        }
        for (path, entry) in packets {
            let is_named = namers.iter().any(|(_, _, packet)| packet == path);
            if is_wanted(path) && !is_named && self.is_packet(path, entry)? {
                subjects.insert(path, &entry.id);
            }
        }
        let links = self.changed.iter().filter(|(path, entry)| {
            entry.is_symlink && is_in_place_of_mail(path) && (is_wanted(path) || is_checked(path))
        });
        let links = links.map(|(path, entry)| (path.as_str(), entry.id.as_str()));
        let blob = |(path, id): (&str, &str), is_link| Blob {
            shown: self.shown(path),
            is_link,
            path: path.to_owned(),
            id: id.to_owned(),
        };
        let files = subjects.into_iter().map(|subject| blob(subject, false));
        Ok(files.chain(links.map(|link| blob(link, true))).collect())
    }

    /// Lists the messages of the index that name one of these packets, each with its blob and the packet.
    fn namers(
        &self,
        packets: &BTreeMap<&str, &IndexEntry>,
    ) -> io::Result<Vec<(String, String, String)>> {
        let mut namers = Vec::new();
        if packets.is_empty() {
            return Ok(namers);
        }
        for (path, entry) in entries::of_agents()? {
            let root = place::workspace_around_mailbox(Path::new(&path)).map(Path::to_owned);
            let Some(root) = root.filter(|_| entry.is_file && is_message(&path)) else {
                continue;
            };
            // An unreadable message is reported only if it is staged itself.
            let message = message_schema::parse(&self.read_id(&entry.id)?).ok();
            let named = message.and_then(|message| message.packet_path());
            let Some(named) = named.map(|named| beneath(&root.to_string_lossy(), &named)) else {
                continue;
            };
            if packets.contains_key(named.as_str()) {
                namers.push((path, entry.id, named));
            }
        }
        Ok(namers)
    }

    /// True if a changed file is a findings packet, by its place or else by its fields.
    fn is_packet(&self, path: &str, entry: &IndexEntry) -> io::Result<bool> {
        if !entry.is_file || !place::is_named_as_message(Path::new(path)) {
            return Ok(false);
        }
        if place::is_among_findings(Path::new(path)) {
            return Ok(true);
        }
        let message = message_schema::parse(&self.read_id(&entry.id)?);
        Ok(message.is_ok_and(|message| validate_message::is_packet(&message)))
    }

    /// Reads a message: at most one byte more than it may have.
    pub(crate) fn read(&self, blob: &Blob) -> io::Result<Vec<u8>> {
        self.read_id(&blob.id)
    }

    fn read_id(&self, id: &str) -> io::Result<Vec<u8>> {
        self.batch
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .read(id)
    }

    /// Finds the packet that a message names: in the index or, for a file that git does not know, in the working tree.
    /// A packet that the next commit removes is missing.
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
        let named = beneath(&root, path);
        if self
            .changed
            .iter()
            .any(|(path, entry)| entry.is_removed && *path == named)
        {
            return Ok(FoundPacket::Missing);
        }
        packet::open_beneath(&self.top.join(&root), path)
    }

    /// Returns the workspace of a staged message, as a path from the top.
    fn workspace_of(&self, blob: &Blob, root: Option<&Path>) -> Option<String> {
        if let Some(root) = root {
            return Some(self.inside(root));
        }
        if let Some(root) = place::workspace_around_mailbox(Path::new(&blob.path)) {
            return Some(root.to_string_lossy().into_owned());
        }
        packet::workspace_of(Path::new(&blob.shown)).map(|root| self.inside(&root))
    }

    /// Returns a path of the command line as the index names it. A path outside the repository keeps its own name,
    /// which matches nothing.
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

/// True if a file of the index has a message's name and is in a mailbox.
fn is_message(path: &str) -> bool {
    let path = Path::new(path);
    place::is_named_as_message(path) && place::workspace_around_mailbox(path).is_some()
}

/// True if a link here is within a mailbox, or is one, or leads to one: it is a mailbox, an agent or `agents`.
fn is_in_place_of_mail(path: &str) -> bool {
    ["", "outbox", "any/outbox"].iter().any(|below| {
        let path = Path::new(path).join(below);
        place::workspace_around_mailbox(&path).is_some()
    })
}

fn is_beneath_packets(path: &str) -> bool {
    Path::new(path).parent().is_some_and(|directory| {
        directory
            .components()
            .any(|part| part.as_os_str() == "packets")
    })
}

/// Returns a workspace path as a path from the top of the repository.
fn beneath(root: &str, path: &PacketPath) -> String {
    match root {
        "" => path.to_string(),
        root => format!("{root}/{path}"),
    }
}

fn is_beneath(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory)
        .is_some_and(|rest| rest.starts_with('/'))
}
