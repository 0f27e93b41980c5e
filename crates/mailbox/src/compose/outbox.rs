//! Writes files for others to read: whole or not at all, and under a name that is free.

use std::fs::{File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use message_schema::id::{AgentName, MessageId};
use spool::Layout;
use workspace::atomic_file::rename_new;

use super::message::CheckedMessage;
use super::packet::MessagePacket;
use crate::mailboxes::file_name;

/// The permissions that the daemon's user needs on a file, whatever the writer's umask.
const OTHERS_READ: u32 = 0o440;

/// The reason a message was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Another packet took the name planned for this one; plan again.
    #[error("the name {} was taken meanwhile", .0.display())]
    PacketTaken(PathBuf),
    /// The outbox already has a message with that name.
    #[error("{} already exists", .0.display())]
    Taken(PathBuf),
    /// The disk failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// The path of the message with this id.
pub fn path(root: &Path, agent: &AgentName, id: &MessageId) -> PathBuf {
    Layout::new(root).outbox(agent.as_str()).join(file_name(id))
}

/// Writes the packet, then the message. A kill between the two leaves a packet that no message points to, and the next
/// try uses it. When this returns, the message is on the disk.
pub fn write(
    root: &Path,
    agent: &AgentName,
    message: &CheckedMessage,
) -> Result<PathBuf, WriteError> {
    if let MessagePacket::New(new) = &message.packet {
        let path = root.join(new.path.as_str());
        new.write(root).map_err(|source| {
            let is_taken = source.kind() == io::ErrorKind::AlreadyExists;
            if is_taken {
                WriteError::PacketTaken(path)
            } else {
                WriteError::Io { path, source }
            }
        })?;
    }
    let path = path(root, agent, &message.id);
    match write_new(&path, message.text.as_bytes()) {
        Ok(()) => Ok(path),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(WriteError::Taken(path)),
        Err(source) => Err(WriteError::Io { path, source }),
    }
}

/// Writes a file under a hidden name, syncs it and renames it to its own name, which must be free. A kill before the
/// rename leaves a hidden file, which `settled doctor --fix` removes from a mailbox after a day.
pub(super) fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = path
        .parent()
        .expect("a file of a workspace is in a directory");
    let temporary = directory.join(format!(
        ".settled-send-{}.tmp",
        workspace::clock::new_name()
    ));
    let written = File::create_new(&temporary).and_then(|mut file| {
        let mode = file.metadata()?.permissions().mode();
        file.set_permissions(Permissions::from_mode(mode & 0o7777 | OTHERS_READ))?;
        file.write_all(bytes)?;
        file.sync_all()?;
        rename_new(&temporary, path)?;
        File::open(directory)?.sync_all()
    });
    if written.is_err() {
        // If this fails too, a hidden file remains, which the daemon ignores.
        let _ = std::fs::remove_file(&temporary);
    }
    written
}
