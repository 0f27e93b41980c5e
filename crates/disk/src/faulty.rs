//! A disk for tests that stops or fails at a chosen change.
//!
//! It uses a real directory, so the next process can open what a "killed" one left behind. A kill loses nothing that
//! was written, so syncs are only counted; a test removes what a power cut would lose.

use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use os_calls::Writer;

use crate::FileName;
use crate::os::Os;
use crate::{Disk, Handle, OpenMode, Stat};

/// The fault, and the change at which it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskFault {
    /// The process is killed right after change `n` (from 1): every later call fails.
    StopAfter(u64),
    /// The process is killed in the middle of change `n`: half of a write is done, of anything else nothing.
    StopWithin(u64),
    /// Change `n` fails with this `errno` and has no effect; everything else works.
    Fail(u64, i32),
    /// Change `n` fails with this `errno`, a write after half of its bytes; everything else works.
    FailWithin(u64, i32),
    /// From change `n` on, each change fails with this `errno`.
    FailFrom(u64, i32),
    /// Look `n`, a call that changes nothing, fails with this `errno`; everything else works.
    FailLook(u64, i32),
    /// Every read and every write takes at most this many bytes.
    Short(usize),
    /// Every rename that must not replace fails with this `errno`; everything else works.
    FailRename(i32),
}

const RENAME: &str = "rename";

#[derive(Debug, Default)]
struct FaultyState {
    fault: Option<DiskFault>,
    changes: u64,
    looks: u64,
    stopped: bool,
    hides_writers: bool,
    boot_id: String,
    log: Vec<String>,
}

/// A real directory behind a fault. Every verb that changes something is counted, in call order.
#[derive(Debug, Default)]
pub struct FaultyDisk {
    state: Mutex<FaultyState>,
}

enum CallFate {
    Do,
    DoThenStop,
    /// Half of a write, nothing of anything else, and then this error.
    Half(io::Error),
}

impl FaultyDisk {
    /// Makes a disk without a fault, in a boot of this name.
    pub fn new(boot_id: &str) -> FaultyDisk {
        FaultyDisk {
            state: Mutex::new(FaultyState {
                boot_id: boot_id.to_owned(),
                ..FaultyState::default()
            }),
        }
    }

    /// Sets the fault and restarts the counts.
    pub fn set(&self, fault: Option<DiskFault>) {
        let mut state = self.state();
        state.fault = fault;
        state.changes = 0;
        state.looks = 0;
        state.log.clear();
    }

    /// Makes the writers of files unknown from now on, as on a file system without leases.
    pub fn hide_writers(&self) {
        self.state().hides_writers = true;
    }

    /// Returns the number of changes tried since the fault was set.
    pub fn changes(&self) -> u64 {
        self.state().changes
    }

    /// Returns the number of looks tried since the fault was set.
    pub fn looks(&self) -> u64 {
        self.state().looks
    }

    /// Returns whether the process would be dead by now.
    pub fn stopped(&self) -> bool {
        self.state().stopped
    }

    /// Returns the changes tried since the fault was set, for the message of a failed test.
    pub fn log(&self) -> Vec<String> {
        self.state().log.clone()
    }

