//! Builds walls around a command with `bwrap`: it reads only the code, the folder of its run and the programs of the
//! system; what it writes disappears with it; and it reaches only the hosts in its config section.
//!
//! If the walls cannot be built, the command does not start; it never runs without them.

mod network;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use git::{Repository, Store};
use serde::{Deserialize, Serialize};
use spool::dirs;

use crate::program;

pub use self::network::{Hosts, InvalidHost, inside};

/// The program that builds the walls.
pub const PROGRAM: &str = "bwrap";

/// The word that makes our own program carry a command's connections out of its walls; not a command for people.
pub const INSIDE: &str = "run-inside";

/// The most that a command may write into each of its empty directories, in bytes: 1 GiB.
const SCRATCH_MAX: &str = "1073741824";

/// The things a command may use besides the code, its folder and the programs of the system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    /// The workspace. The command sees only its own folder there, even if the workspace is within the code.
    #[serde(with = "spool::path_text")]
    pub root: PathBuf,
    /// More files and directories that it may read.
    #[serde(
        serialize_with = "spool::path_text::serialize_all",
        deserialize_with = "spool::path_text::deserialize_all"
    )]
    pub reads: Vec<PathBuf>,
    /// The names of variables that it gets besides those every program needs.
    pub env: Vec<String>,
    /// The hosts that it may reach.
    pub hosts: Hosts,
}

/// Directories with the system's programs.
const PROGRAMS: [&str; 11] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
    "/gnu/store",
    "/run/current-system",
];

/// Paths that the kernel lets only uid 0 write to. `bwrap` covers only those that look writable,
/// and these directories do not.
const KERNEL: [&str; 6] = [
    "/proc/acpi",
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/scsi",
    "/proc/sys",
];

/// The files in `/etc` that programs read; keys and passwords are in others.
const SETTINGS: [&str; 22] = [
    "alternatives",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "group",
    "host.conf",
    "hosts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.conf",
    "localtime",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "passwd",
    "pki/ca-trust",
    "pki/tls/certs",
    "resolv.conf",
    "ssl/certs",
    "ssl/openssl.cnf",
    "timezone",
];

/// Variables that every program needs, and those that tell an agent about its run.
const VARIABLES: [&str; 11] = [
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "PATH",
    "SETTLED_AGENT",
    "SETTLED_BRIEF",
    "SETTLED_RUN",
    "TZ",
    "USER",
];

/// The parts of a run that its sandbox needs.
pub(crate) struct Walled<'a> {
    /// The folder of the run.
    pub folder: &'a Path,
    /// The program and its arguments.
    pub command: &'a [String],
    /// The directory in which the command starts.
    pub workdir: &'a Path,
    /// The directory in which the validation commands start: the run's own checkout, if it has one.
    pub tree: &'a Path,
}

/// The access to the code.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Code {
    ReadOnly,
    Writable,
}

impl Sandbox {
    /// The agent's command inside the walls. If it may reach some hosts, the process that carries its connections
    /// starts with it.
    pub(crate) fn agent(&self, run: &Walled<'_>) -> io::Result<Command> {
        let mut walls = self.walls(run, Code::ReadOnly)?;
        let env = VARIABLES
            .into_iter()
            .chain(self.env.iter().map(String::as_str));
        walls.pass(env);
        if self.hosts == Hosts::Any {
            walls.add(["--share-net"]);
        }
        walls.add(["--chdir".as_ref(), run.workdir.as_os_str()]);
        let mut words: Vec<&OsStr> = run.command.iter().map(AsRef::as_ref).collect();
        let own;
        if let Hosts::These(hosts) = &self.hosts
            && !hosts.is_empty()
        {
            network::serve(run.folder, hosts)?;
            own = program::settled()?;
            walls.bind("--ro-bind", &own);
            let inside = [
                own.as_ref(),
                INSIDE.as_ref(),
                run.folder.as_ref(),
                "--".as_ref(),
            ];
            words.splice(..0, inside);
        }
        Ok(walls.around(words))
    }

    /// A command line that runs in the code and may write there, without a network and without the agent's variables.
    pub(crate) fn shell(&self, line: &str, run: &Walled<'_>) -> io::Result<Command> {
        let mut walls = self.walls(run, Code::Writable)?;
        walls.pass(VARIABLES);
        walls.add(["--chdir".as_ref(), run.tree.as_os_str()]);
        Ok(walls.around(["sh", "-c", line]))
    }

