//! Reads `[metrics]`: where the daemon serves metrics. Only a local socket or the loopback network is allowed, because
//! readers are not authenticated.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer};

use super::field;

/// The accepted values of `listen`.
const EXPECTED: &str =
    "\"\", \"unix:PATH\", or a loopback address with a port such as \"127.0.0.1:9464\"";

/// `[metrics]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct MetricsSection {
    /// The address of metrics and health; off by default.
    #[serde(deserialize_with = "listen")]
    pub listen: Listen,
}

/// The address of the metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Listen {
    /// Nowhere.
    #[default]
    Off,
    /// A socket at this path, relative to the workspace.
    Unix(PathBuf),
    /// A loopback address.
    Loopback(SocketAddr),
}

impl Listen {
    /// Parses the value of `listen`.
    fn read(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self::Off);
        }
        match text.strip_prefix("unix:") {
            Some(path) => (!path.is_empty()).then(|| Self::Unix(Path::new(path).to_owned())),
            None => text
                .parse()
                .ok()
                .filter(|at: &SocketAddr| at.ip().is_loopback())
                .map(Self::Loopback),
        }
    }
}

fn listen<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Listen, D::Error> {
    let text = field::text(deserializer, "metrics.listen", EXPECTED)?;
    let refused = || format!("metrics.listen is \"{text}\", expected {EXPECTED}");
    Listen::read(&text).ok_or_else(|| serde::de::Error::custom(refused()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_can_read_them() {
        for good in [
            "",
            "unix:.settled/metrics.sock",
            "127.0.0.1:9464",
            "127.9.9.9:0",
            "[::1]:9464",
        ] {
            assert!(Listen::read(good).is_some(), "{good:?} was refused");
        }
        for bad in [
            "0.0.0.0:9464",
            "[::]:9464",
            "192.168.0.1:1",
            "localhost:9464",
            "9464",
            "unix:",
            "127.0.0.1",
        ] {
            assert_eq!(Listen::read(bad), None, "{bad:?} was accepted");
        }
    }
}
