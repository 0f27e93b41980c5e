//! The address on which the page listens, the names it answers to, and the secrets that let a browser in. Only for this
//! machine: a loopback address, or a socket for a proxy that the operator runs.

use std::fmt;
use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use tokio::net::{TcpListener, UnixListener};

/// The address or socket on which the page listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Listen {
    /// At a loopback address.
    Loopback(SocketAddr),
    /// At a socket.
    Unix(PathBuf),
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loopback(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || {
            format!(
                "`{text}` is neither a loopback address with a port, such as 127.0.0.1:8460, nor unix:PATH"
            )
        };
        match text.strip_prefix("unix:") {
            Some("") => Err(refused()),
            Some(path) => Ok(Self::Unix(PathBuf::from(path))),
            None => text
                .parse()
                .ok()
                .filter(|at: &SocketAddr| at.ip().is_loopback())
                .map(Self::Loopback)
                .ok_or_else(refused),
        }
    }
}

/// An open listener.
pub(crate) enum Door {
    /// A loopback address.
    Loopback(TcpListener, SocketAddr),
    /// A socket.
    Unix(UnixListener),
}

impl Door {
    /// Opens the listener.
    pub(crate) async fn open(listen: &Listen) -> io::Result<Self> {
        match listen {
            Listen::Loopback(address) => {
                let listener = TcpListener::bind(address).await?;
                let address = listener.local_addr()?;
                Ok(Self::Loopback(listener, address))
            }
            Listen::Unix(path) => {
                remove_stale(path)?;
                let listener = UnixListener::bind(path)?;
                // Until this call any user can connect, but the token is not out yet.
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
                Ok(Self::Unix(listener))
            }
        }
    }

    /// Returns the host names a browser may ask for. Any other name is somebody else's that was pointed at this
    /// address.
    pub(crate) fn hosts(&self, named: &[String]) -> Vec<String> {
        match self {
            Self::Loopback(_, at) => [at.to_string(), format!("localhost:{}", at.port())]
                .into_iter()
                .chain(named.iter().cloned())
                .collect(),
            Self::Unix(_) => named.to_vec(),
        }
    }

    /// Returns the port, which keeps the cookies of two pages on one machine apart.
    pub(crate) fn port(&self) -> u16 {
        match self {
            Self::Loopback(_, at) => at.port(),
            Self::Unix(_) => 0,
        }
    }
}

/// Removes a socket on which nobody listens.
fn remove_stale(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::FileTypeExt as _;
    match path.symlink_metadata() {
        Ok(data) if data.file_type().is_socket() => {
            match std::os::unix::net::UnixStream::connect(path) {
                Ok(_) => Err(io::Error::new(
                    io::ErrorKind::AddrInUse,
                    "somebody listens at this socket",
                )),
                Err(_) => std::fs::remove_file(path),
            }
        }
        Ok(_) => Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "a file exists there that is not a socket",
        )),
        Err(_) => Ok(()),
    }
}

/// The secrets and names that let a browser in.
#[derive(Debug)]
pub(crate) struct Keys {
    /// The names the page answers to.
    pub(crate) hosts: Vec<String>,
    /// The token of the printed link.
    pub(crate) token: String,
    /// The value of the cookie.
    pub(crate) session: String,
    /// The name of the cookie.
    pub(crate) cookie: String,
    /// The token that every form of the page carries.
    pub(crate) form: String,
}

/// Returns 32 random bytes as 64 characters.
pub(crate) fn secret() -> io::Result<String> {
    let mut bytes = [0_u8; 32];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(message_schema::hex::write(&bytes))
}

/// True if two secrets are equal. The time it takes does not reveal how much of them agrees.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    let differences = one
        .bytes()
        .zip(other.bytes())
        .fold(0, |found, (one, other)| found | (one ^ other));
    one.len() == other.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_can_be_listened_to() {
        for good in [
            "127.0.0.1:0",
            "127.9.9.9:80",
            "[::1]:8460",
            "unix:page.sock",
        ] {
            assert!(good.parse::<Listen>().is_ok(), "{good}");
        }
        for bad in [
            "0.0.0.0:80",
            "[::]:80",
            "192.168.0.1:80",
            "localhost:80",
            "unix:",
            "80",
            "",
        ] {
            assert!(bad.parse::<Listen>().is_err(), "{bad}");
        }
    }

    #[test]
    fn secrets_are_the_same_only_if_they_are() {
        assert!(is_same("abc", "abc"));
        for other in ["abd", "bac", "ab", "abcd", ""] {
            assert!(!is_same("abc", other), "{other}");
        }
    }

    #[test]
    fn a_stale_socket_is_removed_and_no_other_file_nor_a_socket_in_use() {
        let directory = tempfile::tempdir().expect("a directory");
        let (socket, file) = (directory.path().join("s"), directory.path().join("f"));
        let listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
        std::fs::write(&file, "mine").expect("a file");
        let kind = |path| remove_stale(path).map_err(|error| error.kind());
        assert_eq!(kind(&socket), Err(io::ErrorKind::AddrInUse));
        assert_eq!(kind(&file), Err(io::ErrorKind::AlreadyExists));
        drop(listener);
        assert_eq!(kind(&socket), Ok(()));
        assert_eq!(kind(&socket), Ok(()));
        assert!(!socket.exists() && file.exists());
    }

    #[tokio::test]
    async fn a_socket_is_its_owners_and_answers_only_to_the_names_it_is_given() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("page.sock");
        let listen: Listen = format!("unix:{}", path.display()).parse().expect("one");
        assert_eq!(listen.to_string(), format!("unix:{}", path.display()));
        let named = ["reviews.example.org".to_owned()];
        let door = Door::open(&listen).await.expect("a socket");
        let mode = path.metadata().expect("a socket").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!((door.hosts(&named), door.port()), (named.to_vec(), 0));
        let listen: Listen = "127.0.0.1:0".parse().expect("an address");
        let door = Door::open(&listen).await.expect("a port");
        let port = door.port();
        assert_ne!(port, 0);
        let [at, local] = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
        let all = [at.as_str(), &local, &named[0]];
        assert_eq!(door.hosts(&named), all);
    }
}
