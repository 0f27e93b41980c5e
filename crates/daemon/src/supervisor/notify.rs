//! Sends datagrams in systemd's `sd_notify` protocol, to a socket at a path or, on Linux, with an abstract name.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// A socket for notifications.
#[derive(Debug)]
pub(super) struct Socket {
    from: UnixDatagram,
    to: SocketAddr,
}

impl Socket {
    /// Opens a socket to this address, as `NOTIFY_SOCKET` gives it.
    pub(super) fn to(name: &OsStr) -> io::Result<Self> {
        let to = address(name)?;
        let from = UnixDatagram::unbound()?;
        from.set_nonblocking(true)?;
        Ok(Self { from, to })
    }

    /// Sends one notification; fails if that would block.
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
