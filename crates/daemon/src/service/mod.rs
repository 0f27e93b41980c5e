//! Installs, inspects and removes the file by which systemd or launchd knows a workspace's daemon, and recognizes files
//! of others. The service manager's own commands start and stop the daemon; the answers name them.

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
    /// The machine's: from its start on.
    System,
    /// A user's: while it is logged in, or lingers.
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

/// The work of the process, which decides how far it can be confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// It only moves mail.
    MailOnly,
    /// It also starts agents.
    StartsAgents,
    /// It moves no mail: it is the notifier, which tells people that they are needed.
    Notifies,
}

/// A daemon, or the notifier beside it, as a service.
#[derive(Clone, Debug)]
pub struct Service {
    /// The service manager.
    pub kind: ServiceManager,
    /// For the machine or for one user.
    pub scope: Scope,
    /// The name of its file without the ending; one per workspace.
    pub name: String,
    /// The directory of its file.
    pub directory: PathBuf,
    /// The program, absolute.
    pub program: PathBuf,
    /// The workspace, absolute.
    pub root: PathBuf,
    /// The owner of the workspace: the user and group the daemon runs as.
    pub owner: (u32, u32),
    /// The daemon's work.
    pub work: Work,
    /// The needs its confinement must respect.
    pub needs: Needs,
}

/// The access that the workspace's config needs despite the confinement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Agents have users of their own, and the daemon looks at whose file is whose.
    pub sees_users: bool,
    /// Metrics are listened for on the loopback network.
    pub loopback: bool,
}

impl ServiceManager {
    /// The supervisor of the machine this program was made for.
    pub const HERE: Self = if cfg!(target_os = "macos") {
        Self::Launchd
    } else {
        Self::Systemd
    };

    /// The directory for files of this scope; `home` is the user's.
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
    /// Its file.
    pub fn path(&self) -> PathBuf {
        let ending = match self.kind {
            ServiceManager::Systemd => "service",
            ServiceManager::Launchd => "plist",
        };
        self.directory.join(format!("{}.{ending}", self.name))
    }

    /// The commands that enable and start it, in their order.
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
