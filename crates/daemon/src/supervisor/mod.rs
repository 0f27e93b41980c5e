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
