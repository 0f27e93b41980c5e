//! Writing for others to read: a whole file or none, under a name nobody has.

use std::fs::{File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use message_schema::id::{AgentName, MessageId};
use spool::Layout;
use workspace::atomic_file::rename_new;

use super::message::CheckedMessage;
use super::packet::MessagePacket;

/// The permissions that the daemon's user needs on a file, whatever the writer's umask is.
const OTHERS_READ: u32 = 0o440;

/// The reason why a message was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A packet took the name that was planned for this one; plan again.
    #[error("the name {} was taken meanwhile", .0.display())]
    PacketTaken(PathBuf),
    /// A message of that name is in the outbox.
    #[error("{} already exists", .0.display())]
    Taken(PathBuf),
    /// The disk.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// The name of a message's file. An id may begin with a dot, and a file with such a name is left alone by the daemon. It may
/// have a colon, which other systems do not allow in a name; `=` stands for it and occurs in no id.
pub fn file_name(id: &MessageId) -> String {
    let hidden = if id.as_str().starts_with('.') {
        "_"
    } else {
        ""
    };
    format!("{hidden}{}.yaml", id.as_str().replace(':', "="))
}

/// The file of a message with that id.
pub fn path(root: &Path, agent: &AgentName, id: &MessageId) -> PathBuf {
    Layout::new(root).outbox(agent.as_str()).join(file_name(id))
}

/// Writes the packet, then the message. A kill between the two leaves a packet nobody points to, which the next try uses;
/// once this returns, the message is on the disk.
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

/// Writes a file under a hidden name, syncs it and gives it its own, which nobody may have. A kill before the rename
/// leaves a file that nobody reads.
pub(super) fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = path
        .parent()
        .expect("a file of a workspace lies in a directory");
    let temporary = directory.join(format!(".{}.tmp", workspace::clock::new_name()));
    let written = File::create_new(&temporary).and_then(|mut file| {
        let mode = file.metadata()?.permissions().mode();
        file.set_permissions(Permissions::from_mode(mode & 0o7777 | OTHERS_READ))?;
        file.write_all(bytes)?;
        file.sync_all()?;
        rename_new(&temporary, path)?;
        File::open(directory)?.sync_all()
    });
    if written.is_err() {
        // What is left of it has a name nobody reads.
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_message_is_a_name_on_every_system_and_no_other_messages() {
        let of = |id: &str| file_name(&MessageId::new(id).expect("an id"));
        assert_eq!(of("req:86@1+2"), "req=86@1+2.yaml");
        assert_eq!(of(".req-86"), "_.req-86.yaml");
        assert_ne!(of("req:86"), of("req_86"));
    }
}