    /// The walls that all commands share.
    fn walls(&self, run: &Walled<'_>, code: Code) -> io::Result<Walls> {
        let mut walls = Walls(Command::new(PROGRAM));
        // It ends with its keeper, and has no capabilities even if the daemon is root.
        walls.add(["--unshare-all", "--die-with-parent", "--cap-drop", "ALL"]);
        walls.add(["--proc", "/proc", "--dev", "/dev"]);
        walls.hide(Path::new("/tmp"));
        for path in KERNEL.into_iter().chain(PROGRAMS) {
            walls.bind("--ro-bind-try", Path::new(path));
        }
        for name in SETTINGS {
            walls.bind("--ro-bind-try", &Path::new("/etc").join(name));
        }
        let home = home_in(std::env::var_os("HOME"));
        if let Some(home) = &home {
            walls.hide(home);
        }
        for path in &self.reads {
            walls.bind("--ro-bind", path);
        }
        if let Some(program) = run.command.first().and_then(|name| program::find(name)) {
            walls.bind("--ro-bind", &program);
        }
        self.code(run, (home.as_deref(), code), &mut walls)?;
        // Last, because it may be inside any of the others.
        walls.bind("--ro-bind", run.folder);
        Ok(walls)
    }

    /// The code, with the history of its repository but without its config.
    fn code(
        &self,
        run: &Walled<'_>,
        (home, code): (Option<&Path>, Code),
        walls: &mut Walls,
    ) -> io::Result<()> {
        let store = Repository::at(run.workdir).store();
        let store = store.map_err(io::Error::other)?;
        let top = store.as_ref().map_or(run.workdir, |store| &store.top);
        let top = &top.canonicalize()?;
        if let Some(home) = home
            && home.starts_with(top)
        {
            let what = format!(
                "the code is all of {}, which holds the home directory: there are no walls between them",
                top.display()
            );
            return Err(io::Error::other(what));
        }
        let how = match code {
            Code::ReadOnly => "--ro-bind",
            Code::Writable => "--bind",
        };
        walls.bind(how, top);
        if let Some(store) = &store {
            self.history(store, walls)?;
            let config = run.folder.join("gitconfig");
            std::fs::write(&config, &store.config)?;
            walls.cover(&config, &store.common.join("config"));
        }
        let root = self
            .root
            .canonicalize()
            .unwrap_or_else(|_| self.root.clone());
        if root.starts_with(top) {
            for part in [dirs::AGENTS, dirs::PACKETS, dirs::OWN] {
                let part = root.join(part);
                if part.is_dir() {
                    walls.hide(&part);
                }
            }
            let config = root.join(dirs::CONFIG);
            if config.is_file() {
                walls.cover(Path::new("/dev/null"), &config);
            }
        }
        Ok(())
    }

    /// Shows the parts of the history. The author of the code writes the repository, so a part that is elsewhere needs
    /// the permission of the section.
    fn history(&self, store: &Store, walls: &mut Walls) -> io::Result<()> {
        if !store.top.join(".git").exists() {
            return Err(io::Error::other(format!(
                "the repository names {} as its worktree, where no `.git` is: correct its `core.worktree`",
                store.top.display()
            )));
        }
        walls.hide(&store.common);
        for part in &store.parts {
            let Some(at) = real(part)? else { continue };
            let place = part.parent().map(Path::canonicalize).transpose()?;
            let place = place
                .zip(part.file_name())
                .map(|(dir, name)| dir.join(name));
            if place.as_ref() != Some(&at) && !self.may_read(&at)? {
                return Err(not_shown(part, "a part of the history", &at));
            }
            walls.cover(&at, part);
        }
        for lender in &store.borrowed {
            let Some(at) = real(lender)? else { continue };
            if !self.may_read(&at)? {
                return Err(not_shown(
                    &store.common.join("objects/info/alternates"),
                    "a lender of objects",
                    &at,
                ));
            }
            walls.cover(&at, lender);
        }
        Ok(())
    }

