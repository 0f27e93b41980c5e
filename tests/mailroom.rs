//! A mailroom in a temporary directory, and the real daemon that serves it.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::{binaries, list, names, read, wait, write};

/// A workspace, and the directory of its daemons' logs. Dropping the value removes both.
pub struct Mailroom {
    directory: TempDir,
    root: PathBuf,
}

impl Mailroom {
    /// Makes a directory for a workspace that does not exist yet.
    pub fn absent() -> Self {
        let directory = crate::scratch();
        let root = directory.path().join("mailroom");
        Self { directory, root }
    }

    /// Makes a workspace with these agents.
    pub fn new(agents: &[&str]) -> Self {
        Self::absent().with(agents)
    }

    /// Like [`new`](Self::new), in the system's temporary directory: the sandboxes of some programs let their commands
    /// write only there.
    pub fn on_disk(agents: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        Self::at(directory, "mailroom").with(agents)
    }

    fn with(self, agents: &[&str]) -> Self {
        let output = self.run(&["init", "--agents", &agents.join(",")]);
        assert!(output.status.success(), "{}", said(&output));
        self
    }

    /// Wraps a workspace at this path below a directory, which is removed with the value.
    pub fn at(directory: TempDir, path: &str) -> Self {
        let root = directory.path().join(path);
        Self { directory, root }
    }

    /// Keeps the directory, for inspection.
    pub fn keep(self) -> PathBuf {
        self.directory.keep()
    }

    /// Returns the workspace.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns a directory of an agent: `outbox`, `inbox`, `sent`, `dead_letter` or `archive`.
    pub fn agent(&self, agent: &str, directory: &str) -> PathBuf {
        self.root.join("agents").join(agent).join(directory)
    }

    /// Writes a message into an outbox in place.
    pub fn post(&self, agent: &str, file: &str, text: &str) {
        write(self.agent(agent, "outbox").join(file), text);
    }

    /// Writes a file below the root.
    pub fn put(&self, path: &str, text: &str) {
        write(self.root.join(path), text);
    }

    /// Runs `settled ARGS --root ROOT` to its end.
    pub fn run(&self, args: &[&str]) -> Output {
        settled()
            .args(args)
            .arg("--root")
            .arg(&self.root)
            .output()
            .expect("settled can be run")
    }

    /// Runs a line in a shell whose `settled` and `validate-message` are the tested ones.
    pub fn shell(&self, line: &str) -> Output {
        let others = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{others}", binaries::directory().display());
        let mut shell = Command::new("sh");
        shell
            .args(["-c", line])
            .env("PATH", path)
            .env_remove("SETTLED_ROOT")
            .env_remove("SETTLED_AGENT");
        shell
            .stdin(Stdio::null())
            .output()
            .expect("there is a shell")
    }