    fn state(&self) -> MutexGuard<'_, FaultyState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a look.
    fn alive(&self) -> io::Result<()> {
        let mut state = self.state();
        state.looks += 1;
        match state.fault {
            _ if state.stopped => Err(dead()),
            Some(DiskFault::FailLook(n, errno)) if n == state.looks => {
                Err(io::Error::from_raw_os_error(errno))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Returns how many of these bytes one call takes.
    fn taken(&self, bytes: usize) -> usize {
        match self.state().fault {
            Some(DiskFault::Short(most)) => bytes.min(most),
            Some(_) | None => bytes,
        }
    }

    fn judge(&self, verb: &str, name: &Path) -> io::Result<CallFate> {
        let mut state = self.state();
        if state.stopped {
            return Err(dead());
        }
        state.changes += 1;
        let now = state.changes;
        state.log.push(format!("{now} {verb} {}", name.display()));
        match state.fault {
            Some(DiskFault::StopAfter(n)) if n == now => {
                state.stopped = true;
                Ok(CallFate::DoThenStop)
            }
            Some(DiskFault::StopWithin(n)) if n == now => {
                state.stopped = true;
                Ok(CallFate::Half(dead()))
            }
            Some(DiskFault::FailWithin(n, errno)) if n == now => {
                Ok(CallFate::Half(io::Error::from_raw_os_error(errno)))
            }
            Some(DiskFault::Fail(n, errno)) if n == now => Err(io::Error::from_raw_os_error(errno)),
            Some(DiskFault::FailFrom(n, errno)) if n <= now => {
                Err(io::Error::from_raw_os_error(errno))
            }
            Some(DiskFault::FailRename(errno)) if verb == RENAME => {
                Err(io::Error::from_raw_os_error(errno))
            }
            Some(
                DiskFault::StopAfter(_)
                | DiskFault::StopWithin(_)
                | DiskFault::Fail(..)
                | DiskFault::FailFrom(..)
                | DiskFault::FailWithin(..)
                | DiskFault::FailLook(..)
                | DiskFault::Short(_)
                | DiskFault::FailRename(_),
            )
            | None => Ok(CallFate::Do),
        }
    }

    fn change<T>(
        &self,
        verb: &str,
        name: &Path,
        act: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        match self.judge(verb, name)? {
            CallFate::Do => act(),
            CallFate::DoThenStop => act().and_then(|_| Err(dead())),
            CallFate::Half(error) => Err(error),
        }
    }
}

fn dead() -> io::Error {
    io::Error::other("the process was killed here")
}

impl Disk for FaultyDisk {
    fn open_root(&self, path: &Path) -> io::Result<Handle> {
        self.alive()?;
        Os.open_root(path)
    }

    fn open_dir(&self, at: &Handle, path: &Path) -> io::Result<Handle> {
        self.alive()?;
        Os.open_dir(at, path)
    }

    fn open_beneath(&self, at: &Handle, path: &Path) -> io::Result<Handle> {
        self.alive()?;
        Os.open_beneath(at, path)
    }

    fn open(&self, dir: &Handle, name: &Path, how: OpenMode) -> io::Result<Handle> {
        match how {
            OpenMode::Read | OpenMode::Write => {
                self.alive()?;
                Os.open(dir, name, how)
            }
            OpenMode::New => self.change("create", name, || Os.open(dir, name, how)),
        }
    }

    fn stat(&self, file: &Handle) -> io::Result<Stat> {
        self.alive()?;
        Os.stat(file)
    }

    fn stat_at(&self, dir: &Handle, name: &Path) -> io::Result<Stat> {
        self.alive()?;
        Os.stat_at(dir, name)
    }

    fn list(&self, dir: &Handle) -> io::Result<Vec<FileName>> {
        self.alive()?;
        Os.list(dir)
    }

    fn read_at(&self, file: &Handle, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.alive()?;
        let taken = self.taken(buffer.len());
        Os.read_at(file, &mut buffer[..taken], offset)
    }

    fn writer(&self, file: &Handle) -> io::Result<Writer> {
        self.alive()?;
        if self.state().hides_writers {
            return Ok(Writer::Unknown);
        }
        Os.writer(file)
    }

    fn lock(&self, file: &Handle) -> io::Result<bool> {
        self.alive()?;
        Os.lock(file)
    }

    fn boot_id(&self, _root: &Handle) -> io::Result<String> {
        self.alive()?;
        Ok(self.state().boot_id.clone())
    }

    fn make_dir(&self, at: &Handle, path: &Path) -> io::Result<()> {
        self.change("make", path, || Os.make_dir(at, path))
    }

    fn write_at(&self, file: &Handle, bytes: &[u8], offset: u64) -> io::Result<usize> {
        match self.judge("write", Path::new(""))? {
            CallFate::Do => Os.write_at(file, &bytes[..self.taken(bytes.len())], offset),
            CallFate::DoThenStop => Os.write_at(file, bytes, offset).and_then(|_| Err(dead())),
            CallFate::Half(error) => Os
                .write_at(file, &bytes[..bytes.len() / 2], offset)
                .and(Err(error)),
        }
    }

    fn truncate(&self, file: &Handle, len: u64) -> io::Result<()> {
        self.change("truncate", Path::new(""), || Os.truncate(file, len))
    }

    fn rename_new(&self, from: &Handle, old: &Path, to: &Handle, new: &Path) -> io::Result<()> {
        self.change(RENAME, new, || Os.rename_new(from, old, to, new))
    }

    fn rename_over(&self, dir: &Handle, old: &Path, new: &Path) -> io::Result<()> {
        self.change("replace", new, || Os.rename_over(dir, old, new))
    }

    fn remove(&self, dir: &Handle, name: &Path) -> io::Result<()> {
        self.change("remove", name, || Os.remove(dir, name))
    }

    fn sync_data(&self, file: &Handle) -> io::Result<()> {
        self.change("sync", Path::new(""), || Os.stat(file).map(|_| ()))
    }

    fn sync_dir(&self, dir: &Handle) -> io::Result<()> {
        self.change("sync directory", Path::new(""), || Os.stat(dir).map(|_| ()))
    }

    fn sync_file_system(&self, on: &Handle) -> io::Result<bool> {
        self.change("sync file system", Path::new(""), || {
            Os.stat(on).map(|_| true)
        })
    }
}
