//! Applies a reloaded config between two passes, whole or not at all, and sums the mailroom's state up in one
//! sentence.

use workspace::config::Config;

use super::{Mailroom, MailroomError, keep_apart};
use crate::metrics::Gauges;

impl Mailroom {
    /// The current config.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Applies this config from the next judgement on, and says whether it is another one. Decisions under the
    /// old one hold: the ledger records what each of them took from it. Fails, and changes nothing, if agents are
    /// given users of their own and this process is not the daemon's.
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

    /// Measures the state for the metrics.
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

    /// Sums the mailroom's state up in one line, without text of agents.
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
