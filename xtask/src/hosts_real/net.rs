//! Network namespaces on one bridge. A cut link is down: packets are lost silently.

use std::process::Command;

/// The namespaces; dropping the value removes them.
pub(super) struct Net {
    id: u32,
    count: usize,
}

impl Net {
    /// Makes a bridge with its own address and `count` namespaces behind it.
    pub(super) fn make(count: usize) -> Result<Net, String> {
        let net = Net {
            id: std::process::id(),
            count,
        };
        net.ip(&format!("link add {} type bridge", net.bridge()))?;
        net.ip(&format!(
            "addr add {}/24 dev {}",
            net.host(254),
            net.bridge()
        ))?;
        net.ip(&format!("link set {} up", net.bridge()))?;
        for index in 0..count {
            let (space, near) = (net.namespace(index), net.near(index));
            net.ip(&format!("netns add {space}"))?;
            net.ip(&format!(
                "link add {near} type veth peer name eth0 netns {space}"
            ))?;
            net.ip(&format!("link set {near} master {} up", net.bridge()))?;
            let address = net.address(index);
            net.ip(&format!("-n {space} addr add {address}/24 dev eth0"))?;
            net.ip(&format!("-n {space} link set eth0 up"))?;
            net.ip(&format!("-n {space} link set lo up"))?;
        }
        Ok(net)
    }

    /// Returns the address of a namespace.
    pub(super) fn address(&self, index: usize) -> String {
        self.host(index + 1)
    }

    /// Returns the name of a namespace.
    pub(super) fn namespace(&self, index: usize) -> String {
        format!("settled-{}-{index}", self.id)
    }

    /// Cuts a namespace off.
    pub(super) fn cut(&self, index: usize) -> Result<(), String> {
        self.ip(&format!("link set {} down", self.near(index)))
    }

    /// Reconnects a namespace.
    pub(super) fn reconnect(&self, index: usize) -> Result<(), String> {
        self.ip(&format!("link set {} up", self.near(index)))
    }

    fn host(&self, last: usize) -> String {
        // One of 256 networks reserved for tests (RFC 2544), so that two runs do not collide.
        format!("198.18.{}.{last}", self.id % 256)
    }

    fn bridge(&self) -> String {
        format!("stl{}", self.id)
    }

    fn near(&self, index: usize) -> String {
        format!("stl{}v{index}", self.id)
    }

    fn ip(&self, words: &str) -> Result<(), String> {
        let output = Command::new("ip").args(words.split(' ')).output();
        let output = output.map_err(|error| format!("ip: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(format!("ip {words}: {said}; it takes root, and iproute2"))
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for index in 0..self.count {
            let _ = self.ip(&format!("netns del {}", self.namespace(index)));
        }
        let _ = self.ip(&format!("link del {}", self.bridge()));
    }
}