    /// Returns the answer of `settled ARGS --root ROOT --json`.
    pub fn json(&self, args: &[&str]) -> Value {
        let output = self.run(&[args, &["--json"]].concat());
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            panic!(
                "{args:?} prints no JSON document ({error}): {}",
                said(&output)
            )
        })
    }

    /// Runs `settled ARGS --root ROOT` at a terminal on which this line is typed.
    pub fn at_terminal(&self, args: &[&str], typed: &str) -> Output {
        let (program, root) = (
            binaries::settled().display().to_string(),
            self.root.display().to_string(),
        );
        let words = [&[program.as_str()], args, &["--root", &root]].concat();
        let line = words
            .iter()
            .map(|word| format!("'{word}'"))
            .collect::<Vec<_>>()
            .join(" ");
        let mut script = Command::new("script");
        script
            .args(["-qec", &line, "/dev/null"])
            .env_remove("SETTLED_ROOT")
            .stdin(Stdio::piped());
        let started = script.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = started.unwrap_or_else(|error| {
            panic!("`script` makes the terminal for these tests and cannot be run: {error} (Debian: apt install bsdutils)")
        });
        // The end of the input would close the terminal, so keep it open until the command ends.
        let mut keyboard = child.stdin.take().expect("it was piped");
        writeln!(keyboard, "{typed}").expect("the terminal takes a line");
        let output = child.wait_with_output().expect("it is our child");
        drop(keyboard);
        output
    }

    /// Judges and delivers everything that is there.
    pub fn once(&self) -> Output {
        self.run(&["serve", "--once"])
    }

    /// Returns the data of `settled status --json`.
    pub fn status(&self) -> Value {
        self.json(&["status"])["data"].take()
    }

    /// Starts `settled up` and waits until it serves.
    pub fn up(&self, agents: &[&str]) -> Daemon {
        self.start(&["up"], &["--agents", &agents.join(",")])
    }

    /// Starts `settled serve` and waits until it serves.
    pub fn serve(&self) -> Daemon {
        self.start(&["serve"], &[])
    }

    fn start(&self, before: &[&str], after: &[&str]) -> Daemon {
        let daemon = self.spawn(before, after);
        wait::until("the daemon to serve", || daemon.log().contains("serving"));
        daemon
    }

    /// Starts `settled serve` without waiting.
    pub fn spawn_serve(&self) -> Daemon {
        self.spawn(&["serve"], &[])
    }

    /// Starts `settled serve` without file system events, and waits until it serves.
    pub fn serve_without_events(&self) -> Daemon {
        let script = "echo 0 > /proc/sys/user/max_inotify_instances && exec \"$0\" serve \"$1\"";
        let mut command = Command::new("unshare");
        command
            .args(["-Ur", "sh", "-c", script])
            .arg(binaries::settled());
        let daemon = self.spawn_as(command, &[], &[]);
        wait::until("the daemon to serve (needs user namespaces)", || {
            daemon.log().contains("serving")
        });
        assert!(daemon.log().contains("no events from the file system"));
        daemon
    }

    /// Starts `settled serve` with these environment variables, without waiting.
    pub fn spawn_with(&self, settings: &[(&str, &str)]) -> Daemon {
        let mut command = settled();
        command.envs(settings.iter().copied());
        self.spawn_as(command, &["serve"], &[])
    }

    fn spawn(&self, before: &[&str], after: &[&str]) -> Daemon {
        self.spawn_as(settled(), before, after)
    }

    fn spawn_as(&self, mut command: Command, before: &[&str], after: &[&str]) -> Daemon {
        let log = tempfile::Builder::new()
            .prefix("log-")
            .tempfile_in(self.directory.path());
        let (file, log) = log
            .expect("a log file")
            .keep()
            .expect("a log file that stays");
        let out = log.with_extension("out");
        let child = command
            .args(before)
            .arg(&self.root)
            .args(after)
            .stdout(File::create(&out).expect("a file for the output"))
            .stderr(file)
            .spawn()
            .expect("settled can be run");
        Daemon { child, log, out }
    }

    /// Returns the files in an agent's directory whose message has this id.
    pub fn with_id(&self, agent: &str, directory: &str, id: &str) -> Vec<PathBuf> {
        let line = format!("id: \"{id}\"\n");
        let holds = |path: &PathBuf| {
            std::fs::read_to_string(path).is_ok_and(|text| text.starts_with(&line))
        };
        list(self.agent(agent, directory))
            .into_iter()
            .filter(holds)
            .collect()
    }

    /// Waits until the file is in the inbox, and returns its text.
    pub fn delivered(&self, agent: &str, file: &str) -> String {
        let path = self.agent(agent, "inbox").join(file);
        wait::until(&format!("{file} in the inbox of {agent}"), || path.exists());
        read(path)
    }

    /// Waits until the outbox is empty, so that everything in it is judged and put away.
    pub fn cleared(&self, agent: &str) {
        let outbox = self.agent(agent, "outbox");
        wait::until(&format!("the outbox of {agent} to be empty"), || {
            names(&outbox).is_empty()
        });
    }

    /// Waits for the refusal of a file and returns its report.
    pub fn refused(&self, agent: &str, file: &str) -> Value {
        let dead_letter = self.agent(agent, "dead_letter");
        let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
        let report = dead_letter.join(format!("{stem}.report.yaml"));
        wait::until(
            &format!("{file} and its report in dead_letter/ of {agent}"),
            || report.exists() && dead_letter.join(file).exists(),
        );
        yaml(&report)
    }

    /// Returns the notices with this code in the agent's inbox.
    pub fn notices(&self, agent: &str, code: &str) -> Vec<PathBuf> {
        let is_notice = |path: &PathBuf| {
            let message = yaml(path);
            message["from"] == "settled"
                && message["type"] == "notification"
                && message["subject"]
                    .as_str()
                    .is_some_and(|subject| subject.contains(code))
        };
        list(self.agent(agent, "inbox"))
            .into_iter()
            .filter(is_notice)
            .collect()
    }
}

/// A running daemon; dropping the value kills it.
pub struct Daemon {
    child: Child,
    log: PathBuf,
    out: PathBuf,
}

impl Daemon {
    /// Returns its standard error so far.
    pub fn log(&self) -> String {
        read(&self.log)
    }

    /// Returns its standard output so far.
    pub fn out(&self) -> String {
        read(&self.out)
    }

    /// Returns its pid.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Sends SIGHUP, on which the daemon reloads its config.
    pub fn hang_up(&self) {
        kill_process(Pid::from_child(&self.child), Signal::HUP).expect("the daemon still runs");
    }

    /// Waits until it ends without our doing.
    pub fn ended(mut self) -> ExitStatus {
        wait::for_some("the end of the daemon", || {
            self.child.try_wait().expect("it is our child")
        })
    }

    /// Sends SIGINT and waits for its end.
    pub fn interrupt(self) -> ExitStatus {
        self.end(Signal::INT)
    }

    /// Sends SIGTERM and waits for its end.
    pub fn terminate(self) -> ExitStatus {
        self.end(Signal::TERM)
    }

    /// Kills it as the kernel does when memory runs out, and waits for its end.
    pub fn kill(self) -> ExitStatus {
        self.end(Signal::KILL)
    }

    fn end(mut self, signal: Signal) -> ExitStatus {
        kill_process(Pid::from_child(&self.child), signal).expect("the daemon still runs");
        self.child.wait().expect("it is our child")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It has ended, or a test failed and the daemon must not outlive it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the command `settled` without the user's settings.
pub fn settled() -> Command {
    let mut command = Command::new(binaries::settled());
    command
        .env_remove("SETTLED_ROOT")
        .env_remove("SETTLED_AGENT")
        .env_remove("SETTLED_LOG")
        .env_remove("SETTLED_LOG_FORMAT")
        .env_remove("NOTIFY_SOCKET")
        .env_remove("WATCHDOG_USEC")
        .env_remove("WATCHDOG_PID")
        .env_remove("JOURNAL_STREAM")
        .stdin(Stdio::null());
    command
}

/// Reads a YAML file with another program's parser.
pub fn yaml(path: &Path) -> Value {
    serde_yaml::from_str(&read(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns all output of a command, for the message of a failure.
pub fn said(output: &Output) -> String {
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    format!("{}\n--- stdout\n{out}--- stderr\n{err}", output.status)
}
