//! The place of a shared ledger's end, as `settled.toml` names it, and the files that this host keeps for it: its key,
//! its credentials for a broker, and the copy of a repository. They are in `.settled/host`, which only the daemon's
//! user can enter.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_nats::ServerAddr;
use spool::log::{Log, LogError};
use workspace::config::SharedLog;

use crate::access::{Access, AccessError, servers};
use crate::jetstream::{self, Founded, LedgerName};
use crate::keys::KeyError;
use crate::{Git, JetStream};

/// The directory, relative to the workspace.
const DIRECTORY: &str = ".settled/host";

/// The stream that all workspaces of a cluster share, after `SETTLED_`.
const SHARD: &str = "1";

/// The longest wait for a connection when a person waits.
const CONNECTED: Duration = Duration::from_secs(10);

/// The longest wait for a connection when a daemon starts.
const FIRST: Duration = Duration::from_secs(1);

/// The place that holds the end of a ledger.
#[derive(Clone, Debug)]
pub enum LogPlace {
    /// In a stream of these brokers.
    Brokers(Vec<ServerAddr>),
    /// On a ref of this git repository.
    Repository(String),
}

/// The reason a log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// The address or this host's credentials are unfit.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// This host's key cannot be loaded or made.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The log refuses or cannot be reached.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The directory or a file in it cannot be read or written.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The stream drops records, or can be emptied.
    #[error("the stream cannot hold a ledger: {0}")]
    Unfit(String),
}

impl LogPlace {
    /// Parses a place: brokers begin with `nats://` or `tls://`; everything else is a repository, in any form that git
    /// takes.
    pub fn parse(text: &str) -> Result<LogPlace, AccessError> {
        if text.starts_with("nats://") || text.starts_with("tls://") {
            return Ok(LogPlace::Brokers(servers(text)?));
        }
        // The daemon may run in another directory, so the path must be absolute.
        let local = Path::new(text);
        let repository = match local.canonicalize() {
            Ok(path) => path.to_string_lossy().into_owned(),
            Err(_) => text.to_owned(),
        };
        if repository.starts_with('-') || repository.trim().is_empty() {
            return Err(AccessError::NotAnAddress(text.to_owned()));
        }
        Ok(LogPlace::Repository(repository))
    }

    /// The place as `settled.toml` writes it.
    pub fn text(&self) -> String {
        match self {
            LogPlace::Brokers(servers) => {
                let addresses: Vec<String> = servers
                    .iter()
                    .map(|server| {
                        format!("{}://{}:{}", server.scheme(), server.host(), server.port())
                    })
                    .collect();
                addresses.join(",")
            }
            LogPlace::Repository(repository) => repository.clone(),
        }
    }
}

/// The directory with the files that this host needs for a shared ledger.
pub struct HostDirectory(PathBuf);

/// A secret or certificate in that directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessFile {
    /// A token.
    Token,
    /// The seed of an NKey.
    Nkey,
    /// A JWT and its NKey.
    Credentials,
    /// The authority that issued the brokers' certificates.
    Authority,
    /// This host's certificate.
    Certificate,
    /// The private key of that certificate.
    CertificateKey,
}

impl AccessFile {
    fn file(self) -> &'static str {
        match self {
            AccessFile::Token => "token",
            AccessFile::Nkey => "nkey",
            AccessFile::Credentials => "credentials",
            AccessFile::Authority => "authority.pem",
            AccessFile::Certificate => "certificate.pem",
            AccessFile::CertificateKey => "certificate-key.pem",
        }
    }
}

impl HostDirectory {
    /// The directory of this workspace, which may not exist yet.
    pub fn of(root: &Path) -> HostDirectory {
        HostDirectory(root.join(DIRECTORY))
    }