    /// True if the section names this path, which has no links, or a directory above it.
    fn may_read(&self, path: &Path) -> io::Result<bool> {
        for read in &self.reads {
            if real(read)?.is_some_and(|read| path.starts_with(read)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The home directory that this variable names, if it can be hidden: a relative path names none, and the root is all.
fn home_in(variable: Option<OsString>) -> Option<PathBuf> {
    let home = variable.map(PathBuf::from);
    home.filter(|home| home.is_absolute() && home.parent().is_some())
}

fn not_shown(named: &Path, what: &str, at: &Path) -> io::Error {
    io::Error::other(format!(
        "{} makes {} {what}, which the sandbox does not show: add it to `reads` in the agent's section if the command \
         may read it, or correct the repository",
        named.display(),
        at.display(),
    ))
}

/// The path without links; `None` if it leads nowhere.
fn real(path: &Path) -> io::Result<Option<PathBuf>> {
    match path.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        real => real.map(Some),
    }
}

/// A `bwrap` command line that is being built; later arguments cover earlier ones.
struct Walls(Command);

impl Walls {
    fn add(&mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) {
        self.0.args(arguments);
    }

    /// Shows a path as it is outside.
    fn bind(&mut self, how: &str, path: &Path) {
        self.add([how.as_ref(), path.as_os_str(), path.as_os_str()]);
    }

    /// Shows one file in place of another.
    fn cover(&mut self, shown: &Path, at: &Path) {
        self.add(["--ro-bind".as_ref(), shown.as_os_str(), at.as_os_str()]);
    }

    /// Shows an empty directory; files written there disappear with the command. They are in memory, so they have a
    /// limit.
    fn hide(&mut self, path: &Path) {
        self.add(["--size", SCRATCH_MAX, "--tmpfs"]);
        self.add([path]);
    }

    /// The command line with these words inside the walls. Nothing is written between the mounts, which all exist by now.
    fn around(mut self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        self.add(["--remount-ro", "/", "--"]);
        self.add(words);
        self.0
    }

    /// Passes on these variables and no others.
    fn pass<'n>(&mut self, names: impl IntoIterator<Item = &'n str>) {
        self.0.env_clear();
        for name in names {
            if let Some(value) = std::env::var_os(name) {
                self.0.env(name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error of a command's walls after this script ran in its repository, or its command line.
    fn walls(script: &str, reads: &[&str]) -> Result<String, String> {
        let place = tempfile::tempdir().expect("a directory");
        let place = place.path().canonicalize().expect("it exists");
        let script = format!("mkdir code run keys; git init -q code; cd code; {script}");
        let ran = Command::new("sh")
            .args(["-ec", &script])
            .current_dir(&place)
            .status();
        assert!(ran.expect("a shell").success(), "{script}");
        let sandbox = Sandbox {
            root: place.join("room"),
            reads: reads.iter().map(|read| place.join(read)).collect(),
            ..Sandbox::default()
        };
        let (folder, code) = (place.join("run"), place.join("code"));
        let run = Walled {
            folder: &folder,
            command: &["true".to_owned()],
            workdir: &code,
            tree: &code,
        };
        match sandbox.agent(&run) {
            Ok(command) => Ok(format!("{command:?}")),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The arguments and the variables of both kinds of command of this sandbox, in a directory that is no repository.
    fn lines(place: &Path, hosts: Hosts) -> [(String, Vec<String>); 2] {
        let sandbox = Sandbox {
            root: place.join("code/room"),
            reads: vec![place.join("keys")],
            env: vec!["NOWHERE_SET".to_owned()],
            hosts,
        };
        let (folder, code) = (place.join("run"), place.join("code"));
        let run = Walled {
            folder: &folder,
            command: &["true".to_owned()],
            workdir: &code,
            tree: &code,
        };
        let agent = sandbox.agent(&run).expect("walls");
        let shell = sandbox.shell("make test", &run).expect("walls");
        [agent, shell].map(|command| {
            let words = command.get_args().map(|word| word.to_string_lossy());
            let names = command.get_envs().map(|(name, _)| name.to_string_lossy());
            (
                words.collect::<Vec<_>>().join(" "),
                names.map(String::from).collect(),
            )
        })
    }

    #[test]
    fn an_agent_reads_the_code_and_a_validation_command_writes_it_and_both_see_nothing_else() {
        let place = tempfile::tempdir().expect("a directory");
        let place = place.path().canonicalize().expect("it exists");
        for directory in ["run", "keys", "code/room/agents", "code/room/.settled"] {
            std::fs::create_dir_all(place.join(directory)).expect("a directory");
        }
        std::fs::write(place.join("code/room/settled.toml"), "").expect("a file");
        let at = |name: &str| place.join(name).display().to_string();
        let (code, run, keys) = (at("code"), at("run"), at("keys"));
        let room = at("code/room");
        let [agent, shell] = lines(&place, Hosts::default());
        for (kind, (line, names)) in [("agent", &agent), ("shell", &shell)] {
            for part in [
                "--unshare-all --die-with-parent --cap-drop ALL".to_owned(),
                format!("--tmpfs {room}/agents"),
                format!("--tmpfs {room}/.settled"),
                format!("--ro-bind /dev/null {room}/settled.toml"),
                format!("--ro-bind {keys} {keys}"),
                format!("--ro-bind {run} {run}"),
                "--tmpfs /tmp".to_owned(),
                "--ro-bind-try /usr /usr".to_owned(),
                "--ro-bind-try /etc/passwd /etc/passwd".to_owned(),
                format!("--chdir {code}"),
            ] {
                assert!(line.contains(&part), "{kind} lacks {part}: {line}");
            }
            assert!(
                !line.contains("--share-net") && !line.contains(INSIDE),
                "{line}"
            );
            assert!(names.iter().any(|name| name == "PATH"), "{names:?}");
            let is_known = |name: &String| VARIABLES.contains(&name.as_str());
            assert!(names.iter().all(is_known), "{names:?}");
        }
        let (read, written) = (
            format!(" --ro-bind {code} {code} "),
            format!(" --bind {code} {code} "),
        );
        assert!(agent.0.contains(&read) && !agent.0.contains(&written));
        assert!(shell.0.contains(&written) && !shell.0.contains(&read));
        assert!(agent.0.ends_with("--remount-ro / -- true"), "{}", agent.0);
        assert!(shell.0.ends_with("-- sh -c make test"), "{}", shell.0);
    }

    #[test]
    fn an_agent_reaches_the_hosts_of_its_section_and_a_validation_command_none() {
        let place = tempfile::tempdir().expect("a directory");
        let place = place.path().canonicalize().expect("it exists");
        for directory in ["run", "keys", "code"] {
            std::fs::create_dir(place.join(directory)).expect("a directory");
        }
        let some = serde_json::from_str(r#"{"these":["api.example.com"]}"#);
        for (hosts, is_shared, is_carried) in [
            (Hosts::default(), false, false),
            (Hosts::Any, true, false),
            (some.expect("hosts"), false, true),
        ] {
            let [(agent, _), (shell, _)] = lines(&place, hosts.clone());
            let carried = format!(" {INSIDE} {} -- true", place.join("run").display());
            let found = (agent.contains(" --share-net "), agent.ends_with(&carried));
            assert_eq!(found, (is_shared, is_carried), "{hosts:?}: {agent}");
            assert_eq!(place.join("run/network").exists(), is_carried, "{hosts:?}");
            assert!(
                !shell.contains("--share-net") && !shell.contains(INSIDE),
                "{shell}"
            );
        }
    }

    #[test]
    fn code_that_holds_the_home_directory_has_no_walls() {
        let sandbox = Sandbox::default();
        let run = Walled {
            folder: Path::new("/nonexistent"),
            command: &["true".to_owned()],
            workdir: Path::new("/"),
            tree: Path::new("/"),
        };
        let error = sandbox.agent(&run).expect_err("no walls").to_string();
        assert!(error.contains("holds the home directory"), "{error}");
    }

    #[test]
    fn a_repository_shows_no_path_outside_it_that_the_section_does_not_name() {
        let scripts = [
            "echo ../../../keys > .git/objects/info/alternates",
            "echo $PWD/../keys > .git/objects/info/alternates",
            "echo / > .git/objects/info/alternates",
            // The config is in the shared directory.
            "echo .. > .git/objects/info/alternates",
            "ln -s ../../keys .git/reftable",
            "rm -r .git/refs; ln -s ../../keys .git/refs",
        ];
        for script in scripts {
            let error = walls(script, &[]).expect_err(script);
            assert!(error.contains("`reads`"), "{script}: {error}");
        }
        for script in [&scripts[..2], &scripts[4..]].concat() {
            let line = walls(script, &["keys"]).expect(script);
            assert!(line.contains("/keys\" "), "{line}");
        }
        let line = walls("ln -s nowhere .git/shallow", &[]).expect("nothing to show");
        assert!(!line.contains("shallow"), "{line}");
        let error = walls("git config core.worktree $PWD/..", &[]).expect_err("no worktree");
        assert!(error.contains("core.worktree"), "{error}");
    }

    #[test]
    fn a_home_that_is_relative_or_the_root_is_none_to_hide() {
        for (variable, home) in [
            (Some("/home/ann"), Some("/home/ann")),
            (Some("/"), None),
            (Some("home/ann"), None),
            (Some(""), None),
            (None, None),
        ] {
            let found = home_in(variable.map(OsString::from));
            assert_eq!(found, home.map(PathBuf::from), "{variable:?}");
        }
    }

    #[test]
    fn a_path_that_leads_nowhere_is_none_and_one_that_cannot_be_followed_an_error() {
        let place = tempfile::tempdir().expect("a directory");
        let place = place.path().canonicalize().expect("it exists");
        for (link, to) in [("here", "."), ("nowhere", "none"), ("loop", "loop")] {
            std::os::unix::fs::symlink(to, place.join(link)).expect("a link");
        }
        let real = |name: &str| real(&place.join(name)).map_err(|_| name.to_owned());
        assert_eq!(real("here"), Ok(Some(place.clone())));
        assert_eq!(real("nowhere"), Ok(None));
        assert_eq!(real("loop"), Err("loop".to_owned()));
    }
}
