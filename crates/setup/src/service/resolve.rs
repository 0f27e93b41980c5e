//! Resolves a request for a service into absolute paths, because a service manager has neither our working directory nor
//! our PATH.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use spool::Layout;
use workspace::config::{Config, ConfigError, Listen};

use super::{Needs, Scope, Service, ServiceManager, SharedPlace, Work};

/// A service as the caller asks for it.
#[derive(Clone, Debug)]
pub struct ServiceRequest {
    /// The scope; by default the machine's for root and the user's for other users.
    pub scope: Option<Scope>,
    /// The service manager.
    pub kind: ServiceManager,
    /// Its name.
    pub name: String,
    /// The directory of its file, if not the service manager's.
    pub directory: Option<PathBuf>,
    /// The daemon's work.
    pub work: Work,
}

/// The reason a request cannot become a service.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// A path cannot be examined.
    #[error("{what}: {source}")]
    Io {
        /// The path, or the program or directory it stands for.
        what: String,
        /// The cause.
        source: io::Error,
    },
    /// The directory of a user's services is unknown.
    #[error("cannot find the directory of your services from HOME: use --into DIR")]
    NoHome,
    /// A service of one user would serve the workspace of another.
    #[error(
        "the workspace belongs to uid {owner}, and a service of yours would serve it as uid {asks}"
    )]
    OfAnotherUser {
        /// The owner of the workspace.
        owner: u32,
        /// The user who asks.
        asks: u32,
    },
    /// The config cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

impl Service {
    /// The service of the workspace at `given`, as this process would install it.
    pub fn resolve(given: &Path, request: ServiceRequest) -> Result<Self, ResolveError> {
        let failed = |what: String| move |source| ResolveError::Io { what, source };
        let root = given
            .canonicalize()
            .map_err(failed(given.display().to_string()))?;
        let program = std::env::current_exe()
            .and_then(std::fs::canonicalize)
            .map_err(failed("cannot find the path of this program".to_owned()))?;
        let me = rustix::process::geteuid().as_raw();
        let ServiceRequest {
            scope,
            kind,
            name,
            directory,
            work,
        } = request;
        let scope = scope.unwrap_or(if me == 0 { Scope::System } else { Scope::User });
        let data = Layout::new(&root)
            .own()
            .symlink_metadata()
            .or_else(|_| root.symlink_metadata())
            .map_err(failed(root.display().to_string()))?;
        let directory = match directory {
            Some(directory) => directory,
            None => supervisors_directory(kind, scope)?,
        };
        if scope == Scope::User && data.uid() != me {
            return Err(ResolveError::OfAnotherUser {
                owner: data.uid(),
                asks: me,
            });
        }
        let config = Config::load(&root)?;
        let needs = Needs {
            sees_users: !config.users().is_empty(),
            loopback: matches!(config.metrics.listen, Listen::Loopback(_)),
            ledger: shared_place(config.ledger.log.as_deref()),
        };
        Ok(Self {
            kind,
            scope,
            name,
            directory,
            program,
            root,
            owner: (data.uid(), data.gid()),
            work,
            needs,
        })
    }
}

/// The place that `ledger.log` names; `settled-host` says what is wrong with a text that names none.
fn shared_place(log: Option<&str>) -> SharedPlace {
    let Some(log) = log else {
        return SharedPlace::Unshared;
    };
    if log.starts_with("nats://") || log.starts_with("tls://") {
        return SharedPlace::Brokers;
    }
    let directory = Path::new(log.strip_prefix("file://").unwrap_or(log));
    if directory.is_absolute() {
        SharedPlace::Directory(directory.to_owned())
    } else {
        SharedPlace::Remote
    }
}

fn supervisors_directory(kind: ServiceManager, scope: Scope) -> Result<PathBuf, ResolveError> {
    let absolute = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let home = match (absolute("HOME"), scope) {
        (Some(home), _) => home,
        (None, Scope::System) => PathBuf::from("/"),
        (None, Scope::User) => return Err(ResolveError::NoHome),
    };
    Ok(kind.directory(scope, &home, absolute("XDG_CONFIG_HOME").as_deref()))
}
