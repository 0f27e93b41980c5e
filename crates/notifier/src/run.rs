//! Runs each channel on its own thread, so that one that hangs delays no other.

use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{FixedOffset, Local};
use spool::Layout;
use workspace::atomic_file;
use workspace::clock::{self, Clock};
use workspace::config::{Config, ConfigError};

use crate::channel::{self, Channel, SendError};
use crate::lane::{Lane, LaneError, Step};
use crate::notice::Notice;

/// The pause between two polls of the ledger.
const PAUSE: Duration = Duration::from_millis(500);

/// The pause after a failure to read the ledger.
const TROUBLE: Duration = Duration::from_secs(30);

/// The reason why the notifier sends nothing.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The config is unusable.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The config names no channel.
    #[error("settled.toml names no channel: set command, webhook or desktop in [notify]")]
    NoChannel,
    /// Another notifier runs.
    #[error("another notifier follows this workspace")]
    Running,
    /// The lock cannot be taken.
    #[error("{}: {source}", path.display())]
    Lock {
        /// Its file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A channel cannot go on.
    #[error(transparent)]
    Lane(#[from] LaneError),
    /// A channel does not work.
    #[error("{channel}: {source}")]
    Send {
        /// The channel.
        channel: &'static str,
        /// The cause.
        source: SendError,
    },
}

/// Follows the ledger and sends notices until the process ends. If it is killed while sending a notice, the next
/// process sends that notice again.
pub fn run(root: &Path) -> Result<(), RunError> {
    let (lanes, _lock) = open(root)?;
    let names: Vec<&str> = lanes.iter().map(|(name, _)| *name).collect();
    tracing::info!(root = %root.display(), channels = names.join(","), "notifying");
    std::thread::scope(|threads| {
        for (name, lane) in lanes {
            threads.spawn(move || follow(root, name, lane));
        }
    });
    Ok(())
}

/// Sends every notice that can be sent now. Returns true if none is left.
pub fn once(root: &Path) -> Result<bool, RunError> {
    let (lanes, _lock) = open(root)?;
    let (clock, mut is_idle) = (Clock::start(), true);
    for (_, mut lane) in lanes {
        while lane.step(now(root, clock))? {}
        is_idle &= lane.is_idle();
    }
    Ok(is_idle)
}

/// Sends a test through every channel, even in quiet hours.
pub fn test(root: &Path) -> Result<Vec<&'static str>, RunError> {
    let channels = configured(root)?.1;
    let now = clock::now();
    let notice = Notice::test(root, &clock::new_name(), now);
    for channel in &channels {
        let sent = channel.send(root, &notice, now);
        let word = channel.word();
        sent.map_err(|source| RunError::Send {
            channel: word,
            source,
        })?;
    }
    Ok(channels.iter().map(Channel::word).collect())
}

fn configured(root: &Path) -> Result<(Config, Vec<Channel>), RunError> {
    let config = Config::load(root)?;
    let channels = channel::channels(root, &config.notify);
    if channels.is_empty() {
        return Err(RunError::NoChannel);
    }
    Ok((config, channels))
}

/// The lane of each channel, by the channel's word.
type Lanes = Vec<(&'static str, Lane)>;

fn open(root: &Path) -> Result<(Lanes, std::fs::File), RunError> {
    let (config, channels) = configured(root)?;
    let lock = lock(root)?;
    let lanes = channels.into_iter().map(|channel| {
        let word = channel.word();
        Lane::open(root, channel, &config.notify).map(|lane| (word, lane))
    });
    Ok((lanes.collect::<Result<_, _>>()?, lock))
}

/// Takes the lock of the only notifier of a workspace: two would move the same cursors.
fn lock(root: &Path) -> Result<std::fs::File, RunError> {
    let path = Layout::new(root).own().join("notify.lock");
    let locked =
        atomic_file::try_lock_file(&path).map_err(|source| RunError::Lock { path, source })?;
    locked.ok_or(RunError::Running)
}

fn follow(root: &Path, name: &str, mut lane: Lane) {
    let clock = Clock::start();
    loop {
        match lane.step(now(root, clock)) {
            Ok(true) => {}
            Ok(false) => std::thread::sleep(PAUSE),
            Err(error) => {
                tracing::error!(channel = name, "{error}");
                std::thread::sleep(TROUBLE);
            }
        }
    }
}

fn now(root: &Path, clock: Clock) -> Step {
    let moment = clock.read();
    let local = moment.utc.with_timezone(&Local);
    let offset: FixedOffset = *local.offset();
    Step {
        mono: moment.mono,
        at: moment.utc.with_timezone(&offset),
        serving: spool::is_served(root),
    }
}
