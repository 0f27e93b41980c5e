//! One call of git within limits. Others write the repository: a pipe in place of a ref would keep git waiting, and twelve
//! objects that name ten billion files would let it fill the memory.

use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdout, Command, ExitStatus};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

/// The most memory that a process of git may allocate, in bytes. Packs are mapped and do not count.
#[cfg(target_os = "linux")]
const MEMORY_MAX: u64 = 2 << 30;

/// The end of a call.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stderr: Vec<u8>,
}

/// Runs git, whose three streams are pipes, with this input. `read` reads its output; what it leaves, git cannot print.
/// Ends git and everything it started after `patience`, and fails with [`io::ErrorKind::TimedOut`].
pub(crate) fn run<T: Send>(
    mut git: Command,
    input: &[u8],
    patience: Duration,
    read: impl FnOnce(ChildStdout) -> io::Result<T> + Send,
) -> io::Result<(T, Ended)> {
    // A process group of its own, so that a kill also ends the children of git: a fetch starts one to read the repository.
    let mut child = git.process_group(0).spawn()?;
    limit_memory(&child);
    let mut stdin = child.stdin.take().expect("it was piped");
    let stdout = child.stdout.take().expect("it was piped");
    let mut stderr = child.stderr.take().expect("it was piped");
    let (wrote, printed, errors, is_late) = thread::scope(|scope| {
        let (reader, all_read) = channel::<()>();
        let of_errors = reader.clone();
        let writing = scope.spawn(move || stdin.write_all(input));
        let reading = scope.spawn(move || {
            let _until_done = reader;
            read(stdout)
        });
        let reading_errors = scope.spawn(move || {
            let _until_done = of_errors;
            let mut all = Vec::new();
            stderr.read_to_end(&mut all).map(|_| all)
        });
        // Nobody sends: the channel closes once both streams are read.
        let is_late = all_read.recv_timeout(patience) == Err(RecvTimeoutError::Timeout);
        if is_late {
            // The child has not been waited for, so no other group has its number.
            let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
        }
        (
            joined(writing),
            joined(reading),
            joined(reading_errors),
            is_late,
        )
    });
    let status = child.wait()?;
    if is_late {
        let seconds = patience.as_secs_f64();
        let what = format!(
            "it took longer than {seconds} s and was ended: look for a pipe in `.git`, a commit with far too many \
             files, or a disk that does not answer"
        );
        return Err(io::Error::new(io::ErrorKind::TimedOut, what));
    }
    match wrote {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let (printed, stderr) = (printed?, errors?);
    Ok((printed, Ended { status, stderr }))
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Limits the memory of git and of the processes that it starts. Where that fails, the time limit remains.
#[cfg(target_os = "linux")]
fn limit_memory(child: &Child) {
    use rustix::process::{Resource, Rlimit, prlimit};
    let limit = Rlimit {
        current: Some(MEMORY_MAX),
        maximum: Some(MEMORY_MAX),
    };
    let _ = prlimit(Some(Pid::from_child(child)), Resource::Data, limit);
}

#[cfg(not(target_os = "linux"))]
fn limit_memory(_: &Child) {}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    /// Runs a shell script with this input and returns what it prints.
    fn printed(script: &str, input: &[u8]) -> io::Result<String> {
        let mut sh = Command::new("sh");
        sh.args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let read = |mut stdout: ChildStdout| {
            let mut text = String::new();
            stdout.read_to_string(&mut text).map(|_| text)
        };
        run(sh, input, Duration::from_secs(60), read).map(|(text, _)| text)
    }

    #[test]
    fn input_that_the_program_does_not_read_is_no_failure() {
        let more_than_a_pipe_holds = vec![b'\n'; 1 << 20];
        let text = printed("echo done", &more_than_a_pipe_holds);
        assert_eq!(text.expect("it ran"), "done\n");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_program_may_allocate_two_gibibytes() {
        // The limit is set before the input is written.
        let kibibytes = printed("read line; ulimit -d", b"\n");
        assert_eq!(kibibytes.expect("it ran"), "2097152\n");
    }
}
