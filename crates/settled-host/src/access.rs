//! The credentials with which this host and a broker identify each other: a token, an NKey or a credentials file, and
//! TLS certificates. Secrets are in files that only the daemon's user can read, never in `settled.toml`, which agents
//! read.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use async_nats::{ConnectOptions, ServerAddr};

use crate::keys::{KeyError, private};

/// More than any token, seed or credentials file has.
const BYTES_MAX: u64 = 64 * 1024;

/// The credential files of this host. All are optional.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Access {
    /// A token.
    pub token: Option<PathBuf>,
    /// The seed of an NKey, which begins with `SU`.
    pub nkey: Option<PathBuf>,
    /// A JWT and its NKey, in the format that `nsc` writes.
    pub credentials: Option<PathBuf>,
    /// The certificate of the authority that issued the broker's certificate; the system's authorities count as well.
    pub authority: Option<PathBuf>,
    /// This host's own certificate.
    pub certificate: Option<PathBuf>,
    /// The private key of that certificate.
    pub key: Option<PathBuf>,
}

/// The reason the options of a connection cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// A secret cannot be read, or others can read it.
    #[error(transparent)]
    Secret(#[from] KeyError),
    /// The config gives two ways to identify the host.
    #[error("{0} and {1} are both given: a broker knows a host by one of them")]
    Both(&'static str, &'static str),
    /// A certificate without its key, or a key without its certificate.
    #[error("a certificate and its key belong together: give both")]
    HalfACertificate,
    /// The file's content is not what it should be.
    #[error("{path}: {what}", path = path.display())]
    Unfit {
        /// The file.
        path: PathBuf,
        /// The fault.
        what: String,
    },
    /// The address of a broker cannot be parsed.
    #[error("{0:?} is not a broker address, expected nats://HOST:PORT or tls://HOST:PORT")]
    NotAnAddress(String),
    /// An address contains a password.
    #[error(
        "the address of {0} holds a password, and agents can read it: use a file with --token, --nkey or --credentials"
    )]
    PasswordInAddress(String),
    /// The URL of a repository contains a password or a token.
    #[error(
        "the URL of {0} holds a password, and agents can read it: leave it out, and let git's credential helper of the \
         daemon's user give it (`git config --global credential.helper store`, then `git credential approve`)"
    )]
    PasswordInUrl(String),
}

/// Parses the addresses of brokers, separated by commas.
pub fn servers(text: &str) -> Result<Vec<ServerAddr>, AccessError> {
    let mut servers = Vec::new();
    for address in text.split(',').map(str::trim) {
        let server: ServerAddr = address
            .parse()
            .map_err(|_| AccessError::NotAnAddress(address.to_owned()))?;
        if server.host().is_empty() || !["nats", "tls"].contains(&server.scheme()) {
            return Err(AccessError::NotAnAddress(address.to_owned()));
        }
        if server.has_user_pass() {
            return Err(AccessError::PasswordInAddress(server.host().to_owned()));
        }
        servers.push(server);
    }
    Ok(servers)
}

/// Refuses the URL of a repository with a password: `settled.toml` would hold it, which agents read, and messages would
/// print it. A user's name alone is no secret.
pub fn without_password(url: &str) -> Result<(), AccessError> {
    let Some((_, rest)) = url.split_once("://") else {
        return Ok(());
    };
    let authority = rest.split('/').next().unwrap_or_default();
    match authority.rsplit_once('@') {
        Some((user, host)) if user.contains(':') => {
            Err(AccessError::PasswordInUrl(host.to_owned()))
        }
        Some(_) | None => Ok(()),
    }
}

