//! One spool per workspace: a lock of the kernel, which ends with the process that holds it, however that ends.

use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode};

use crate::root::OpenRoot;
use crate::{SpoolError, dirs};
use disk::{self, Handle, OpenMode};

/// The number of tries while onlookers hold the lock, and the pause in between: about a second.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// A lock that is held. It is given back when it is dropped, not when the last copy of the file is closed: a process
/// that is being started holds copies of all files for a moment.
pub(crate) struct LockGuard {
    file: Handle,
    /// The ledger's directory, locked as well: removing the lock file lets no second daemon in.
    ledger: Option<Handle>,
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        for handle in self.ledger.iter().chain([&self.file]) {
            // The kernel gives it back at the end of the process in any case.
            let _ = rustix::fs::flock(handle, FlockOperation::Unlock);
        }
    }
}

/// Takes the lock and writes our process id into it, for people; the number proves nothing.
pub(crate) fn take(root: &OpenRoot) -> Result<LockGuard, SpoolError> {
    let path = Path::new(dirs::LOCK);
    let opened = match root.disk.open(&root.handle, path, OpenMode::New) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            root.disk.open(&root.handle, path, OpenMode::Write)
        }
        result => result,
    };
    let file = opened.map_err(|source| root.error("open", path, source))?;
    // A process that can open the file can lock it and keep every daemon out. Permissions prevent that where they can be set.
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
    // For people only: a daemon also starts on a full disk and waits for room.
    let _ = root
        .disk
        .truncate(&file, 0)
        .and_then(|()| disk::write_all(&*root.disk, &file, pid.as_bytes(), 0));
    Ok(LockGuard { file, ledger })
}

/// Locks the ledger's directory. Where directories cannot be locked the lock file has to do.
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

/// Takes the lock; false if another process serves. One that can be shared is an onlooker's, who asks whether somebody
/// serves and gives it back at once.
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
