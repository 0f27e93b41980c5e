//! Allows one spool per workspace: a kernel lock, released however the process that holds it ends.

use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode};

use crate::root::OpenRoot;
use crate::{SpoolError, dirs};
use disk::{self, Handle, OpenMode};

/// The number of tries while other processes test the lock, and the pause between two: about a second in all.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// A held lock. Dropping it releases the lock, not closing the last copy of the file: a process that is being started
/// holds copies of all files for a moment.
pub(crate) struct LockGuard {
    file: Handle,
    /// The ledger's directory, locked as well: removing the lock file lets no second daemon in.
    ledger: Option<Handle>,
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        for handle in self.ledger.iter().chain([&self.file]) {
            // The kernel releases it at the end of the process in any case.
            let _ = rustix::fs::flock(handle, FlockOperation::Unlock);
        }
    }
}

/// Takes the lock and writes our process id into the file, for people; the number proves nothing.
pub(crate) fn take(root: &OpenRoot) -> Result<LockGuard, SpoolError> {
    let path = Path::new(dirs::LOCK);
    let opened = match root.disk.open(&root.handle, path, OpenMode::New) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            root.disk.open(&root.handle, path, OpenMode::Write)
        }
        result => result,
    };
    let file = opened.map_err(|source| root.error("open", path, source))?;
    // A process that can open the file can lock it and keep every daemon out. Permissions prevent that where the file
    // system has them.
    let _ = rustix::fs::fchmod(&file, Mode::RUSR | Mode::WUSR);
    if !lock(root, &file).map_err(|source| root.error("lock", path, source))? {
        let named = disk::read_up_to(&*root.disk, &file, 16, 16).unwrap_or_default();
        let pid = std::str::from_utf8(&named)
            .ok()
            .and_then(|text| text.trim().parse().ok());
        return Err(SpoolError::Locked {
            lock: root.path(path),
            pid,
        });
    }
    let ledger = lock_ledger(root)?;
    let pid = format!("{}\n", std::process::id());
    // For people only: a daemon must start on a full disk too, and wait for room.
    let _ = root
        .disk
        .truncate(&file, 0)
        .and_then(|()| disk::write_all(&*root.disk, &file, pid.as_bytes(), 0));
    Ok(LockGuard { file, ledger })
}

/// Locks the ledger's directory. Where directories cannot be locked, the lock file alone must do.
fn lock_ledger(root: &OpenRoot) -> Result<Option<Handle>, SpoolError> {
    let dir = root.dir(dirs::LEDGER.as_ref())?;
    match root.disk.lock(&dir.handle) {
        Ok(true) => Ok(Some(dir.handle)),
        Ok(false) => Err(SpoolError::Locked {
            lock: root.path(&dir.path),
            pid: None,
        }),
        Err(_) => Ok(None),
    }
}

/// Takes the lock; false if another process serves. If a shared lock succeeds, the holder is only testing whether
/// somebody serves and releases it at once.
fn lock(root: &OpenRoot, file: &Handle) -> io::Result<bool> {
    for _ in 0..TRIES {
        if root.disk.lock(file)? {
            return Ok(true);
        }
        if rustix::fs::flock(file, FlockOperation::NonBlockingLockShared).is_err() {
            return Ok(false);
        }
        rustix::fs::flock(file, FlockOperation::Unlock)?;
        std::thread::sleep(PAUSE);
    }
    Ok(false)
}