impl Access {
    /// Returns the options for a connection. The secrets are read now; a later reconnect uses the same ones.
    pub fn options(&self) -> Result<ConnectOptions, AccessError> {
        let ways = [
            ("token", &self.token),
            ("nkey", &self.nkey),
            ("credentials", &self.credentials),
        ];
        let mut given = ways.iter().filter(|(_, file)| file.is_some());
        if let (Some((one, _)), Some((other, _))) = (given.next(), given.next()) {
            return Err(AccessError::Both(one, other));
        }
        let mut options = ConnectOptions::new();
        if let Some(path) = &self.token {
            options = options.token(secret(path)?);
        }
        if let Some(path) = &self.nkey {
            let seed = secret(path)?;
            if !seed.starts_with("SU") {
                let what = "it does not begin with SU, as the seed of a user's NKey does";
                return Err(unfit(path, what));
            }
            options = options.nkey(seed);
        }
        if let Some(path) = &self.credentials {
            options = options
                .credentials(&secret(path)?)
                .map_err(|error| unfit(path, &error.to_string()))?;
        }
        if let Some(path) = &self.authority {
            options = options.add_root_certificates(path.clone());
        }
        match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => {
                private(key)?;
                options = options.add_client_certificate(certificate.clone(), key.clone());
            }
            (None, None) => {}
            (Some(_), None) | (None, Some(_)) => return Err(AccessError::HalfACertificate),
        }
        Ok(options)
    }
}

/// Reads a secret that nobody else can read.
fn secret(path: &Path) -> Result<String, AccessError> {
    let mut text = String::new();
    let read = private(path)?.take(BYTES_MAX).read_to_string(&mut text);
    match read {
        Ok(_) if text.trim().is_empty() => Err(unfit(path, "it is empty")),
        Ok(_) => Ok(text.trim().to_owned()),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(unfit(path, "it is not text"))
        }
        Err(error) => Err(unfit(path, &error.to_string())),
    }
}