    /// Creates the directory with access for its owner only.
    pub fn make(&self) -> Result<(), PlaceError> {
        let made = DirBuilder::new().mode(0o700).create(&self.0);
        match made {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(self.failed(&self.0, error))
            }
            Ok(()) | Err(_) => std::fs::set_permissions(&self.0, Permissions::from_mode(0o700))
                .map_err(|error| self.failed(&self.0, error)),
        }
    }

    /// The path of this host's key.
    pub fn key(&self) -> PathBuf {
        self.0.join("key")
    }

    /// Renames the key, so that another one can be made; does nothing without a key.
    pub fn set_key_aside(&self) -> Result<(), PlaceError> {
        let (key, aside) = (self.key(), self.0.join("key.retired"));
        match std::fs::rename(&key, &aside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.failed(&key, error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Copies a file into the directory, readable by the owner only. A kill leaves no partial copy.
    pub fn keep(&self, what: AccessFile, from: &Path) -> Result<(), PlaceError> {
        let bytes = std::fs::read(from).map_err(|error| self.failed(from, error))?;
        let path = self.0.join(what.file());
        let fresh = path.with_extension("new");
        let write = || {
            let _ = std::fs::remove_file(&fresh);
            let mut file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&fresh)?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            std::fs::rename(&fresh, &path)?;
            File::open(&self.0)?.sync_all()
        };
        write().map_err(|error| self.failed(&path, error))
    }

    /// The credential files that exist.
    pub fn access(&self) -> Access {
        let there = |what: AccessFile| Some(self.0.join(what.file())).filter(|path| path.exists());
        Access {
            token: there(AccessFile::Token),
            nkey: there(AccessFile::Nkey),
            credentials: there(AccessFile::Credentials),
            authority: there(AccessFile::Authority),
            certificate: there(AccessFile::Certificate),
            key: there(AccessFile::CertificateKey),
        }
    }

    /// Starts to follow a log. Fails only for a cause that no retry removes.
    pub fn open(&self, shared: &SharedLog) -> Result<Box<dyn Log>, PlaceError> {
        Ok(match LogPlace::parse(&shared.log)? {
            LogPlace::Brokers(servers) => {
                let options = self.access().options()?;
                let log = JetStream::open(servers, options, &ledger_name(shared))?;
                // A host that starts without its network delivers what it has; a connected one starts in step.
                if let Err(error) = log.wait_until_connected(FIRST) {
                    tracing::debug!("begins without the log: {error}");
                }
                Box::new(log)
            }
            LogPlace::Repository(remote) => Box::new(Git::open(
                &self.0.join("log.git"),
                &remote,
                &shared.workspace,
            )?),
        })
    }

    /// Opens a log for a person who waits, to put records into it: creates the stream if it is missing, and fails if the
    /// log refuses this host.
    pub fn join(&self, shared: &SharedLog) -> Result<Box<dyn Log>, PlaceError> {
        match LogPlace::parse(&shared.log)? {
            LogPlace::Brokers(servers) => {
                let name = ledger_name(shared);
                let options = self.access().options()?;
                let found = jetstream::found(servers.clone(), options, &name, None);
                self.connected(servers, &name, &self.at_once(found)?)
            }
            LogPlace::Repository(_) => self.open(shared),
        }
    }

    /// Opens the log of this host for a person who waits. Fails if the log refuses this host, and if its stream is
    /// missing: the broker has lost it, and an empty one would hide that.
    pub fn open_existing(&self, shared: &SharedLog) -> Result<Box<dyn Log>, PlaceError> {
        match LogPlace::parse(&shared.log)? {
            LogPlace::Brokers(servers) => {
                let founded = self.founded(shared)?;
                self.connected(servers, &ledger_name(shared), &founded)
            }
            LogPlace::Repository(_) => self.open(shared),
        }
    }

    fn connected(
        &self,
        servers: Vec<ServerAddr>,
        name: &LedgerName,
        founded: &Founded,
    ) -> Result<Box<dyn Log>, PlaceError> {
        if !founded.wrong.is_empty() {
            return Err(PlaceError::Unfit(founded.wrong.join("; ")));
        }
        let log = JetStream::open(servers, self.access().options()?, name)?;
        log.wait_until_connected(CONNECTED)?;
        Ok(Box::new(log))
    }

    /// The existing stream of this ledger; fails for a repository.
    pub fn founded(&self, shared: &SharedLog) -> Result<Founded, PlaceError> {
        match LogPlace::parse(&shared.log)? {
            LogPlace::Brokers(servers) => {
                let options = self.access().options()?;
                self.at_once(jetstream::existing(servers, options, &ledger_name(shared)))
            }
            LogPlace::Repository(_) => Err(PlaceError::Unfit("it is a repository".to_owned())),
        }
    }

    /// Waits for what a broker answers.
    fn at_once<T>(
        &self,
        answer: impl Future<Output = Result<T, LogError>>,
    ) -> Result<T, PlaceError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| self.failed(&self.0, error))?;
        Ok(runtime.block_on(answer)?)
    }

    fn failed(&self, path: &Path, source: io::Error) -> PlaceError {
        let path = path.to_owned();
        PlaceError::Io { path, source }
    }
}

