//! Applies a reloaded config between two passes, whole or not at all, and summarizes the mailroom's state in one
//! sentence.

use workspace::config::Config;

use super::{Mailroom, MailroomError, keep_apart};
use crate::metrics::Gauges;

impl Mailroom {
    /// The current config.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Applies this config from the next judgement, and returns true if it differs. Earlier decisions hold: the ledger
    /// records what each of them took from the config. Changes nothing and fails if the config gives agents users of
    /// their own and this process does not run as the daemon's user.
    pub fn reconfigure(&mut self, config: Config) -> Result<bool, MailroomError> {
        if config == self.config {
            return Ok(false);
        }
        if self.shared.is_some() && config.policy([]) != self.config.policy([]) {
            return Err(MailroomError::OtherPolicy);
        }
        if !config.users().is_empty() {
            keep_apart(&self.root)?;
        }
        self.spool
            .limit_segments(config.ledger.segment_mib * 1024 * 1024);
        self.housekeeping.reconfigure(config.clone());
        let agents = std::sync::Arc::clone(self.docket.agents());
        self.docket.reconfigure(&config, agents);
        self.config = config;
        Ok(true)
    }

    /// Updates the gauges of the metrics.
    pub fn gauge(&mut self, config_refused: bool) {
        let reviews = self.state().phases();
        self.meter.gauges = Gauges {
            agents: self.docket.agents().len(),
            reviews,
            unjudged: self.unread(),
            undelivered: self.spool.waiting(),
            parked: self.spool.parked().len(),
            ledger_bytes: self
                .spool
                .ledger_bytes()
                .unwrap_or(self.meter.gauges.ledger_bytes),
            config_refused,
            hosts: self.hosts_gauge(),
        };
    }

    /// Summarizes the mailroom's state in one line, without text of agents.
    pub fn status_line(&self) -> String {
        let state = self.state();
        let open = state.open_reviews().count();
        let waiting = self.spool.waiting() + self.unread();
        format!(
            "{} agents, {open} reviews open, {} messages accepted, {waiting} waiting",
            self.docket.agents().len(),
            state.accepted()
        )
    }
}