fn unfit(path: &Path, what: &str) -> AccessError {
    AccessError::Unfit {
        path: path.to_owned(),
        what: what.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn file(directory: &Path, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = directory.join(name);
        std::fs::write(&path, text).expect("a file");
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&path, mode).expect("a mode");
        path
    }

    #[test]
    fn a_secret_that_agents_can_read_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let open = file(directory.path(), "open", "s3cret", 0o644);
        let access = Access {
            token: Some(open),
            ..Access::default()
        };
        let told = access.options().err().map(|error| error.to_string());
        let told = told.expect("a refusal");
        assert!(told.contains("has mode 0644"), "{told}");
        let closed = file(directory.path(), "closed", "s3cret", 0o600);
        let access = Access {
            token: Some(closed),
            ..Access::default()
        };
        assert!(access.options().is_ok());
    }

    #[test]
    fn a_host_is_known_in_one_way_and_by_whole_certificates() {
        let directory = tempfile::tempdir().expect("a directory");
        let secret = file(directory.path(), "secret", "SUAB", 0o600);
        let both = Access {
            token: Some(secret.clone()),
            nkey: Some(secret.clone()),
            ..Access::default()
        };
        assert!(matches!(
            both.options(),
            Err(AccessError::Both("token", "nkey"))
        ));
        let half = Access {
            certificate: Some(secret),
            ..Access::default()
        };
        assert!(matches!(half.options(), Err(AccessError::HalfACertificate)));
        let empty = Access {
            token: Some(file(directory.path(), "empty", "\n", 0o600)),
            ..Access::default()
        };
        assert!(matches!(empty.options(), Err(AccessError::Unfit { .. })));
    }

    #[test]
    fn addresses_are_of_brokers_and_hold_no_password() {
        let two = servers("nats://one:4222, tls://two").expect("addresses");
        assert_eq!(two.len(), 2);
        assert_eq!((two[1].host(), two[1].port()), ("two", 4222));
        let told = servers("nats://me:s3cret@one").err();
        assert!(matches!(&told, Some(AccessError::PasswordInAddress(host)) if host == "one"));
        // No option takes a password, so the message names those that take another secret.
        let told = told.map(|error| error.to_string()).expect("a refusal");
        assert!(told.contains("--token"), "{told}");
        for wrong in ["ws://one", "", "nats://one,,nats://two"] {
            assert!(servers(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_url_of_a_repository_holds_no_password() {
        for url in [
            "http://bob:s3cret@host/x.git",
            "ssh://bob:s3c@ret@host:22/x",
        ] {
            let told = without_password(url).err().map(|error| error.to_string());
            let told = told.expect("a refusal");
            assert!(
                !told.contains("s3c") && told.contains("credential"),
                "{told}"
            );
        }
        for url in [
            "https://bob@host:8443/x:y@z.git",
            "git@host:team/x.git",
            "ssh://git@host:22/x",
            "/srv/a:b@c.git",
        ] {
            assert!(without_password(url).is_ok(), "{url}");
        }
    }

    #[test]
    fn each_file_holds_what_it_should() {
        let directory = tempfile::tempdir().expect("a directory");
        let secret = |name: &str, text: &str| Some(file(directory.path(), name, text, 0o600));
        let unfit = |access: Access| match access.options() {
            Err(AccessError::Unfit { what, .. }) => what,
            other => panic!("{:?}", other.map(drop)),
        };
        let seed = Access {
            nkey: secret("seed", "SUAB\n"),
            ..Access::default()
        };
        assert!(seed.options().is_ok());
        let other = unfit(Access {
            nkey: secret("other", "SAAB"),
            ..Access::default()
        });
        assert!(other.starts_with("it does not begin with SU"), "{other}");
        let empty = unfit(Access {
            token: secret("empty", " \n"),
            ..Access::default()
        });
        assert_eq!(empty, "it is empty");
        let bytes = secret("bytes", "");
        std::fs::write(directory.path().join("bytes"), [0xff, 0xfe]).expect("a file");
        let bytes = unfit(Access {
            token: bytes,
            ..Access::default()
        });
        assert_eq!(bytes, "it is not text");
        let folder = directory.path().join("folder");
        std::fs::create_dir(&folder).expect("a directory");
        let mode = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(&folder, mode).expect("a mode");
        let folder = unfit(Access {
            token: Some(folder),
            ..Access::default()
        });
        assert!(folder.contains("directory"), "{folder}");
        let credentials = Access {
            credentials: secret("credentials", "neither a JWT nor a key"),
            ..Access::default()
        };
        assert!(matches!(
            credentials.options(),
            Err(AccessError::Unfit { .. })
        ));
    }

    #[test]
    fn the_key_of_a_certificate_is_a_secret_as_well() {
        let directory = tempfile::tempdir().expect("a directory");
        let with = |mode| Access {
            authority: Some(directory.path().join("authority")),
            certificate: Some(file(directory.path(), "certificate", "public", 0o644)),
            key: Some(file(directory.path(), "key", "s3cret", mode)),
            ..Access::default()
        };
        assert!(with(0o600).options().is_ok());
        assert!(matches!(
            with(0o640).options(),
            Err(AccessError::Secret(KeyError::Readable { mode: 0o640, .. }))
        ));
        let half = Access {
            certificate: None,
            ..with(0o600)
        };
        assert!(matches!(half.options(), Err(AccessError::HalfACertificate)));
        let two = Access {
            nkey: Some(directory.path().join("nkey")),
            credentials: Some(directory.path().join("credentials")),
            ..Access::default()
        };
        assert!(matches!(
            two.options(),
            Err(AccessError::Both("nkey", "credentials"))
        ));
    }

    #[test]
    fn a_secret_is_read_to_its_end_unless_nothing_is_that_long() {
        let directory = tempfile::tempdir().expect("a directory");
        for (bytes, read) in [(60 * 1024, 60 * 1024), (70 * 1024, 64 * 1024)] {
            let path = file(directory.path(), "long", &"x".repeat(bytes), 0o600);
            let text = secret(&path).expect("a secret");
            assert_eq!(text.len(), read);
        }
    }
}