fn ledger_name(shared: &SharedLog) -> LedgerName {
    LedgerName {
        workspace: shared.workspace.clone(),
        shard: SHARD.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brokers_and_repositories_are_told_apart_and_secrets_are_kept_for_the_owner() {
        let brokers = LogPlace::parse("nats://one, tls://two:4223").expect("brokers");
        assert_eq!(brokers.text(), "nats://one:4222,tls://two:4223");
        let remote = LogPlace::parse("git@example.org:team/ledger.git").expect("a repository");
        assert_eq!(remote.text(), "git@example.org:team/ledger.git");
        for wrong in ["--upload-pack=x", "", "nats://me:s3cret@one"] {
            assert!(LogPlace::parse(wrong).is_err(), "{wrong}");
        }
        let root = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(root.path().join(".settled")).expect("a directory");
        let token = root.path().join("token");
        std::fs::write(&token, "s3cret").expect("a file");
        let directory = HostDirectory::of(root.path());
        directory.make().expect("a directory");
        directory.keep(AccessFile::Token, &token).expect("a copy");
        let kept = directory.access().token.expect("a token");
        let mode = |path: &Path| path.metadata().expect("it is there").permissions().mode();
        assert_eq!(mode(&kept) & 0o777, 0o600);
        assert_eq!(mode(kept.parent().expect("a directory")) & 0o777, 0o700);
        assert!(directory.access().options().is_ok());
    }

    #[test]
    fn what_a_host_keeps_is_found_by_its_kind_and_replaced_whole() {
        let root = tempfile::tempdir().expect("a directory");
        let directory = HostDirectory::of(root.path());
        let told = directory.make().err();
        assert!(matches!(told, Some(PlaceError::Io { .. })), "{told:?}");
        std::fs::create_dir(root.path().join(".settled")).expect("a directory");
        directory.make().expect("a directory");
        assert_eq!(directory.access(), Access::default());
        let from = root.path().join("from");
        let kinds = [
            AccessFile::Token,
            AccessFile::Nkey,
            AccessFile::Credentials,
            AccessFile::Authority,
            AccessFile::Certificate,
            AccessFile::CertificateKey,
        ];
        // The second copy replaces the first, even after a kill left a temporary file.
        for round in ["first", "second"] {
            for kind in kinds {
                std::fs::write(&from, format!("{round} {}", kind.file())).expect("a file");
                directory.keep(kind, &from).expect("a copy");
                let left = directory.0.join(kind.file()).with_extension("new");
                assert!(!left.exists());
                std::fs::write(&left, "left").expect("a file");
            }
        }
        let access = directory.access();
        let kept = [
            access.token,
            access.nkey,
            access.credentials,
            access.authority,
            access.certificate,
            access.key,
        ];
        for (kind, kept) in kinds.iter().zip(kept) {
            let text = std::fs::read_to_string(kept.expect("a file")).expect("a text");
            assert_eq!(text, format!("second {}", kind.file()));
        }
        let missing = directory.keep(AccessFile::Token, &root.path().join("missing"));
        assert!(matches!(missing, Err(PlaceError::Io { .. })));
        // A directory that others can enter is closed to them.
        let open = Permissions::from_mode(0o755);
        std::fs::set_permissions(&directory.0, open).expect("a mode");
        directory.make().expect("a directory");
        let mode = directory
            .0
            .metadata()
            .expect("it is there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn a_key_is_set_aside_and_no_key_is_none() {
        let root = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(root.path().join(".settled")).expect("a directory");
        let directory = HostDirectory::of(root.path());
        directory.make().expect("a directory");
        directory.set_key_aside().expect("no key");
        std::fs::write(directory.key(), "key").expect("a file");
        directory.set_key_aside().expect("a key");
        assert!(!directory.key().exists());
        let aside = root.path().join(".settled/host/key.retired");
        assert_eq!(std::fs::read_to_string(&aside).expect("a text"), "key");
        std::fs::write(directory.key(), "key").expect("a file");
        std::fs::remove_file(&aside).expect("a file to remove");
        std::fs::create_dir(&aside).expect("a directory");
        let told = directory.set_key_aside();
        assert!(matches!(told, Err(PlaceError::Io { .. })));
    }

    #[test]
    fn a_repository_here_is_named_from_the_root_and_has_no_stream() {
        let root = tempfile::tempdir().expect("a directory");
        let whole = root.path().canonicalize().expect("a path");
        std::fs::create_dir(whole.join("ledger.git")).expect("a directory");
        let text = format!("{}/../{}/ledger.git", whole.display(), {
            let name = whole.file_name().expect("a name");
            name.to_string_lossy()
        });
        let place = LogPlace::parse(&text).expect("a repository");
        let named = whole.join("ledger.git").display().to_string();
        assert_eq!(place.text(), named);
        let shared = SharedLog {
            log: named,
            workspace: "team".to_owned(),
            host: "tower".parse().expect("a name"),
        };
        let founded = HostDirectory::of(root.path()).founded(&shared);
        assert!(matches!(founded, Err(PlaceError::Unfit(_))));
        let name = ledger_name(&shared);
        assert_eq!(name.stream(), "SETTLED_1");
        assert_eq!(name.subject(), "led.1.team");
        assert_eq!(name.heartbeats(), "beat.1.team");
    }

    #[test]
    fn a_broker_that_is_away_is_followed_and_not_joined() {
        let root = tempfile::tempdir().expect("a directory");
        // Nobody listens on a port that was just released.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        drop(listener);
        let shared = SharedLog {
            log: format!("nats://{address}"),
            workspace: "team".to_owned(),
            host: "tower".parse().expect("a name"),
        };
        let directory = HostDirectory::of(root.path());
        let mut log = directory.open(&shared).expect("a log that may come back");
        assert!(matches!(log.head(), Err(LogError::Unreachable { .. })));
        for told in [
            directory.join(&shared).err(),
            directory.founded(&shared).err(),
        ] {
            assert!(
                matches!(told, Some(PlaceError::Log(LogError::Unreachable { .. }))),
                "{told:?}"
            );
        }
    }
}
