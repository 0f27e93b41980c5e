//! Runs the real `git` on this host's copy of the log: without hooks, filters or terminal prompts, and with a time
//! limit for each call.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// The time limits of a call that stays on this machine and of one that uses the network.
pub(super) const HERE: Duration = Duration::from_secs(10);
pub(super) const FAR: Duration = Duration::from_secs(30);

/// The time after which another call begins beside a late one. A connection whose packets a cut network lost may hang long
/// after the network works again; a new connection works at once.
const BESIDE: Duration = Duration::from_secs(2);

/// The age from which a lock is a leftover: every call that takes one ends, or is killed, within `FAR`.
const LOCK_AGE_MAX: Duration = Duration::from_secs(60);

/// The locks that git may leave behind besides that of the workspace's ref.
const LOCKS: [&str; 4] = [
    "HEAD.lock",
    "config.lock",
    "packed-refs.lock",
    "shallow.lock",
];

/// Settings of the user that change the meaning or the format of what our calls print, or how they keep objects. All
/// other settings stay: credential helpers, ssh, proxies and `insteadOf` decide whether the remote can be reached.
const OWN_SETTINGS: [&str; 20] = [
    "core.hooksPath=/dev/null",
    "gc.auto=0",
    "maintenance.auto=false",
    "push.gpgSign=false",
    "push.pushOption=",
    "push.recurseSubmodules=no",
    "protocol.ext.allow=never",
    "core.fsync=committed",
    "core.fsyncMethod=fsync",
    "transfer.fsckObjects=true",
    "fetch.fsckObjects=true",
    "fetch.prune=false",
    "fetch.pruneTags=false",
    "i18n.logOutputEncoding=UTF-8",
    "log.showSignature=false",
    "color.ui=false",
    "color.push=false",
    "color.remote=false",
    "color.transport=false",
    "core.sharedRepository=umask",
];

/// Variables that name another repository, or change how git sees this one. A hook or an alias that starts settled has
/// some of them.
const FOREIGN_VARIABLES: [&str; 14] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// The repository with the fetched batches and the ones to push. It can be deleted whenever no daemon serves; the
/// remote fills it again.
pub(super) struct Store {
    directory: PathBuf,
    /// The user's own ssh, from `core.sshCommand`, which `GIT_SSH_COMMAND` would override.
    has_own_ssh: bool,
}

/// The result of a call.
pub(super) struct Said {
    pub(super) succeeded: bool,
    pub(super) out: Vec<u8>,
    pub(super) err: String,
}

/// A running call.
struct Call {
    number: u32,
    group: Option<Pid>,
}

/// The end of a call, with its number.
type CallEnd = (u32, Result<Said, String>);

impl Call {
    /// Waits for the answer of the only call, and kills it if there is none within the limit.
    fn answer(
        &self,
        ended: &Receiver<CallEnd>,
        args: &[&str],
        limit: Duration,
    ) -> Result<Said, String> {
        if let Ok((_, said)) = ended.recv_timeout(limit) {
            return said;
        }
        self.kill();
        Err(no_answer(args, limit))
    }

