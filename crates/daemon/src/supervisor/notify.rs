//! Opens the datagram socket of systemd's `sd_notify` protocol: a path, or on Linux a name without a file.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The socket of notifications.
#[derive(Debug)]
pub(super) struct Socket {
    from: UnixDatagram,
    to: SocketAddr,
}

impl Socket {
    /// The socket of this name, as `NOTIFY_SOCKET` has it.
    pub(super) fn to(name: &OsStr) -> io::Result<Self> {
        let to = address(name)?;
        let from = UnixDatagram::unbound()?;
        from.set_nonblocking(true)?;
        Ok(Self { from, to })
    }

    /// Sends one notification; fails instead of waiting.
    pub(super) fn send(&self, text: &[u8]) -> io::Result<()> {
        self.from.send_to_addr(text, &self.to).map(drop)
    }
}

fn address(name: &OsStr) -> io::Result<SocketAddr> {
    match name.as_bytes() {
        [b'/', ..] => SocketAddr::from_pathname(name),
        #[cfg(target_os = "linux")]
        [b'@', rest @ ..] => {
            use std::os::linux::net::SocketAddrExt as _;
            SocketAddr::from_abstract_name(rest)
        }
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "neither a path nor a name with an @",
        )),
    }
}
