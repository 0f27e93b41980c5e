//! Finds the path of a findings packet, or a free name for a new one. A packet is never overwritten, because a message
//! may point to it; one with the same text is used again, so that a second try after a kill leaves nothing behind.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use message_schema::id::PacketPath;
use message_schema::limit::PACKET_BYTES_MAX;
use spool::dirs;
use workspace::regular_file;

use super::outbox;

/// The packet of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessagePacket {
    /// The message names none.
    None,
    /// The message names one that does not exist.
    Missing,
    /// It is in the workspace, with these bytes.
    InPlace(Vec<u8>),
    /// It has to be written.
    New(NewPacket),
}

/// A packet to write before its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPacket {
    /// The future path, relative to the root.
    pub path: PacketPath,
    /// Its text.
    pub text: String,
}

/// The file at a given path.
#[derive(Debug)]
pub enum Named {
    /// A file of the workspace.
    Inside(PacketPath, Vec<u8>),
    /// The text of a file elsewhere, which has to be copied.
    Outside(String),
    /// There is no such file.
    Missing,
}

impl NewPacket {
    /// Plans a place for this text: the first name after `stem` that is free or has the same text from the same user.
    pub fn plan(root: &Path, stem: &str, text: String) -> io::Result<Self> {
        for n in 1_u32.. {
            let name = if n == 1 {
                stem.to_owned()
            } else {
                format!("{stem}-{n}")
            };
            let path = format!("{}/{name}.yaml", dirs::of_packets(dirs::FINDINGS));
            if may_be_at(&root.join(&path), &text)? {
                let path =
                    PacketPath::new(path).expect("a folder of ours and a name without a slash");
                return Ok(Self { path, text });
            }
        }
        unreachable!("a directory has fewer files than there are numbers")
    }

    /// Writes the packet, unless it is there already. Fails with `AlreadyExists` if another packet took the name
    /// meanwhile; the caller plans again.
    pub(super) fn write(&self, root: &Path) -> io::Result<()> {
        let path = root.join(self.path.as_str());
        match outbox::write_new(&path, self.text.as_bytes()) {
            Err(error)
                if error.kind() == io::ErrorKind::AlreadyExists
                    && may_be_at(&path, &self.text)? =>
            {
                Ok(())
            }
            written => written,
        }
    }
}

/// True if the path is free or already has this text and belongs to this user.
fn may_be_at(path: &Path, text: &str) -> io::Result<bool> {
    let data = match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        data => data?,
    };
    let is_mine = data.is_file() && data.uid() == rustix::process::geteuid().as_raw();
    let found = || regular_file::read(path, text.len() as u64);
    Ok(is_mine && found()?.as_deref() == Some(text.as_bytes()))
}

/// Finds the packet at a path relative to the root or, failing that, to the current directory.
pub fn named(root: &Path, path: &Path) -> io::Result<Named> {
    let inside = path.to_str().and_then(|text| PacketPath::new(text).ok());
    if let Some(inside) = inside
        && root.join(path).is_file()
    {
        let bytes = regular_file::read_beneath(root, path, PACKET_BYTES_MAX);
        return Ok(Named::Inside(inside, bytes.and_then(small_and_regular)?));
    }
    let whole = match path.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Named::Missing),
        whole => whole?,
    };
    let bytes = read_given(&whole)?;
    match below(root, &whole)? {
        Some(inside) => Ok(Named::Inside(inside, bytes)),
        None => match String::from_utf8(bytes) {
            Ok(text) => Ok(Named::Outside(text)),
            Err(_) => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "it is not UTF-8 text",
            )),
        },
    }
}

fn below(root: &Path, whole: &Path) -> io::Result<Option<PacketPath>> {
    let root: PathBuf = root.canonicalize()?;
    let inside = whole.strip_prefix(root).ok().and_then(Path::to_str);
    Ok(inside.and_then(|inside| PacketPath::new(inside).ok()))
}

/// Reads a regular file of at most [`PACKET_BYTES_MAX`] bytes that another agent may have put there: waits for no pipe
/// and follows no link.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    regular_file::read(path, PACKET_BYTES_MAX).and_then(small_and_regular)
}