    /// Kills the process with what it started, such as ssh.
    fn kill(&self) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Store {
    /// Opens the repository; creates it if it does not exist, or if git cannot use it.
    pub(super) fn open(directory: &Path) -> Result<Store, String> {
        let mut store = Store {
            directory: directory.to_owned(),
            has_own_ssh: false,
        };
        if !store.is_whole() {
            // A kill or a power cut during `init` leaves a part of a repository. Another `init` adds what is missing,
            // and does no harm to a process that is creating it now.
            store.init()?;
        }
        if !store.is_whole() {
            // `init` keeps damaged files, such as an empty HEAD. Nobody can use the copy, and the remote has everything.
            std::fs::remove_dir_all(directory).map_err(|error| store.failed(&error))?;
            store.init()?;
        }
        let ssh = store.run(&["config", "--get", "core.sshCommand"], None, HERE)?;
        store.has_own_ssh = ssh.succeeded;
        Ok(store)
    }

    fn init(&self) -> Result<(), String> {
        std::fs::create_dir_all(&self.directory).map_err(|error| self.failed(&error))?;
        let init = ["init", "--quiet", "--bare", "--template=", "."];
        self.text(&init, None).map(drop)
    }

    /// True if git takes the directory for a repository.
    fn is_whole(&self) -> bool {
        self.directory.join("HEAD").exists()
            && self
                .run(&["rev-parse", "--git-dir"], None, HERE)
                .is_ok_and(|said| said.succeeded)
    }

    /// Removes the locks that a killed git left: nothing else does, and each later fetch would fail.
    pub(super) fn remove_old_locks(&self, reference: &str) {
        let of_ref = format!("{reference}.lock");
        for lock in LOCKS.into_iter().chain([&*of_ref]) {
            let path = self.directory.join(lock);
            let changed = path.metadata().and_then(|data| data.modified());
            // A time in the future comes from a clock that was wrong then or is wrong now.
            let age = changed.map(|at| at.elapsed().unwrap_or_else(|ahead| ahead.duration()));
            if age.is_ok_and(|age| age > LOCK_AGE_MAX) {
                // The next fetch reports a lock that cannot be removed.
                let _ = std::fs::remove_file(&path);
            }
        }
    }

    fn failed(&self, error: &std::io::Error) -> String {
        format!("{}: {error}", self.directory.display())
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
        let (give, ended) = mpsc::channel();
        let call = self.start(args, input, 0, give)?;
        call.answer(&ended, args, limit)
    }

    /// Runs a command that uses the network and must not run twice at once, such as a fetch, which locks its ref. Calls `tell`
    /// if it has not ended in the `usual` time.
    pub(super) fn run_alone(
        &self,
        args: &[&str],
        usual: Duration,
        tell: impl FnOnce(),
    ) -> Result<Said, String> {
        let (give, ended) = mpsc::channel();
        let call = self.start(args, None, 0, give)?;
        if let Ok((_, said)) = ended.recv_timeout(usual) {
            return said;
        }
        tell();
        call.answer(&ended, args, FAR)
    }

    /// Runs a command that uses the network. If it has not ended in the `usual` time, calls `tell` and lets it go on, for the
    /// remote may be slow. Beside it runs a second call, which a new one replaces every [`BESIDE`]; the first call to end
    /// answers. So the command must be safe to run twice at once. Returns true with the answer if a second call ran.
    pub(super) fn run_far(
        &self,
        args: &[&str],
        usual: Duration,
        tell: impl FnOnce(),
    ) -> Result<(Said, bool), String> {
        let (give, ended) = mpsc::channel();
        let began = Instant::now();
        let mut running = vec![self.start(args, None, 0, give.clone())?];
        let mut pause = usual;
        let mut tell = Some(tell);
        let answer = loop {
            match ended.recv_timeout(pause) {
                Ok((number, said)) => {
                    let mut calls = running.iter();
                    if let Some(index) = calls.position(|call| call.number == number) {
                        running.remove(index);
                        break said.map(|said| (said, number > 0 || !running.is_empty()));
                    }
                    // A call that the code below killed.
                }
                Err(_) if began.elapsed() >= FAR => break Err(no_answer(args, FAR)),
                Err(_) => match tell.take() {
                    Some(tell) => {
                        tell();
                        pause = BESIDE;
                    }
                    None => {
                        let number = running.last().map_or(0, |call| call.number) + 1;
                        running.drain(1..).for_each(|call| call.kill());
                        running.push(self.start(args, None, number, give.clone())?);
                    }
                },
            }
        };
        running.iter().for_each(Call::kill);
        answer
    }

    /// Starts a command and sends its end to `give`.
    fn start(
        &self,
        args: &[&str],
        input: Option<&[u8]>,
        number: u32,
        give: Sender<CallEnd>,
    ) -> Result<Call, String> {
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
        std::thread::spawn(move || {
            let said = child.wait_with_output().map(|output| Said {
                succeeded: output.status.success(),
                err: first_line(&output.stderr),
                out: output.stdout,
            });
            let _ = give.send((number, said.map_err(|error| format!("git: {error}"))));
        });
        Ok(Call { number, group })
    }

    fn command(&self, args: &[&str]) -> Command {
        use std::os::unix::process::CommandExt as _;
        let mut command = Command::new("git");
        for setting in OWN_SETTINGS {
            command.args(["-c", setting]);
        }
        for variable in FOREIGN_VARIABLES {
            command.env_remove(variable);
        }
        command
            .args(args)
            .current_dir(&self.directory)
            .env("GIT_DIR", ".")
            .env("GIT_TERMINAL_PROMPT", "0")
            // They override `init.defaultObjectFormat` and `init.defaultRefFormat`: every host has the same format.
            .env("GIT_DEFAULT_HASH", "sha1")
            .env("GIT_DEFAULT_REF_FORMAT", "files")
            .env("LC_ALL", "C")
            .process_group(0)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let is_named = |variable| std::env::var_os(variable).is_some();
        if !self.has_own_ssh && !is_named("GIT_SSH_COMMAND") && !is_named("GIT_SSH") {
            command.env(
                "GIT_SSH_COMMAND",
                "ssh -o BatchMode=yes -o ConnectTimeout=5",
            );
        }
        command
    }
}

fn no_answer(args: &[&str], limit: Duration) -> String {
    format!("git {}: no answer in {limit:?}", args[0])
}

fn first_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let is_telling = |line: &&&str| line.starts_with("fatal:") || line.starts_with("error:");
    // Git prints this line after the words of ssh, and gives no reason of its own.
    let is_vague = |line: &&str| **line == *"fatal: Could not read from remote repository.";
    let of_ssh = lines.iter().position(is_vague);
    let of_ssh = of_ssh.and_then(|vague| lines[..vague].last());
    let mut telling = lines.iter().filter(is_telling);
    telling
        .find(|line| !is_vague(line))
        .or(of_ssh)
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
            (
                "Warning: x\nssh: no route\nfatal: Could not read from remote repository.\n",
                "ssh: no route",
            ),
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

