//! `.settled/runs/<id>/`: the input of a command, its processes, its output and its result. Keeps these files and
//! limits their number; only the owner of `.settled` can read them.
//!
//! `run.json` exists before anything starts, `process.json` before the agent starts, and `end.json` when none of its
//! processes is left: a folder without the last belongs to a run that was cut off.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use message_schema::id::AgentName;
use message_schema::line;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use spool::Layout;

use crate::cgroup::ControlGroup;
use crate::checkout::{Checkout, Reviewed};
use crate::program;
use crate::sandbox::{Sandbox, Walled};
use crate::shell::quoted;
use crate::stream::{AgentOutput, OutputFormat, OutputReader};
use crate::tree::Process;
use crate::validation::{CommandRun, Validation};

/// The number of folders to keep; older ones are removed.
const KEPT_MAX: usize = 200;

/// The commands of settled that an agent needs in a run. Others, such as `pair` and `agent add`, start programs or set
/// up the workspace, and must not widen what a program can do whose shell may call only the wrapper.
const COMMANDS: &str =
    "brief|diff|feedback|lgtm|reply|inbox|show|threads|why|status|explain|mcp|--help|--version";

/// The number of bytes at the end of standard error in which to find its last line.
const LAST_BYTES: i64 = 4096;

/// The number of bytes at the end of an output in which to find its last line.
const SAID_BYTES: i64 = 64 * 1024;

/// The command that a keeper starts, with its surroundings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The directory it starts in.
    #[serde(with = "spool::path_text")]
    pub workdir: PathBuf,
    /// The run's own checkout, if it has one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub checkout: Option<Checkout>,
    /// The commands to run in the checkout before the agent starts.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub validation: Option<Validation>,
    /// The sandbox around the command, if there is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sandbox: Option<Sandbox>,
    /// True if the command reads the prompt from standard input.
    pub reads_prompt: bool,
    /// The form of its output.
    pub output: OutputFormat,
    /// The time limit, in seconds, which the keeper enforces even without the daemon.
    pub seconds_max: u64,
}

impl Launch {
    /// The parts that the sandbox needs; `folder` is that of this run.
    pub(crate) fn walled<'a>(&'a self, folder: &'a Folder) -> Walled<'a> {
        let own = self.checkout.as_ref().map(|own| &own.tree);
        Walled {
            folder: folder.path(),
            command: &self.command,
            workdir: &self.workdir,
            tree: own.unwrap_or(&self.workdir),
        }
    }
}

/// The processes of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Processes {
    /// The id of the boot in which they run.
    pub boot: String,
    /// The agent's keeper.
    pub keeper: Option<Process>,
    /// The agent itself.
    pub agent: Option<Process>,
    /// The control group of the agent and everything it starts, if there is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub group: Option<ControlGroup>,
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEnd {
    /// The way the agent ended.
    pub how: ExitReason,
    /// The agent's output.
    pub said: AgentOutput,
}

/// The way an agent ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitReason {
    /// It exited with this code.
    Code(i32),
    /// A signal that we did not send ended it.
    Signal(i32),
    /// We ended it: the daemon asked for it or is gone, or the time was up.
    Ended,
    /// It could not be started.
    NotStarted(String),
    /// Its folder or checkout could not be made, so nothing started.
    Unprepared(String),
}

/// The folder of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder(PathBuf);

impl Folder {
    /// The folder at this path.
    pub fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// Makes the folder of a run, and removes the oldest ones above the number to keep, except those of running runs.
    pub fn make(root: &Path, id: &str) -> io::Result<Self> {
        let runs = runs(root);
        DirBuilder::new()
            .mode(0o700)
            .recursive(true)
            .create(&runs)?;
        let folders = all(root)?;
        for old in folders
            .iter()
            .take((folders.len() + 1).saturating_sub(KEPT_MAX))
        {
            if !old.processes().keeper.is_some_and(Process::is_running) {
                old.remove();
            }
        }
        Self::make_at(&runs.join(id))
    }

    /// Makes a folder at a path where nothing is.
    pub fn make_at(path: &Path) -> io::Result<Self> {
        DirBuilder::new().mode(0o700).create(path)?;
        Ok(Self(path.to_owned()))
    }

