//! Notifies the supervisor that the daemon is ready, alive, reloading or stopping, with its status. Only the main loop
//! notifies, after the fact: a separate thread would still report a daemon whose loop hangs.

mod notify;

use std::time::Duration;

use self::notify::Socket;

/// The supervisor of this process, if one listens.
#[derive(Debug, Default)]
pub(crate) struct Supervisor {
    socket: Option<Socket>,
    /// The time without a sign of life after which the supervisor ends the daemon, in milliseconds.
    patience_ms: Option<u64>,
    /// The monotonic time of the last sign of life.
    beaten_at: Option<u64>,
    /// The last sentence sent.
    status: String,
    /// The reason the config on the disk was refused, until one is applied.
    refusal: Option<String>,
}

impl Supervisor {
    /// The supervisor that `NOTIFY_SOCKET` names, with the patience of `WATCHDOG_USEC`.
    pub(crate) fn from_environment() -> Self {
        let Some(socket) = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else {
            return Self::default();
        };
        let socket = Socket::to(&socket).inspect_err(|error| {
            tracing::warn!(%error, "cannot write to NOTIFY_SOCKET; the supervisor gets no status");
        });
        let number = |name| {
            std::env::var(name)
                .ok()
                .and_then(|text| text.parse::<u64>().ok())
        };
        // Another process may have got the variables and passed them on to us.
        let is_ours = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let patience_ms = number("WATCHDOG_USEC").filter(|usec| is_ours && *usec > 0);
        let patience_ms = patience_ms.map(|usec| (usec / 1_000).max(1));
        Self {
            socket: socket.ok(),
            patience_ms,
            ..Self::default()
        }
    }

    /// True if a supervisor listens; without one there is no need to compute a status.
    pub(crate) fn listens(&self) -> bool {
        self.socket.is_some()
    }

    /// Reports that the ledger is read and the first sweep has listed every outbox.
    pub(crate) fn ready(&mut self, status: &str) {
        let status = self.sentence(status);
        self.say(&format!("READY=1\nSTATUS={status}"));
        self.status = status;
    }

    /// Sends the status if it has changed.
    pub(crate) fn status(&mut self, status: &str) {
        let status = self.sentence(status);
        if status != self.status {
            self.say(&format!("STATUS={status}"));
            self.status = status;
        }
    }

    /// Notes whether the config on the disk was refused. Every status says so until a config is applied.
    pub(crate) fn config(&mut self, refusal: Option<String>) {
        self.refusal = refusal;
    }

    /// True if the config on the disk is refused.
    pub(crate) fn is_config_refused(&self) -> bool {
        self.refusal.is_some()
    }

    /// Reports that the loop has completed a turn, if a sign of life is due.
    pub(crate) fn beat(&mut self, now: u64) {
        let Some(patience) = self.patience_ms else {
            return;
        };
        // A busy loop turns more often than a supervisor needs to know.
        if self
            .beaten_at
            .is_none_or(|at| now.saturating_sub(at) >= patience / 4)
        {
            self.say("WATCHDOG=1");
            self.beaten_at = Some(now);
        }
    }

    /// The monotonic time by which the loop must turn to give a sign of life.
    pub(crate) fn next_beat(&self) -> Option<u64> {
        self.patience_ms
            .map(|patience| self.beaten_at.map_or(0, |at| at + patience / 2))
    }

    /// Reports that the config is being reloaded. `since_boot` is the kernel's monotonic clock, by which a supervisor
    /// tells this reload from an earlier one.
    pub(crate) fn reloading(&self, since_boot: Duration) {
        self.say(&format!(
            "RELOADING=1\nMONOTONIC_USEC={}\nSTATUS=reading settled.toml",
            since_boot.as_micros()
        ));
    }

    /// Reports that the daemon finishes its current batch.
    pub(crate) fn stopping(&self) {
        self.say("STOPPING=1\nSTATUS=stopping");
    }

    fn sentence(&self, status: &str) -> String {
        match &self.refusal {
            Some(why) => format!("{status}; the old config still applies: {why}"),
            None => status.to_owned(),
        }
    }

    /// Sends without waiting: a supervisor that does not read misses a line, and the mail goes on.
    fn say(&self, text: &str) {
        if let Some(Err(error)) = self
            .socket
            .as_ref()
            .map(|socket| socket.send(text.as_bytes()))
        {
            tracing::warn!(%error, "could not notify the supervisor");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;

    #[test]
    fn a_supervisor_is_told_each_change_once_and_is_given_signs_of_life_in_time() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("notify");
        let socket = UnixDatagram::bind(&path).expect("a socket");
        socket.set_nonblocking(true).expect("a socket's mode");
        let mut supervisor = Supervisor {
            socket: Some(Socket::to(path.as_os_str()).expect("an address")),
            patience_ms: Some(8_000),
            ..Supervisor::default()
        };
        assert!(supervisor.listens() && !Supervisor::default().listens());
        assert_eq!(supervisor.next_beat(), Some(0));

        supervisor.ready("2 agents");
        supervisor.status("2 agents");
        supervisor.status("3 agents");
        for now in [10_000, 11_999, 12_000] {
            supervisor.beat(now);
        }
        assert_eq!(supervisor.next_beat(), Some(16_000));
        supervisor.config(Some("line 3".to_owned()));
        assert!(supervisor.is_config_refused());
        supervisor.status("3 agents");
        supervisor.reloading(Duration::from_millis(7));
        supervisor.config(None);
        supervisor.ready("3 agents");
        supervisor.stopping();

        let mut told = Vec::new();
        let mut text = [0; 200];
        while let Ok(length) = socket.recv(&mut text) {
            told.push(String::from_utf8_lossy(&text[..length]).into_owned());
        }
        let expected = [
            "READY=1\nSTATUS=2 agents",
            "STATUS=3 agents",
            "WATCHDOG=1",
            "WATCHDOG=1",
            "STATUS=3 agents; the old config still applies: line 3",
            "RELOADING=1\nMONOTONIC_USEC=7000\nSTATUS=reading settled.toml",
            "READY=1\nSTATUS=3 agents",
            "STOPPING=1\nSTATUS=stopping",
        ];
        assert_eq!(told, expected);
    }
}
