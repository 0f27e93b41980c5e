//! A file system with one file, `disk`, that records every write and flush in order. A loop device on top of it makes
//! the kernel's own file system write there.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyWrite, Request, WriteFlags,
};

use super::image::Image;

/// A request to the disk.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// Write these bytes at this offset.
    Write(u64, Vec<u8>),
    /// Make everything before durable.
    Flush,
}

/// The requests to the disk, and its current contents.
pub(crate) struct Journal {
    events: Mutex<(Vec<Event>, Image)>,
}

impl Journal {
    fn lock(&self) -> MutexGuard<'_, (Vec<Event>, Image)> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of events so far. They cover everything that was seen before this call.
    pub(crate) fn position(&self) -> usize {
        self.lock().0.len()
    }

    /// Returns the events so far.
    pub(crate) fn events(&self) -> Vec<Event> {
        self.lock().0.clone()
    }
}

const FILE: INodeNo = INodeNo(2);
/// The cache time of attributes: nothing changes them but the kernel.
const FOREVER: Duration = Duration::from_secs(3600);

struct Recorder(Arc<Journal>);

impl Recorder {
    fn attributes(&self, ino: INodeNo) -> FileAttr {
        let is_root = ino == INodeNo::ROOT;
        let size = if is_root { 0 } else { self.0.lock().1.size() };
        FileAttr {
            ino,
            size,
            blocks: size / 512,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if is_root {
                FileType::Directory
            } else {
                FileType::RegularFile
            },
            perm: if is_root { 0o700 } else { 0o600 },
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

impl Filesystem for Recorder {
    fn lookup(&self, _req: &Request, _parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if name == "disk" {
            reply.entry(&FOREVER, &self.attributes(FILE), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&FOREVER, &self.attributes(ino));
    }

    // Bypass the page cache, so that each write arrives when it is made.
    fn open(&self, _req: &Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let journal = self.0.lock();
        let rest = journal.1.size().saturating_sub(offset).min(u64::from(size));
        let mut bytes = vec![0; usize::try_from(rest).expect("a request fits memory")];
        journal.1.read(offset, &mut bytes);
        reply.data(&bytes);
    }

    fn write(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let mut journal = self.0.lock();
        journal.1.write(offset, data);
        journal.0.push(Event::Write(offset, data.to_vec()));
        drop(journal);
        reply.written(u32::try_from(data.len()).expect("a request is shorter than 4 GiB"));
    }

    fn fsync(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        self.0.lock().0.push(Event::Flush);
        reply.ok();
    }

    fn flush(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        // A close promises nothing.
        reply.ok();
    }
}

/// Mounts a recorder that begins with this disk; dropping the session unmounts it.
pub(crate) fn mount(image: Image, at: &Path) -> io::Result<(Arc<Journal>, BackgroundSession)> {
    let journal = Arc::new(Journal {
        events: Mutex::new((Vec::new(), image)),
    });
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("settled-recorder".to_owned()),
        MountOption::NoAtime,
    ];
    let session = fuser::spawn_mount(Recorder(Arc::clone(&journal)), at, &config)?;
    Ok((journal, session))
}