    /// Removes the folder. Only logs an error, so that a start can go on.
    pub fn remove(&self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(folder = %self.0.display(), %error, "cannot remove the folder of a run");
        }
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The id of the run.
    pub fn id(&self) -> &str {
        self.0
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default()
    }

    /// The path of the prompt.
    pub fn prompt(&self) -> PathBuf {
        self.0.join("prompt.md")
    }

    /// The path of the brief.
    pub fn brief(&self) -> PathBuf {
        self.0.join("brief.yaml")
    }

    /// The path of the request.
    pub fn request(&self) -> PathBuf {
        self.0.join("request.yaml")
    }

    /// The path of the schema for the answer.
    pub fn schema(&self) -> PathBuf {
        self.0.join("schema.json")
    }

    /// The path of the wrapper with which the agent calls settled.
    pub fn wrapper(&self) -> PathBuf {
        self.0.join("settled")
    }

    /// Writes a new file for the agent.
    pub fn write(path: &Path, text: &str) -> io::Result<()> {
        new_file(path, 0o600)?.write_all(text.as_bytes())
    }

    /// Writes the wrapper with which the agent calls settled in its own name and no other. Some programs run commands
    /// in a login shell, which sets its own `PATH`.
    pub fn write_wrapper(&self, root: &Path, agent: &AgentName) -> io::Result<()> {
        let settled = program::settled()?;
        let text = format!(
            "#!/bin/sh\ncase \"$1\" in {COMMANDS}) ;; *)\n  echo \"settled: in a run, expected one of {COMMANDS}\" >&2; \
             exit 5 ;;\nesac\nfor word; do case \"$word\" in --agent|--agent=*|--root|--root=*)\n  \
             echo \"settled: in a run, --agent and --root are given\" >&2; exit 5 ;;\nesac; done\n\
             export SETTLED_ROOT={} SETTLED_AGENT={agent} SETTLED_RUN={} SETTLED_BRIEF={}\nexec {} \"$@\"\n",
            quoted(root.as_os_str()),
            self.id(),
            quoted(self.brief().as_os_str()),
            quoted(settled.as_os_str()),
        );
        new_file(&self.wrapper(), 0o700)?.write_all(text.as_bytes())
    }

    /// Makes a file for the output.
    pub fn log(&self, name: &str) -> io::Result<File> {
        new_file(&self.0.join(name), 0o600)
    }

    /// Reads the run as the caller that started it wrote it.
    pub fn run<T: DeserializeOwned>(&self) -> io::Result<T> {
        self.read("run.json")
    }

    /// Reads the launch that the keeper carries out.
    pub fn launch(&self) -> io::Result<Launch> {
        self.read("run.json")
    }

    /// Writes what is started.
    pub fn tell_run(&self, run: &impl Serialize) -> io::Result<()> {
        self.replace("run.json", run)
    }

    /// Writes how the validation commands went.
    pub(crate) fn tell_validation(&self, runs: &[CommandRun]) -> io::Result<()> {
        self.replace("validation.json", &runs)
    }

    /// The commit and the diff in its checkout, if it has one.
    pub fn reviewed(&self) -> Option<Reviewed> {
        self.read("reviewed.json").ok()
    }

    /// Writes the commit and the diff in its checkout.
    pub(crate) fn tell_reviewed(&self, reviewed: &Reviewed) -> io::Result<()> {
        self.replace("reviewed.json", reviewed)
    }

    /// The processes of the run, as far as they are known.
    pub fn processes(&self) -> Processes {
        self.read("process.json").unwrap_or_default()
    }

    /// Writes which processes run.
    pub(crate) fn tell_processes(&self, processes: &Processes) -> io::Result<()> {
        self.replace("process.json", processes)
    }

    /// The result; none while the run goes on.
    pub fn end(&self) -> Option<RunEnd> {
        self.read("end.json").ok()
    }

    /// Writes the result.
    pub(crate) fn tell_end(&self, end: &RunEnd) -> io::Result<()> {
        self.replace("end.json", end)
    }

