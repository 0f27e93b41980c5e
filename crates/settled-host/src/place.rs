//! The place of a shared ledger's end, as `settled.toml` names it, and the files that this host keeps for it: its key,
//! its credentials for a broker, and the copy of a repository. They are in `.settled/host`, which only the daemon's
//! user can enter.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_nats::ServerAddr;
use spool::Layout;
use spool::log::{Log, LogError};
use workspace::config::SharedLog;
use workspace::shell;

use crate::access::{Access, AccessError, servers, without_password};
use crate::jetstream::{self, Founded, LedgerName};
use crate::keys::KeyError;
use crate::{Git, JetStream};

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
    /// A path on this machine that does not exist.
    #[error(
        "there is no git repository at {path}: correct the path or URL, or make one with `git init --bare {path}`",
        path = shell::quoted(path.as_os_str())
    )]
    NoRepository {
        /// The path.
        path: PathBuf,
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
        without_password(text)?;
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
                        let (scheme, host) = (server.scheme(), server.host());
                        if host.contains(':') {
                            // An IPv6 address; without brackets its end would be the port.
                            format!("{scheme}://[{host}]:{}", server.port())
                        } else {
                            format!("{scheme}://{host}:{}", server.port())
                        }
                    })
                    .collect();
                addresses.join(",")
            }
            LogPlace::Repository(repository) => repository.clone(),
        }
    }
}

