//! Runs one validation command in a shell and returns its exit code, its duration and the digest of its output. Others
//! decide if that is good enough.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use message_schema::id::DiffDigest;
use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::drain::drain;
use crate::program;

/// The commands to run in a run's tree before its agent starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validation {
    /// The command lines.
    pub commands: Vec<String>,
    /// The time limit of each command, in seconds.
    pub seconds_max: u64,
}

/// A command and its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandRun {
    /// The command line.
    pub command: String,
    /// The result.
    #[serde(flatten)]
    pub end: CommandEnd,
}

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandEnd {
    /// The exit code; none if a signal or the time limit ended it.
    pub exit: Option<i32>,
    /// The time it took, in milliseconds.
    pub duration_ms: u64,
    /// The SHA-256 of its standard output and standard error together.
    pub output: DiffDigest,
}

/// A command line for a shell.
pub fn shell(line: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", line]);
    shell
}

/// Runs a command in its own process group, which is killed after `limit`.
pub fn run(mut command: Command, limit: Duration) -> io::Result<CommandEnd> {
    let start = Instant::now();
    let (printed, output) = io::pipe()?;
    let mut child = command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()
        .map_err(|error| program::unstarted(&command, &error))?;
    // The command holds the other end of the pipe.
    drop(command);
    let group = Pid::from_child(&child);
    let reading = thread::spawn(move || {
        let mut hasher = Sha256::new();
        drain(printed, |bytes| hasher.update(bytes));
        hasher.finalize()
    });
    let (tell, ended) = channel();
    let waiting = thread::spawn(move || {
        let status = child.wait();
        let _ = tell.send(());
        status
    });
    let is_over_time = ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
    // Processes that the command left running would hold the pipe open.
    let _ = kill_process_group(group, Signal::KILL);
    let status = waiting
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    let digest = reading
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let hex = message_schema::hex::write(&digest);
    Ok(CommandEnd {
        exit: status.code().filter(|_| !is_over_time),
        duration_ms: u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX),
        output: DiffDigest::new(format!("sha256:{hex}")).expect("64 digits"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_for(command: &str, ms: u64) -> CommandEnd {
        let directory = tempfile::tempdir().expect("a directory");
        let mut shell = shell(command);
        shell.current_dir(directory.path());
        run(shell, Duration::from_millis(ms)).expect("a shell")
    }

    #[test]
    fn the_code_and_the_digest_of_all_output_are_told() {
        let ran = run_for("printf a; printf b >&2; exit 3", 10_000);
        let digest = "sha256:fb8e20fc2e4c3f248c60c39bd652f3c1347298bb977b8b4d5903b85055620603";
        assert_eq!((ran.exit, ran.output.as_str()), (Some(3), digest));
    }

    #[test]
    fn one_that_takes_too_long_is_ended_with_all_it_started() {
        let start = Instant::now();
        assert_eq!(run_for("sleep 100 & sleep 100", 100).exit, None);
        assert_eq!(run_for("sleep 100 & exit 0", 10_000).exit, Some(0));
        assert!(start.elapsed() < Duration::from_secs(9));
    }
}