    /// Parses the agent's answer from the stored output, as far as that goes.
    pub fn printed(&self, form: OutputFormat) -> io::Result<AgentOutput> {
        let mut reader = OutputReader::new(form);
        reader.read(&std::fs::read(self.0.join("stdout"))?);
        Ok(reader.finish())
    }

    /// The last line of the output so far that is not blank, within the last 64 KiB; empty if there is none.
    pub fn last_words(&self, form: OutputFormat) -> String {
        let mut reader = OutputReader::new(form);
        reader.read(&last_bytes(&self.0.join("stdout"), SAID_BYTES));
        line::last(&reader.finish().text).to_owned()
    }

    /// The last line of standard error that is not blank, within the last 4 KiB; empty if there is none.
    pub fn last_error_line(&self) -> String {
        let bytes = last_bytes(&self.0.join("stderr"), LAST_BYTES);
        line::last(&String::from_utf8_lossy(&bytes)).to_owned()
    }

    /// Replaces the file atomically, for readers and across a kill.
    fn replace(&self, name: &str, value: &impl Serialize) -> io::Result<()> {
        let temporary = self.0.join(format!(".{name}.tmp"));
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary)?;
        file.write_all(&serde_json::to_vec(value).expect("text keys and plain values are JSON"))?;
        std::fs::rename(&temporary, self.0.join(name))
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> io::Result<T> {
        Ok(serde_json::from_slice(&std::fs::read(self.0.join(name))?)?)
    }
}

/// The folders of all runs, oldest first, because an id begins with its time.
pub fn all(root: &Path) -> io::Result<Vec<Folder>> {
    let listed = match std::fs::read_dir(runs(root)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed?,
    };
    let mut folders = Vec::new();
    for entry in listed {
        folders.push(entry?.path());
    }
    folders.sort_unstable();
    Ok(folders.into_iter().map(Folder).collect())
}

/// The folder of the run with this id, whether or not it exists.
pub fn named(root: &Path, id: &str) -> Folder {
    Folder(runs(root).join(id))
}

/// The last bytes of a file; none if it cannot be read.
fn last_bytes(path: &Path, bytes_max: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Ok(mut file) = File::open(path) {
        // This fails for a shorter file, which is then read from the beginning.
        let _ = file.seek(SeekFrom::End(-bytes_max));
        let _ = file.read_to_end(&mut bytes);
    }
    bytes
}

fn runs(root: &Path) -> PathBuf {
    Layout::new(root).runs()
}