fn small_and_regular(read: Option<Vec<u8>>) -> io::Result<Vec<u8>> {
    read.ok_or_else(|| {
        io::Error::other(format!(
            "it is not a regular file of at most {PACKET_BYTES_MAX} bytes"
        ))
    })
}

/// Reads a file of at most [`PACKET_BYTES_MAX`] bytes that the user named: it may be behind a link.
pub fn read_given(path: &Path) -> io::Result<Vec<u8>> {
    let bytes = regular_file::read_given(path, PACKET_BYTES_MAX + 1)?;
    if bytes.len() as u64 > PACKET_BYTES_MAX {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has more than {PACKET_BYTES_MAX} bytes"),
        ));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_of_the_same_text_is_used_again_and_another_takes_the_next_name() {
        let root = tempfile::tempdir().expect("a directory");
        std::fs::create_dir_all(spool::Layout::new(root.path()).packets(dirs::FINDINGS))
            .expect("the folder");
        let plan = |text: &str| {
            NewPacket::plan(root.path(), "86_codex_r1", text.to_owned()).expect("a place")
        };
        let first = plan("a");
        first.write(root.path()).expect("written");
        assert_eq!(plan("a"), first);
        let written = root.path().join(first.path.as_str());
        let mode = written.metadata().expect("a file").mode();
        assert_eq!(mode & 0o640, 0o640, "the daemon's user reads it: {mode:o}");
        first.write(root.path()).expect("it is there");
        assert_eq!(
            plan("b").path.as_str(),
            "packets/findings/86_codex_r1-2.yaml"
        );
        let late = NewPacket {
            text: "b".to_owned(),
            ..first
        };
        assert_eq!(
            late.write(root.path()).expect_err("taken").kind(),
            io::ErrorKind::AlreadyExists
        );
    }

    #[test]
    fn a_pipe_in_place_of_a_packet_is_refused_without_waiting_for_its_writer() {
        use rustix::fs::{CWD, FileType, Mode};
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("pipe");
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::mknodat(CWD, &path, FileType::Fifo, mode, 0).expect("a pipe");
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || tell.send(read(&path).is_err()));
        let waited = std::time::Duration::from_secs(10);
        assert_eq!(told.recv_timeout(waited), Ok(true));
    }

    #[test]
    fn a_packet_is_found_in_the_workspace_or_copied_from_elsewhere() {
        let [root, elsewhere] = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
        let findings = spool::Layout::new(root.path()).packets(dirs::FINDINGS);
        std::fs::create_dir_all(&findings).expect("the folder");
        let put = |path: PathBuf, bytes: &[u8]| {
            std::fs::write(&path, bytes).expect("a file");
            path
        };
        let inside = put(findings.join("a.yaml"), b"a");
        let outside = put(elsewhere.path().join("b.yaml"), b"b");
        let binary = put(elsewhere.path().join("c.yaml"), b"\xff");
        let absent = elsewhere.path().join("none.yaml");
        let relative = PathBuf::from("packets/findings/a.yaml");
        let found = |path: &Path| match named(root.path(), path) {
            Ok(Named::Inside(path, bytes)) => format!("{path} {}", bytes.len()),
            Ok(Named::Outside(text)) => format!("elsewhere: {text}"),
            Ok(Named::Missing) => "missing".to_owned(),
            Err(error) => error.to_string(),
        };
        for (path, expected) in [
            (&relative, "packets/findings/a.yaml 1"),
            (&inside, "packets/findings/a.yaml 1"),
            (&outside, "elsewhere: b"),
            (&binary, "it is not UTF-8 text"),
            (&absent, "missing"),
        ] {
            assert_eq!(found(path), expected, "{}", path.display());
        }
        // A file is no directory.
        assert!(named(root.path(), &outside.join("d.yaml")).is_err());
    }

    #[test]
    fn a_file_that_is_as_long_as_a_packet_may_be_is_read_and_a_longer_one_is_not() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("p.yaml");
        let length = usize::try_from(PACKET_BYTES_MAX).expect("a length");
        for (length, is_read) in [(length, true), (length + 1, false), (length + 2, false)] {
            std::fs::write(&path, vec![b'a'; length]).expect("a file");
            for bytes in [read(&path), read_given(&path)] {
                assert_eq!(
                    bytes.ok().map(|bytes| bytes.len()),
                    is_read.then_some(length)
                );
            }
        }
    }
}
