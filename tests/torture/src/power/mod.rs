//! Cuts the power at any instant of a run and restores it: what does the disk still have, and what does the daemon make
//! of it in the next boot?
//!
//! - `history`: the promises, and their times;
//! - `judge`: the independent reader of the remains;
//! - `real`: a real file system of the kernel on a recorded disk (Linux, root, loop devices);
//! - `simulated`: a disk that forgets everything unsynced, for machines without the above, and because it forgets more
//!   than any real one.

pub mod history;
pub mod judge;
#[cfg(target_os = "linux")]
mod real;
mod simulated;

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::str::FromStr;

#[cfg(target_os = "linux")]
pub use real::FileSystem;

/// The options of a run.
pub struct Options<'a> {
    /// The program `settled`; the simulated disk does not use it.
    pub settled: &'a Path,
    /// The number of crash states to try.
    pub states: usize,
    /// The number of rounds of messages in the recorded run.
    pub rounds: usize,
    /// The random seed.
    pub seed: u64,
    /// Called with progress messages.
    pub told: &'a (dyn Fn(&str) + Sync),
}

impl Options<'_> {
    fn tell(&self, what: &str) {
        (self.told)(what);
    }
}

/// The source of crash states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    /// A real file system on a recorded disk.
    #[cfg(target_os = "linux")]
    Real(FileSystem),
    /// A simulated disk.
    Simulated,
}

impl FromStr for Ground {
    type Err = String;

    fn from_str(name: &str) -> Result<Ground, String> {
        match name {
            "simulated" => Ok(Ground::Simulated),
            #[cfg(target_os = "linux")]
            "ext4" => Ok(Ground::Real(FileSystem::Ext4)),
            #[cfg(target_os = "linux")]
            "xfs" => Ok(Ground::Real(FileSystem::Xfs)),
            #[cfg(target_os = "linux")]
            "btrfs" => Ok(Ground::Real(FileSystem::Btrfs)),
            other => Err(format!(
                "there is no ground called `{other}` here: ext4, xfs, btrfs (Linux) or simulated"
            )),
        }
    }
}

impl Ground {
    /// Returns what this machine or this user lacks for it, if anything.
    pub fn lacks(self) -> Option<String> {
        match self {
            #[cfg(target_os = "linux")]
            Ground::Real(file_system) => real::lacks(file_system),
            Ground::Simulated => None,
        }
    }

    /// Records a run and tries crash states of it.
    pub fn run(self, options: &Options<'_>) -> io::Result<Report> {
        match self {
            #[cfg(target_os = "linux")]
            Ground::Real(file_system) => real::run(file_system, options),
            Ground::Simulated => simulated::run(options),
        }
    }
}

/// The results of a run.
#[derive(Debug)]
pub struct Report {
    /// The ground of the run.
    pub ground: &'static str,
    /// The number of recorded writes.
    pub writes: usize,
    /// The number of recorded flushes.
    pub flushes: usize,
    /// The number of records in the run's ledger.
    pub records: usize,
    /// The number of files that readers took while it ran.
    pub taken: usize,
    /// The number of crash states tried.
    pub states: usize,
    /// The number of these with a second cut during the recovery from the first.
    pub second: usize,
    /// The number of files delivered again, each named by the daemon.
    pub again: usize,
    /// The number of files repaired.
    pub mended: usize,
    /// The number of states in which the daemon cut a torn tail off the ledger.
    pub torn: usize,
    /// States that the kernel could not mount, and why.
    pub unmountable: Vec<String>,
    /// The broken promises.
    pub wrong: Vec<String>,
}

/// After this many broken promises another one teaches nothing.
const ENOUGH: usize = 100;

impl Report {
    fn is_hopeless(&self) -> bool {
        self.wrong.len() >= ENOUGH
    }

    fn new(ground: &'static str) -> Report {
        Report {
            ground,
            writes: 0,
            flushes: 0,
            records: 0,
            taken: 0,
            states: 0,
            second: 0,
            again: 0,
            mended: 0,
            torn: 0,
            unmountable: Vec::new(),
            wrong: Vec::new(),
        }
    }
}

/// A directory in memory, if there is one: a run writes thousands of small disks.
fn scratch() -> io::Result<tempfile::TempDir> {
    let memory = Path::new("/dev/shm");
    let builder = || tempfile::Builder::new().prefix("settled-power-").to_owned();
    if memory.is_dir() {
        builder().tempdir_in(memory)
    } else {
        builder().tempdir()
    }
}

/// Runs a program to its end; the error has its output.
fn run_to_end(command: &mut Command) -> io::Result<()> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("{}: {error}", command.get_program().to_string_lossy()),
        )
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(io::Error::other(format!(
        "{}: {said}",
        command.get_program().to_string_lossy()
    )))
}