fn new_file(path: &Path, mode: u32) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;

    use super::*;

    fn run(root: &Path, id: &str) -> Folder {
        Folder::make(root, id).expect("a folder")
    }

    #[test]
    fn the_oldest_folders_go_and_not_those_whose_keeper_runs() {
        let root = tempfile::tempdir().expect("a directory");
        assert_eq!(all(root.path()).expect("none yet"), []);
        let ids: Vec<String> = (0..=KEPT_MAX)
            .map(|number| format!("{number:03}"))
            .collect();
        for id in &ids {
            std::fs::create_dir_all(named(root.path(), id).path()).expect("a folder");
        }
        let running = Processes {
            keeper: Process::of(std::process::id().cast_signed()),
            ..Processes::default()
        };
        let oldest = named(root.path(), &ids[0]);
        oldest.tell_processes(&running).expect("a file");
        assert_eq!(oldest.processes(), running);
        run(root.path(), "new");
        let left = all(root.path()).expect("a list");
        let left: Vec<&str> = left.iter().map(Folder::id).collect();
        let kept = ids[..1].iter().chain(&ids[2..]).map(String::as_str);
        assert_eq!(left, Vec::from_iter(kept.chain(["new"])));

        let runs = runs(root.path());
        std::fs::remove_dir_all(&runs).expect("the folders");
        std::fs::write(&runs, "").expect("a file in their place");
        assert!(all(root.path()).is_err(), "it is no directory");
    }

    #[test]
    fn only_the_owner_reads_a_folder_and_each_file_of_it_has_its_place() {
        let root = tempfile::tempdir().expect("a directory");
        let folder = run(root.path(), "01abc");
        let mode = |path: &Path| path.metadata().expect("it exists").permissions().mode() & 0o777;
        assert_eq!(mode(folder.path()), 0o700);
        let own = root.path().join(".settled/runs/01abc");
        for (path, name) in [
            (folder.prompt(), "prompt.md"),
            (folder.brief(), "brief.yaml"),
            (folder.request(), "request.yaml"),
            (folder.schema(), "schema.json"),
        ] {
            assert_eq!(path, own.join(name));
            Folder::write(&path, name).expect("a file");
            assert_eq!(std::fs::read_to_string(&path).expect("a file"), name);
            assert_eq!(mode(&path), 0o600);
            assert!(Folder::write(&path, name).is_err(), "it is written once");
        }
        folder.tell_run(&Launch::default()).expect("a file");
        assert_eq!(mode(&own.join("run.json")), 0o600);
        assert_eq!(folder.launch().expect("a launch"), Launch::default());
        assert_eq!(folder.run::<Launch>().expect("a run"), Launch::default());
        assert!(
            Folder::make(root.path(), "01abc").is_err(),
            "one id, one run"
        );
        assert_eq!((folder.end(), folder.reviewed()), (None, None));
    }

    #[test]
    fn the_wrapper_runs_the_commands_of_a_review_in_no_other_name() {
        let root = tempfile::tempdir().expect("a directory");
        let folder = run(&root.path().join("ann's"), "01abc");
        let agent = AgentName::new("codex").expect("a name");
        folder
            .write_wrapper(root.path(), &agent)
            .expect("a wrapper");
        let mode = folder
            .wrapper()
            .metadata()
            .expect("a file")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o700);
        for (arguments, is_taken) in [
            (&["--help"][..], true),
            (&["pair", "x"], false),
            (&[], false),
            (&["brief", "--agent", "claude"], false),
            (&["brief", "--root=/elsewhere"], false),
        ] {
            // A shell reads it: the file is busy as long as a process that another test forked has it open.
            let ran = Command::new("sh")
                .arg(folder.wrapper())
                .args(arguments)
                .output();
            let ran = ran.expect("a shell");
            let errors = String::from_utf8_lossy(&ran.stderr);
            match is_taken {
                true => assert_eq!(ran.status.code(), Some(0), "{arguments:?}: {errors}"),
                false => {
                    assert_eq!(ran.status.code(), Some(5), "{arguments:?}: {errors}");
                    assert!(errors.starts_with("settled: in a run, "), "{errors}");
                }
            }
        }
        let text = std::fs::read_to_string(folder.wrapper()).expect("a wrapper");
        assert!(
            text.contains("SETTLED_AGENT=codex SETTLED_RUN=01abc "),
            "{text}"
        );
        assert!(
            text.contains(r"/ann'\''s/.settled/runs/01abc/brief.yaml'"),
            "{text}"
        );
    }

    #[test]
    fn the_last_line_is_found_at_the_end_of_any_output() {
        let long = "x".repeat(100_000);
        for (printed, last) in [
            ("", ""),
            ("one\ntwo\n\n", "two"),
            (&*format!("{long}\nlast\n"), "last"),
        ] {
            let root = tempfile::tempdir().expect("a directory");
            let folder = run(root.path(), "01abc");
            assert_eq!(folder.last_words(OutputFormat::Text), "", "no output yet");
            for name in ["stdout", "stderr"] {
                let mut log = folder.log(name).expect("a file");
                log.write_all(printed.as_bytes()).expect("a file");
            }
            assert_eq!(folder.last_words(OutputFormat::Text), last);
            assert_eq!(folder.last_error_line(), last);
            let said = folder.printed(OutputFormat::Text).expect("an output");
            assert_eq!(said.text, printed);
        }
    }

    #[test]
    fn a_last_line_may_have_64_kib_of_an_output_and_4_kib_of_the_errors() {
        let root = tempfile::tempdir().expect("a directory");
        let folder = run(root.path(), "01abc");
        let long = "x".repeat(100_000);
        for name in ["stdout", "stderr"] {
            let mut log = folder.log(name).expect("a file");
            log.write_all(long.as_bytes()).expect("a file");
        }
        let last = folder.last_words(OutputFormat::Text);
        assert_eq!(last.len(), 65_536);
        assert_eq!(folder.last_error_line().len(), 4_096);
    }
}
