//! Runs the real `git` on this host's copy of the log: without hooks, filters or terminal prompts, and with a time
//! limit for each call.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

/// The time limits of a call that stays on this machine and of one that uses the network.
pub(super) const HERE: Duration = Duration::from_secs(10);
pub(super) const FAR: Duration = Duration::from_secs(30);

/// The repository with the fetched batches and the ones to push. It can be deleted whenever no daemon serves; the
/// remote fills it again.
pub(super) struct Store {
    directory: PathBuf,
}

/// The result of a call.
pub(super) struct Said {
    pub(super) succeeded: bool,
    pub(super) out: Vec<u8>,
    pub(super) err: String,
}

impl Store {
    /// Opens the repository; creates it if it does not exist.
    pub(super) fn open(directory: &Path) -> Result<Store, String> {
        let store = Store {
            directory: directory.to_owned(),
        };
        if !directory.join("HEAD").exists() {
            std::fs::create_dir_all(directory)
                .map_err(|error| format!("{}: {error}", directory.display()))?;
            store.text(&["init", "--quiet", "--bare", "--template=", "."], None)?;
        }
        Ok(store)
    }

    /// Runs a command that stays on this machine; returns its output.
    pub(super) fn bytes(&self, args: &[&str], input: Option<&[u8]>) -> Result<Vec<u8>, String> {
        let said = self.run(args, input, HERE)?;
        if said.succeeded {
            Ok(said.out)
        } else {
            Err(format!("git {}: {}", args[0], said.err))
        }
    }

    /// Runs a command that stays on this machine; returns its one line of output.
    pub(super) fn text(&self, args: &[&str], input: Option<&[u8]>) -> Result<String, String> {
        let out = self.bytes(args, input)?;
        Ok(String::from_utf8_lossy(&out).trim().to_owned())
    }

    /// Runs a command; fails only if git cannot be started or exceeds `limit`.
    pub(super) fn run(
        &self,
        args: &[&str],
        input: Option<&[u8]>,
        limit: Duration,
    ) -> Result<Said, String> {
        let mut command = self.command(args);
        command.stdin(if input.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        });
        let mut child = command.spawn().map_err(|error| format!("git: {error}"))?;
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let pipe = child.stdin.take();
        let input = input.map(<[u8]>::to_vec);
        std::thread::spawn(move || {
            if let (Some(mut pipe), Some(input)) = (pipe, input) {
                // A git that stops reading reports why itself.
                let _ = pipe.write_all(&input);
            }
        });
        let (give, take) = mpsc::channel::<std::io::Result<Output>>();
        std::thread::spawn(move || {
            let _ = give.send(child.wait_with_output());
        });
        match take.recv_timeout(limit) {
            Ok(Ok(output)) => Ok(Said {
                succeeded: output.status.success(),
                err: first_line(&output.stderr),
                out: output.stdout,
            }),
            Ok(Err(error)) => Err(format!("git: {error}")),
            Err(_) => {
                // The group includes what git started, such as ssh.
                if let Some(group) = group {
                    let _ = kill_process_group(group, Signal::KILL);
                }
                Err(format!("git {}: no answer in {limit:?}", args[0]))
            }
        }
    }

    fn command(&self, args: &[&str]) -> Command {
        use std::os::unix::process::CommandExt as _;
        let mut command = Command::new("git");
        command
            .args(["-c", "core.hooksPath=/dev/null"])
            .args(["-c", "gc.auto=0", "-c", "maintenance.auto=false"])
            .args(["-c", "push.gpgSign=false", "-c", "protocol.ext.allow=never"])
            .args([
                "-c",
                "core.fsync=committed",
                "-c",
                "transfer.fsckObjects=true",
            ])
            .args(args)
            .current_dir(&self.directory)
            .env("GIT_DIR", ".")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("LC_ALL", "C")
            .env_remove("GIT_WORK_TREE")
            .env_remove("GIT_INDEX_FILE")
            .env_remove("GIT_OBJECT_DIRECTORY")
            .env_remove("GIT_NAMESPACE")
            .process_group(0)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if std::env::var_os("GIT_SSH_COMMAND").is_none() {
            command.env(
                "GIT_SSH_COMMAND",
                "ssh -o BatchMode=yes -o ConnectTimeout=5",
            );
        }
        command
    }
}

fn first_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let telling = lines
        .iter()
        .find(|line| line.starts_with("fatal:") || line.starts_with("error:"));
    telling
        .or(lines.first())
        .map_or_else(String::new, |line| (*line).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_git_says_the_line_that_tells_why_is_kept() {
        for (said, kept) in [
            ("warning: x\nfatal: no route\nerror: y\n", "fatal: no route"),
            ("hint: x\n  error: refused \n", "error: refused"),
            ("\n\n  Permission denied\nmore\n", "Permission denied"),
            ("\n", ""),
        ] {
            assert_eq!(first_line(said.as_bytes()), kept);
        }
    }

    #[test]
    fn a_command_is_fed_says_why_it_fails_and_is_ended_in_time() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::open(&directory.path().join("log.git")).expect("a repository");
        let blob = store.text(&["hash-object", "-w", "--stdin"], Some(b"text\n"));
        let blob = blob.expect("an object");
        let read = store.bytes(&["cat-file", "blob", &blob], None);
        assert_eq!(read, Ok(b"text\n".to_vec()));
        let why = store.bytes(&["cat-file", "blob", "HEAD"], None);
        assert!(
            why.clone()
                .is_err_and(|why| why.starts_with("git cat-file: fatal: ")),
            "{why:?}"
        );
        // It waits for input that never comes.
        let alias = ["-c", "alias.wait=!sleep 60", "wait"];
        let why = store.run(&alias, None, Duration::from_millis(300));
        let why = why.err().expect("no answer");
        assert_eq!(why, "git -c: no answer in 300ms");
        // An existing repository is opened, not created again.
        let again = Store::open(&directory.path().join("log.git")).expect("a repository");
        assert_eq!(again.bytes(&["cat-file", "blob", &blob], None), read);
    }
}