/// The directory with the files that this host needs for a shared ledger.
pub struct HostDirectory {
    path: PathBuf,
    /// True for a join, which tries the offered credentials before they replace the ones that work.
    is_joining: bool,
}

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
    const ALL: [AccessFile; 6] = [
        AccessFile::Token,
        AccessFile::Nkey,
        AccessFile::Credentials,
        AccessFile::Authority,
        AccessFile::Certificate,
        AccessFile::CertificateKey,
    ];

    /// A broker knows a host by one of these, so one of them takes the place of the others.
    const SECRETS: [AccessFile; 3] = [AccessFile::Token, AccessFile::Nkey, AccessFile::Credentials];

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
        HostDirectory {
            path: Layout::new(root).host(),
            is_joining: false,
        }
    }

    /// The same directory for a join, which reaches the log with the credentials that it is offered.
    pub fn joining(root: &Path) -> HostDirectory {
        HostDirectory {
            is_joining: true,
            ..HostDirectory::of(root)
        }
    }

    /// True if the directory exists.
    pub fn exists(&self) -> bool {
        self.path.exists()
    }

    /// Creates the directory with access for its owner only.
    pub fn make(&self) -> Result<(), PlaceError> {
        self.make_private(&self.path)
    }

    fn make_private(&self, path: &Path) -> Result<(), PlaceError> {
        let made = DirBuilder::new().mode(0o700).create(path);
        match made {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(self.failed(path, error))
            }
            Ok(()) | Err(_) => std::fs::set_permissions(path, Permissions::from_mode(0o700))
                .map_err(|error| self.failed(path, error)),
        }
    }

    /// Removes the directory and all that is in it.
    pub fn remove(&self) -> Result<(), PlaceError> {
        std::fs::remove_dir_all(&self.path).map_err(|error| self.failed(&self.path, error))
    }

    /// The path of this host's key.
    pub fn key(&self) -> PathBuf {
        self.path.join("key")
    }

    /// The path of a key with which this host asks to join. It becomes this host's key once the log has its record.
    pub fn next_key(&self) -> PathBuf {
        self.path.join("key.next")
    }

    /// Makes the next key this host's key, and keeps the one before under a name that no earlier one has.
    pub fn accept_key(&self) -> Result<(), PlaceError> {
        let (key, next) = (self.key(), self.next_key());
        let aside = || {
            for number in 1.. {
                let name = match number {
                    1 => "key.retired".to_owned(),
                    _ => format!("key.retired.{number}"),
                };
                match std::fs::hard_link(&key, self.path.join(name)) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    linked => return linked,
                }
            }
            Ok(())
        };
        match aside() {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(self.failed(&key, error));
            }
            Ok(()) | Err(_) => {}
        }
        // The rename replaces the key at once: a kill leaves this host with one of the two, and while it is the old one,
        // the next join finds the new one and continues here.
        std::fs::rename(&next, &key)
            .and_then(|()| File::open(&self.path)?.sync_all())
            .map_err(|error| self.failed(&key, error))
    }

    /// Copies a file for a join that may still be refused, readable by the owner only. [`HostDirectory::accept`] puts
    /// it into its place.
    pub fn offer(&self, what: AccessFile, from: &Path) -> Result<(), PlaceError> {
        let bytes = std::fs::read(from).map_err(|error| self.failed(from, error))?;
        self.make_private(&self.offers())?;
        let path = self.offered(what);
        let write = || {
            let mut file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)?;
            file.write_all(&bytes)?;
            file.sync_all()
        };
        write().map_err(|error| self.failed(&path, error))
    }

    /// Replaces this host's credentials with the offered ones. A token, an NKey and a credentials file exclude each
    /// other, so the new one removes the other two.
    pub fn accept(&self) -> Result<(), PlaceError> {
        let is_replaced = AccessFile::ALL.map(|what| self.is_replaced(what));
        for (what, is_replaced) in AccessFile::ALL.into_iter().zip(is_replaced) {
            let path = self.path.join(what.file());
            let accepted = match std::fs::rename(self.offered(what), &path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound && is_replaced => {
                    std::fs::remove_file(&path)
                }
                renamed => renamed,
            };
            match accepted {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(self.failed(&path, error));
                }
                Ok(()) | Err(_) => {}
            }
        }
        File::open(&self.path)
            .and_then(|directory| directory.sync_all())
            .map_err(|error| self.failed(&self.path, error))?;
        self.withdraw()
    }

    /// Removes the credentials that were offered and not accepted.
    pub fn withdraw(&self) -> Result<(), PlaceError> {
        let offers = self.offers();
        match std::fs::remove_dir_all(&offers) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(self.failed(&offers, error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// The credential files that exist. A join has those that it was offered in the place of the ones before.
    pub fn access(&self) -> Access {
        let there = |what: AccessFile| {
            let (path, offered) = (self.path.join(what.file()), self.offered(what));
            if self.is_joining && offered.exists() {
                return Some(offered);
            }
            let is_replaced = self.is_joining && self.is_replaced(what);
            Some(path).filter(|path| !is_replaced && path.exists())
        };
        Access {
            token: there(AccessFile::Token),
            nkey: there(AccessFile::Nkey),
            credentials: there(AccessFile::Credentials),
            authority: there(AccessFile::Authority),
            certificate: there(AccessFile::Certificate),
            key: there(AccessFile::CertificateKey),
        }
    }

    /// True for a secret if another kind of secret is offered.
    fn is_replaced(&self, what: AccessFile) -> bool {
        let mut others = AccessFile::SECRETS.iter().filter(|other| **other != what);
        AccessFile::SECRETS.contains(&what) && others.any(|other| self.offered(*other).exists())
    }

    fn offers(&self) -> PathBuf {
        self.path.join("offered")
    }

    fn offered(&self, what: AccessFile) -> PathBuf {
        self.offers().join(what.file())
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
                &self.path.join("log.git"),
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
            LogPlace::Repository(repository) => {
                check_path(&repository)?;
                self.open(shared)
            }
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
            .map_err(|error| self.failed(&self.path, error))?;
        Ok(runtime.block_on(answer)?)
    }

    fn failed(&self, path: &Path, source: io::Error) -> PlaceError {
        let path = path.to_owned();
        PlaceError::Io { path, source }
    }
}

/// Fails for a path on this machine that does not exist. As for git, a colon before the first slash begins a path on
/// another machine.
fn check_path(repository: &str) -> Result<(), PlaceError> {
    let first = repository.split('/').next().unwrap_or_default();
    let path = PathBuf::from(repository);
    let is_missing = !first.contains(':') && matches!(path.try_exists(), Ok(false));
    if is_missing {
        return Err(PlaceError::NoRepository { path });
    }
    Ok(())
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
        let six = LogPlace::parse("nats://[::1]:4311").expect("a broker");
        assert_eq!(six.text(), "nats://[::1]:4311");
        assert!(LogPlace::parse(&six.text()).is_ok());
        let remote = LogPlace::parse("git@example.org:team/ledger.git").expect("a repository");
        assert_eq!(remote.text(), "git@example.org:team/ledger.git");
        for wrong in [
            "--upload-pack=x",
            "",
            "nats://me:s3cret@one",
            "https://me:s3cret@one/x.git",
        ] {
            assert!(LogPlace::parse(wrong).is_err(), "{wrong}");
        }
        let root = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(root.path().join(".settled")).expect("a directory");
        let token = root.path().join("token");
        std::fs::write(&token, "s3cret").expect("a file");
        let directory = HostDirectory::of(root.path());
        directory.make().expect("a directory");
        directory.offer(AccessFile::Token, &token).expect("a copy");
        directory.accept().expect("a token in its place");
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
            AccessFile::Authority,
            AccessFile::Certificate,
            AccessFile::CertificateKey,
        ];
        let texts = |access: Access| {
            let kept = [
                access.token,
                access.authority,
                access.certificate,
                access.key,
            ];
            kept.map(|kept| kept.map(|path| std::fs::read_to_string(path).expect("a text")))
        };
        let joining = HostDirectory::joining(root.path());
        let of = |round: &str| kinds.map(|kind| Some(format!("{round} {}", kind.file())));
        for (before, round) in [(None, "first"), (Some("first"), "second")] {
            for kind in kinds {
                std::fs::write(&from, format!("{round} {}", kind.file())).expect("a file");
                joining.offer(kind, &from).expect("a copy");
            }
            // Only the join has what it was offered, until it accepts it.
            assert_eq!(texts(joining.access()), of(round));
            assert_eq!(
                texts(directory.access()),
                before.map_or_else(|| kinds.map(|_| None), of)
            );
            joining.accept().expect("the files in their places");
            assert_eq!(texts(directory.access()), of(round));
        }
        let missing = directory.offer(AccessFile::Token, &root.path().join("missing"));
        assert!(matches!(missing, Err(PlaceError::Io { .. })));
        // A directory that others can enter is closed to them.
        let open = Permissions::from_mode(0o755);
        std::fs::set_permissions(&directory.path, open).expect("a mode");
        directory.make().expect("a directory");
        let mode = directory
            .path
            .metadata()
            .expect("it is there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn a_secret_of_another_kind_takes_the_place_of_the_one_before() {
        let root = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(root.path().join(".settled")).expect("a directory");
        let directory = HostDirectory::joining(root.path());
        directory.make().expect("a directory");
        let from = root.path().join("from");
        std::fs::write(&from, "a secret").expect("a file");
        directory.offer(AccessFile::Token, &from).expect("a copy");
        directory.accept().expect("a token");
        directory.offer(AccessFile::Nkey, &from).expect("a copy");
        let access = directory.access();
        assert!(
            access.token.is_none() && access.nkey.is_some(),
            "{access:?}"
        );
        // Withdrawn, the offer leaves the token.
        directory.withdraw().expect("no offer");
        let access = directory.access();
        assert!(
            access.token.is_some() && access.nkey.is_none(),
            "{access:?}"
        );
        directory.offer(AccessFile::Nkey, &from).expect("a copy");
        directory.accept().expect("a seed");
        let access = HostDirectory::of(root.path()).access();
        assert!(
            access.token.is_none() && access.nkey.is_some(),
            "{access:?}"
        );
    }

    #[test]
    fn an_accepted_key_replaces_the_one_before_and_none_is_lost() {
        let root = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(root.path().join(".settled")).expect("a directory");
        let directory = HostDirectory::of(root.path());
        directory.make().expect("a directory");
        for key in ["one", "two", "three"] {
            std::fs::write(directory.next_key(), key).expect("a file");
            directory.accept_key().expect("a key");
            assert!(!directory.next_key().exists());
        }
        let text = |name: &str| {
            let path = root.path().join(".settled/host").join(name);
            std::fs::read_to_string(path).expect("a text")
        };
        assert_eq!(text("key"), "three");
        assert_eq!(
            (text("key.retired"), text("key.retired.2")),
            ("one".into(), "two".into())
        );
        // Without a next key, nothing is renamed.
        let told = directory.accept_key();
        assert!(matches!(told, Err(PlaceError::Io { .. })));
        assert_eq!(text("key"), "three");
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
