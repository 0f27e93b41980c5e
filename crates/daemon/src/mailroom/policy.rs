//! Judges by another config: a reloaded one between two passes, whole or not at all, and among several hosts the policy
//! of all. The daemon of a host whose own policy differs judges nothing; recording its policy for all hosts is one of two
//! commands that let it continue.

use std::ffi::OsString;
use std::mem::replace;
use std::path::Path;
use std::sync::Arc;

use review::{Event, HostChange};
use spool::SpoolError;
use workspace::clock::Moment;
use workspace::config::{self, Config};
use workspace::error::chain;
use workspace::orders;

use super::{Mailroom, MailroomError, Pass, keep_apart};
use crate::metrics::Gauges;
use crate::shared_ledger::SharedLedger;
use crate::step::StepEnd;

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
        self.spool.limit_segments(config.ledger.segment_bytes());
        self.housekeeping.reconfigure(config.clone());
        let agents = Arc::clone(self.docket.agents());
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
        let open = state.open_count();
        let waiting = self.spool.waiting() + self.unread();
        format!(
            "{} agents, {open} reviews open, {} messages accepted, {waiting} waiting",
            self.docket.agents().len(),
            state.accepted()
        )
    }

    /// Records the orders that change the policy, if only its policy stops this host. Until they are recorded, the
    /// common policy applies here too: this host takes over the rest of the log under it.
    pub(super) fn change_policy(
        &mut self,
        moment: Moment,
        pass: &mut Pass,
    ) -> Result<(), SpoolError> {
        if !self.may_change_policy() {
            return Ok(());
        }
        // The next sweep or hint makes the daemon look again.
        self.waits.all_listed = true;
        let orders = self.policy_orders(moment);
        let Some((config, theirs)) = self.their_policy().filter(|_| !orders.is_empty()) else {
            return Ok(());
        };
        self.waits.all_listed = false;
        let (own_config, own_policy) = self.judge_by(config, theirs);
        let recorded = match self.follow_log(moment) {
            Ok(true) => self.process_orders(orders, StepEnd(None), moment, pass),
            followed => followed.map(drop),
        };
        self.judge_by(own_config, own_policy);
        if !self.is_in_step()
            && let Some(shared) = &mut self.shared
        {
            shared.pause(moment);
        }
        self.alert_of_sharing_state();
        recorded
    }

    /// True if there may be an order that lets this host continue.
    pub(super) fn may_change_policy(&self) -> bool {
        !self.waits.all_listed && self.is_stopped_by_policy()
    }

    fn is_stopped_by_policy(&self) -> bool {
        let shared = self.shared.as_ref();
        shared.is_some_and(SharedLedger::is_stopped_by_policy)
    }

    /// Judges by the policy of all hosts from now on, if having another one is all that stops this host; says whether it
    /// does. So a command that does a stopped daemon's work judges each record again by the policy of its time.
    pub fn take_common_policy(&mut self) -> bool {
        if !self.is_stopped_by_policy() {
            return false;
        }
        let Some((config, theirs)) = self.their_policy() else {
            return false;
        };
        self.judge_by(config, theirs);
        self.alert_of_sharing_state();
        true
    }

    /// The policy of all hosts, parsed into this host's config, and as text.
    fn their_policy(&self) -> Option<(Config, String)> {
        let theirs = self.fleet()?.policy()?.to_owned();
        match Config::parse(&theirs, Path::new(config::FILE)) {
            Ok(config) => Some((self.config.with_policy_of(config), theirs)),
            Err(error) => {
                tracing::warn!(error = %chain(&error), "cannot read the policy of the other hosts");
                None
            }
        }
    }

    /// The orders that change the policy; the others wait until this host continues.
    fn policy_orders(&self, moment: Moment) -> Vec<OsString> {
        let mut names = orders::waiting(&self.root).unwrap_or_else(|error| {
            tracing::warn!(error = %chain(&error), "cannot list the orders; will retry");
            Vec::new()
        });
        names.retain(|name| {
            let order = orders::read(&self.root, name, moment.utc);
            let event = order.ok().flatten().map(|order| order.event);
            matches!(event, Some(Event::Host(HostChange::PolicyChanged { .. })))
        });
        names
    }

    /// Judges by this policy from now on, and returns the one before.
    fn judge_by(&mut self, config: Config, policy: String) -> (Config, String) {
        let agents = Arc::clone(self.docket.agents());
        self.docket.reconfigure(&config, agents);
        let shared = self.shared.as_mut();
        let before = shared
            .expect("only hosts have a common policy")
            .take_policy(policy);
        (replace(&mut self.config, config), before)
    }
}