    #[test]
    fn beside_a_late_command_another_one_answers() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::open(&directory.path().join("log.git")).expect("a repository");
        // The first call never ends, like a call that began before the network was cut.
        let alias = [
            "-c",
            "alias.first=!mkdir first 2>/dev/null && sleep 60; echo done",
            "first",
        ];
        let (began, mut late) = (Instant::now(), None);
        let usual = Duration::from_millis(300);
        let said = store.run_far(&alias, usual, || late = Some(began.elapsed()));
        let (said, was_beside) = said.expect("an answer");
        assert!(said.succeeded && was_beside, "{}", said.err);
        assert_eq!(said.out, b"done\n");
        assert!(late.is_some_and(|late| late >= usual), "{late:?}");
        assert!(began.elapsed() < FAR, "{:?}", began.elapsed());
        // `run_alone` waits for a command that must not run twice.
        let mut is_late = false;
        let alias = ["-c", "alias.slow=!sleep 0.4; echo done", "slow"];
        let said = store.run_alone(&alias, usual, || is_late = true);
        assert!(said.is_ok_and(|said| said.out == b"done\n") && is_late);
        // A command that answers in time runs alone, and `tell` is not called.
        let said = store.run_far(&alias, FAR, || panic!("it is not late"));
        assert!(said.is_ok_and(|(said, was_beside)| said.succeeded && !was_beside));
    }

    #[test]
    fn a_half_made_repository_is_made_whole() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = directory.path().join("log.git");
        for damage in ["no objects", "no head", "an empty head", "nothing"] {
            Store::open(&store).expect("a repository");
            match damage {
                "no objects" => std::fs::remove_dir_all(store.join("objects")),
                "no head" => std::fs::remove_file(store.join("HEAD")),
                "an empty head" => std::fs::write(store.join("HEAD"), ""),
                _ => Ok(()),
            }
            .expect("a damage");
            let again = Store::open(&store).expect("a repository");
            let blob = again.text(&["hash-object", "-w", "--stdin"], Some(b"text\n"));
            assert!(blob.is_ok(), "{damage}: {blob:?}");
        }
    }

    #[test]
    fn a_lock_is_removed_once_no_git_can_hold_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::open(&directory.path().join("log.git")).expect("a repository");
        let reference = "refs/settled/team";
        let lock = directory.path().join("log.git/refs/settled/team.lock");
        std::fs::create_dir_all(lock.parent().expect("a directory")).expect("a directory");
        let file = std::fs::File::create(&lock).expect("a lock");
        store.remove_old_locks(reference);
        assert!(lock.exists());
        let before = std::time::SystemTime::now() - LOCK_AGE_MAX - HERE;
        file.set_modified(before).expect("a time");
        store.remove_old_locks(reference);
        assert!(!lock.exists());
    }
}
