//! Reports on the daemon after each turn of its loop, and reloads the config between two turns.

use workspace::clock::{self, Moment};
use workspace::config::Config;
use workspace::error::chain;

use super::{Daemon, DaemonError};
use crate::metrics::Exporter;

impl Daemon<'_> {
    /// Applies `settled.toml` as a whole. If it is refused, the old config stays, and the supervisor is notified why.
    pub(super) fn reload(&mut self) {
        self.supervisor.reloading(clock::since_boot());
        let refusal = match self.read_anew() {
            Ok(changed) => {
                tracing::info!(changed, "reloaded settled.toml");
                self.commands.reconfigured();
                None
            }
            Err(error) => {
                let why = chain(&error);
                tracing::error!(error = %why, "settled.toml is invalid; the old one still applies");
                Some(message_schema::line::escaped(&why))
            }
        };
        self.supervisor.config(refusal);
        self.supervisor.ready(&self.mailroom.status_line());
    }

    /// Reloads the config. The step that can fail comes first: if the metrics address is not available, the whole
    /// config is refused.
    fn read_anew(&mut self) -> Result<bool, DaemonError> {
        let config =
            Config::load(self.mailroom.root()).map_err(crate::mailroom::MailroomError::from)?;
        if config.metrics == self.mailroom.config().metrics {
            return Ok(self.mailroom.reconfigure(config)?);
        }
        let exporter = self.listen(&config)?;
        let changed = self.mailroom.reconfigure(config)?;
        self.exporter = exporter;
        Ok(changed)
    }

    /// Listens at the metrics address of this config.
    pub(super) fn listen(&self, config: &Config) -> Result<Option<Exporter>, DaemonError> {
        Exporter::open(&config.metrics.listen, self.mailroom.root()).map_err(DaemonError::Metrics)
    }

    /// Notes in the supervisor and the metrics that the loop has completed a turn.
    pub(super) fn turned(&mut self, now: Moment) {
        self.supervisor.beat(now.mono);
        if let Some(exporter) = &self.exporter {
            exporter.turned(&self.mailroom.meter);
        }
    }

    /// Updates the supervisor's status and the metrics.
    pub(super) fn report(&mut self) {
        if self.supervisor.listens() {
            self.supervisor.status(&self.mailroom.status_line());
        }
        if self.exporter.is_some() {
            self.mailroom.gauge(self.supervisor.is_config_refused());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    use super::super::tests::opened;

    #[test]
    fn a_config_is_applied_as_a_whole_or_not_at_all_and_a_place_that_is_listened_at_stays_open() {
        let root = tempfile::tempdir().expect("a directory");
        let mut daemon = opened(root.path());
        let mut reload = |config: &str| {
            std::fs::write(root.path().join("settled.toml"), config).expect("a config");
            daemon.reload();
            daemon.report();
            daemon.turned(daemon.clock.read());
            (
                daemon.mailroom.config().ledger.segment_mib,
                daemon.exporter.is_some(),
                daemon.supervisor.is_config_refused(),
            )
        };
        let listening = "[metrics]\nlisten = \"unix:metrics\"\n";
        assert_eq!(reload("[ledger]\nsegment_mib = 2\n"), (2, false, false));
        let config = format!("{listening}[ledger]\nsegment_mib = 3\n");
        assert_eq!(reload(&config), (3, true, false));
        let config = format!("{listening}[ledger]\nsegment_mib = 4\n");
        assert_eq!(reload(&config), (4, true, false), "at the same place");

        let mut stream = UnixStream::connect(root.path().join("metrics")).expect("a socket");
        let request = b"GET /metrics HTTP/1.1\r\n\r\n";
        stream.write_all(request).expect("a request");
        let mut page = String::new();
        stream.read_to_string(&mut page).expect("a page");
        assert!(page.contains("\nsettled_agents 2\n"), "{page}");
        assert!(!page.contains("settled_hosts"), "it is alone: {page}");

        assert_eq!(
            reload("[ledger]\nsegment_mib = 5\n[metrics]\nlisten = \"unix:none/m\"\n"),
            (4, true, true)
        );
        assert_eq!(reload("[ledger\n"), (4, true, true));
        assert_eq!(reload("[ledger]\nsegment_mib = 6\n"), (6, false, false));
    }
}
