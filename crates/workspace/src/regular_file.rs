//! Reads small files that another process may replace at any time: by a link into another user's files, by a pipe
//! without a writer, or by a file of a terabyte.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use spool::{Disk as _, Layout, Os};

/// Reads a regular file of at most `max` bytes. Anything else under that path, a symbolic link included, is `None`.
/// Never blocks.
pub fn read(path: &Path, max: u64) -> io::Result<Option<Vec<u8>>> {
    regular(open(path), max)
}

/// Opens anything under that path for reading, but follows no symbolic link at its end. Never blocks.
pub fn open(path: &Path) -> io::Result<File> {
    open_with(path, OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY)
}

fn open_with(path: &Path, flags: OFlags) -> io::Result<File> {
    let flags = i32::try_from(flags.bits()).expect("the flags of an opening are few");
    File::options().read(true).custom_flags(flags).open(path)
}

/// Reads a file like [`read`], but follows a symbolic link at its end, for files that only the workspace's owner writes. A
/// link to nothing is `None`: somebody meant a file to be there.
pub fn read_followed(path: &Path, max: u64) -> io::Result<Option<Vec<u8>>> {
    match open_with(path, OFlags::NONBLOCK | OFlags::NOCTTY) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && path.is_symlink() => Ok(None),
        opened => regular(opened, max),
    }
}

/// Reads a file like [`read`], but follows no symbolic link in any part of `path`, which is relative to `root`, and does
/// not leave the root.
pub fn read_beneath(root: &Path, path: &Path, max: u64) -> io::Result<Option<Vec<u8>>> {
    let root = Os.open_root(root)?;
    regular(Os.open_beneath(&root, path).map(File::from), max)
}

/// Reads at most `max` bytes of a file that the user named, behind a link or not. A pipe without a name, such as that of
/// `<(command)`, counts as one: its writer has it open. So does a device, such as `/dev/null`. Any other
/// file could block the reader forever and is an error.
pub fn read_given(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let kind = path.metadata()?.file_type();
    let is_unnamed_pipe = kind.is_fifo() && path.canonicalize().is_err();
    let found = match kind {
        // `/dev/null` is how a script names nothing. A device is opened without waiting, and read up to the limit.
        _ if kind.is_file() || is_unnamed_pipe || kind.is_char_device() => None,
        _ if kind.is_dir() => Some("a directory"),
        _ if kind.is_fifo() => Some("a FIFO"),
        _ if kind.is_socket() => Some("a socket"),
        _ => Some("a disk"),
    };
    if let Some(found) = found {
        let why = format!(
            "it is {found}, expected a regular file; write what it gives into one and name that"
        );
        return Err(io::Error::other(why));
    }
    // A FIFO that takes the file's place meanwhile reads as empty.
    let file = open_with(path, OFlags::NONBLOCK | OFlags::NOCTTY)?;
    if is_unnamed_pipe {
        fcntl_setfl(&file, OFlags::empty())?;
    }
    let mut bytes = Vec::new();
    file.take(max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The most bytes of a file that the daemon saves in `.settled` beside the ledger.
const SAVED_MAX: u64 = 16 << 20;

/// Reads a file that the daemon saved in `.settled`; empty if there is no readable one. Agents of the daemon's user can
/// put anything in its place.
pub(crate) fn read_saved(root: &Path, file: &str) -> Vec<u8> {
    let read = read(&Layout::new(root).own().join(file), SAVED_MAX);
    read.ok().flatten().unwrap_or_default()
}

fn regular(opened: io::Result<File>, max: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match opened {
        // The errors for a link, for a way out of the root, and for a socket.
        Err(error)
            if matches!(
                Errno::from_io_error(&error),
                Some(Errno::LOOP | Errno::XDEV | Errno::NXIO)
            ) =>
        {
            return Ok(None);
        }
        opened => opened?,
    };
    let data = file.metadata()?;
    if !data.is_file() || data.len() > max {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    // It may grow meanwhile.
    file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(Some(bytes).filter(|bytes| bytes.len() as u64 <= max))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, Mode};
    use std::os::fd::{AsFd as _, AsRawFd as _};

    #[test]
    fn what_the_user_names_is_read_from_a_file_a_device_or_an_unnamed_pipe() {
        let root = tempfile::tempdir().expect("a directory");
        let at = |name: &str| root.path().join(name);
        std::fs::write(at("file"), "four").expect("a file");
        std::os::unix::fs::symlink("file", at("link")).expect("a link");
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::mknodat(CWD, at("pipe"), FileType::Fifo, mode, 0).expect("a pipe");
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).expect("a socket");
        assert_eq!(read_given(&at("link"), 3).expect("a file"), b"fou");
        let (reader, mut writer) = io::pipe().expect("a pipe");
        io::Write::write_all(&mut writer, b"four").expect("a reader");
        drop(writer);
        let substituted = format!("/proc/self/fd/{}", reader.as_fd().as_raw_fd());
        let read = read_given(Path::new(&substituted), 9);
        assert_eq!(read.expect("a pipe"), b"four");
        for (path, found) in [
            (at("pipe"), "a FIFO"),
            (at("socket"), "a socket"),
            (root.path().to_owned(), "a directory"),
        ] {
            let refused = read_given(&path, 9).expect_err(found).to_string();
            assert!(refused.contains(found), "{refused}");
        }
        assert_eq!(read_given(Path::new("/dev/null"), 9).expect("nothing"), b"");
        assert_eq!(read_given(Path::new("/dev/zero"), 2).expect("two"), [0; 2]);
        let missing = read_given(&at("missing"), 9).expect_err("there is none");
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn only_a_small_regular_file_is_read_and_nothing_is_waited_for() {
        let root = tempfile::tempdir().expect("a directory");
        let at = |name: &str| root.path().join(name);
        let mode = Mode::RUSR | Mode::WUSR;
        std::fs::create_dir(at("folder")).expect("a folder");
        std::fs::write(at("folder/file"), "four").expect("a file");
        std::os::unix::fs::symlink("folder/file", at("link")).expect("a link");
        std::os::unix::fs::symlink("folder", at("door")).expect("a link");
        std::os::unix::fs::symlink("nowhere", at("dangling")).expect("a link");
        rustix::fs::mknodat(CWD, at("pipe"), FileType::Fifo, mode, 0).expect("a pipe");
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).expect("a socket");
        let sparse = File::create(at("sparse")).and_then(|file| file.set_len(1 << 40));
        sparse.expect("a sparse file");

        let found = |name: &str, max| {
            let (near, beneath) = (
                read(&at(name), max).expect("an answer"),
                read_beneath(root.path(), name.as_ref(), max).expect("an answer"),
            );
            assert_eq!(near, beneath, "{name}");
            near
        };
        assert_eq!(found("folder/file", 4).as_deref(), Some(&b"four"[..]));
        assert_eq!(found("folder/file", 3), None, "it is too large");
        for name in ["link", "pipe", "socket", "sparse", "folder"] {
            assert_eq!(found(name, 1 << 20), None, "{name}");
        }
        let followed = |name: &str| read_followed(&at(name), 1 << 20).expect("an answer");
        assert_eq!(followed("link").as_deref(), Some(&b"four"[..]));
        for name in ["pipe", "door", "dangling"] {
            assert_eq!(followed(name), None, "{name}");
        }
        let missing = read(&at("missing"), 4).expect_err("there is none");
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        for name in ["door/file", "../file", "/etc/hostname"] {
            let beneath = read_beneath(root.path(), name.as_ref(), 1 << 20);
            assert!(!matches!(beneath, Ok(Some(_))), "{name}");
        }
    }
}
