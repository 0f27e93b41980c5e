//! Walls around a command, made by `bwrap`: it reads the code, the folder of its run and the programs of the system,
//! and nothing else of this machine; what it writes disappears when it ends; and it reaches only hosts that the section
//! names.
//!
//! Answers for what is inside. A command whose walls cannot be built is not started: nothing falls back to running without.

mod network;

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use git::Repository;
use serde::{Deserialize, Serialize};

use crate::program;

pub use self::network::{Hosts, InvalidHost, inside};

/// The program that builds the walls.
pub const PROGRAM: &str = "bwrap";

/// The word by which our own program carries a command's connections out of its walls; not a command for people.
pub const INSIDE: &str = "run-inside";

/// The things a command may use besides the code, its folder and the programs of the system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    /// The workspace: the command sees only its own folder there, even if the workspace is within the code.
    pub root: PathBuf,
    /// Files and directories that it reads.
    pub reads: Vec<PathBuf>,
    /// The names of variables that it gets besides those that every program needs.
    pub env: Vec<String>,
    /// The hosts that it may reach.
    pub hosts: Hosts,
}

/// Directories with the programs of a system.
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

/// Paths that the kernel lets its user 0 write to although nobody else may. `bwrap` covers them only where they look
/// writable, which the directories do not.
const KERNEL: [&str; 6] = [
    "/proc/acpi",
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/scsi",
    "/proc/sys",
];

/// The files that programs read in `/etc`; keys and passwords are elsewhere in it.
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

/// Variables that every program needs, and those by which an agent knows its run.
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

/// The parts of a run that its sandbox has to know.
pub(crate) struct Walled<'a> {
    /// The folder of the run.
    pub folder: &'a Path,
    /// The program and its arguments.
    pub command: &'a [String],
    /// The directory it starts in.
    pub workdir: &'a Path,
    /// The directory in which the commands before it start: its own checkout, if it has one.
    pub tree: &'a Path,
}

/// The access to the code.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Code {
    ReadOnly,
    Writable,
}

impl Sandbox {
    /// The command of a run. Where hosts are named, what carries its connections is started with it.
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
        if let Hosts::These(hosts) = &self.hosts
            && !hosts.is_empty()
        {
            network::serve(run.folder, hosts)?;
            let own = program::installed()?;
            walls.bind("--ro-bind", &own);
            walls.add(["--".as_ref(), own.as_os_str()]);
            walls.add([INSIDE.as_ref(), run.folder.as_os_str()]);
        }
        walls.add(["--"]);
        walls.add(run.command);
        Ok(walls.0)
    }

    /// A command line that is run in the code, which it may write to, without a network and without variables of the
    /// agent.
    pub(crate) fn shell(&self, line: &str, run: &Walled<'_>) -> io::Result<Command> {
        let mut walls = self.walls(run, Code::Writable)?;
        walls.pass(VARIABLES);
        walls.add(["--chdir".as_ref(), run.tree.as_os_str()]);
        walls.add(["--", "sh", "-c", line]);
        Ok(walls.0)
    }

    /// The part of the sandbox that is the same for every command.
    fn walls(&self, run: &Walled<'_>, code: Code) -> io::Result<Walls> {
        let mut walls = Walls(Command::new(PROGRAM));
        // It ends with its keeper, and has no capability, also where the daemon is root.
        walls.add(["--unshare-all", "--die-with-parent", "--cap-drop", "ALL"]);
        walls.add(["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]);
        for path in KERNEL.into_iter().chain(PROGRAMS) {
            walls.bind("--ro-bind-try", Path::new(path));
        }
        for name in SETTINGS {
            walls.bind("--ro-bind-try", &Path::new("/etc").join(name));
        }
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let home = home.filter(|home| home.is_absolute() && home.parent().is_some());
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
        // Last: it may be within any of these.
        walls.bind("--ro-bind", run.folder);
        Ok(walls)
    }

    /// The code, with the history of its repository and without its config.
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
            walls.hide(&store.common);
            for part in store.parts.iter().chain(&store.borrowed) {
                walls.bind("--ro-bind-try", part);
            }
            let config = run.folder.join("gitconfig");
            std::fs::write(&config, &store.config)?;
            walls.cover(&config, &store.common.join("config"));
        }
        let root = self
            .root
            .canonicalize()
            .unwrap_or_else(|_| self.root.clone());
        if root.starts_with(top) {
            for part in ["agents", "packets", ".settled"] {
                let part = root.join(part);
                if part.is_dir() {
                    walls.hide(&part);
                }
            }
            let config = root.join("settled.toml");
            if config.is_file() {
                walls.cover(Path::new("/dev/null"), &config);
            }
        }
        Ok(())
    }
}

/// A command line of `bwrap` in the making: what comes later covers what came before.
struct Walls(Command);

impl Walls {
    fn add(&mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) {
        self.0.args(arguments);
    }

    /// Shows a path as it is outside.
    fn bind(&mut self, how: &str, path: &Path) {
        self.add([how.as_ref(), path.as_os_str(), path.as_os_str()]);
    }

    /// Shows one file in the place of another.
    fn cover(&mut self, shown: &Path, at: &Path) {
        self.add(["--ro-bind".as_ref(), shown.as_os_str(), at.as_os_str()]);
    }

    /// Shows an empty directory, whose files are gone with the command.
    fn hide(&mut self, path: &Path) {
        self.add(["--tmpfs".as_ref(), path.as_os_str()]);
    }

    /// Passes these variables on, and no other.
    fn pass<'n>(&mut self, names: impl IntoIterator<Item = &'n str>) {
        self.0.env_clear();
        for name in names {
            if let Some(value) = std::env::var_os(name) {
                self.0.env(name, value);
            }
        }
    }
}
