//! Installs, inspects and removes the file by which systemd or launchd knows a workspace's daemon, and recognizes files
//! of others. The service manager's own commands start and stop the daemon; this module names them.

mod file;
mod resolve;
#[cfg(test)]
mod tests;
mod text;

use std::path::{Path, PathBuf};

pub use self::file::{FileChange, InstalledFile, ServiceError};
pub use self::resolve::{ResolveError, ServiceRequest};

/// The scope of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// For the machine: runs from boot on.
    System,
    /// For one user: runs while the user is logged in or lingers.
    User,
}

/// The service manager that runs the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceManager {
    /// systemd.
    Systemd,
    /// launchd, of macOS.
    Launchd,
}

/// The work of the process, which limits how strictly it can be confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// It only moves mail.
    MailOnly,
    /// It also starts agents.
    StartsAgents,
    /// It moves no mail: the notifier tells people that they are needed.
    Notifies,
}

/// A daemon, or the notifier beside it, as a service.
#[derive(Clone, Debug)]
pub struct Service {
    /// The service manager that runs it.
    pub kind: ServiceManager,
    /// For the machine or for one user.
    pub scope: Scope,
    /// The name of its file without the extension; one per workspace.
    pub name: String,
    /// The directory of its file.
    pub directory: PathBuf,
    /// The absolute path of the program.
    pub program: PathBuf,
    /// The absolute path of the workspace.
    pub root: PathBuf,
    /// The owner of the workspace: the user and group the daemon runs as.
    pub owner: (u32, u32),
    /// The daemon's work.
    pub work: Work,
    /// The access that its confinement must allow.
    pub needs: Needs,
}

/// The place of the ledger that the workspace shares with other hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SharedPlace {
    /// The workspace shares no ledger.
    #[default]
    Unshared,
    /// Brokers, reached over TCP.
    Brokers,
    /// A git repository on another machine, reached with the keys or credentials in the home of the daemon's user.
    Remote,
    /// A git repository in this directory.
    Directory(PathBuf),
}

/// The access that the workspace's config needs despite the confinement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Agents have users of their own, and the daemon checks who owns each file.
    pub sees_users: bool,
    /// The metrics listen on the loopback network.
    pub loopback: bool,
    /// The daemon follows a ledger at this place.
    pub ledger: SharedPlace,
}

impl ServiceManager {
    /// The service manager of the platform this program was built for.
    pub const HERE: Self = if cfg!(target_os = "macos") {
        Self::Launchd
    } else {
        Self::Systemd
    };

    /// The directory for files of this scope; `home` is the user's home directory.
    pub fn directory(self, scope: Scope, home: &Path, config_home: Option<&Path>) -> PathBuf {
        match (self, scope) {
            (Self::Systemd, Scope::System) => PathBuf::from("/etc/systemd/system"),
            (Self::Systemd, Scope::User) => config_home
                .map_or_else(|| home.join(".config"), Path::to_owned)
                .join("systemd/user"),
            (Self::Launchd, Scope::System) => PathBuf::from("/Library/LaunchDaemons"),
            (Self::Launchd, Scope::User) => home.join("Library/LaunchAgents"),
        }
    }
}

impl Service {
    /// The path of its file.
    pub fn path(&self) -> PathBuf {
        let ending = match self.kind {
            ServiceManager::Systemd => "service",
            ServiceManager::Launchd => "plist",
        };
        self.directory.join(format!("{}.{ending}", self.name))
    }

    /// The commands that enable and start it, in order.
    pub fn start(&self) -> Vec<String> {
        let Self { name, .. } = self;
        match (self.kind, self.scope) {
            (ServiceManager::Systemd, Scope::System) => {
                vec![
                    "systemctl daemon-reload".to_owned(),
                    format!("systemctl enable --now {name}.service"),
                ]
            }
            (ServiceManager::Systemd, Scope::User) => vec![
                "systemctl --user daemon-reload".to_owned(),
                format!("systemctl --user enable --now {name}.service"),
            ],
            (ServiceManager::Launchd, Scope::System) => {
                vec![format!("launchctl bootstrap system {}", self.shown())]
            }
            (ServiceManager::Launchd, Scope::User) => {
                vec![format!("launchctl bootstrap gui/$(id -u) {}", self.shown())]
            }
        }
    }

    /// The command that stops and disables it.
    pub fn stop(&self) -> String {
        let Self { name, .. } = self;
        match (self.kind, self.scope) {
            (ServiceManager::Systemd, Scope::System) => {
                format!("systemctl disable --now {name}.service")
            }
            (ServiceManager::Systemd, Scope::User) => {
                format!("systemctl --user disable --now {name}.service")
            }
            (ServiceManager::Launchd, Scope::System) => format!("launchctl bootout system/{name}"),
            (ServiceManager::Launchd, Scope::User) => {
                format!("launchctl bootout gui/$(id -u)/{name}")
            }
        }
    }

    fn shown(&self) -> String {
        workspace::shell::quoted(self.path().as_os_str())
    }

    fn target(&self) -> &'static str {
        match self.scope {
            Scope::System => "multi-user.target",
            Scope::User => "default.target",
        }
    }
}
