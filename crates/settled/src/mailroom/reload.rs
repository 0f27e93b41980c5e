//! A config that is read anew: applied whole between two passes, or not at all; and the sentence in which the mailroom
//! says how it stands.

use review::Phase;

use super::{Mailroom, MailroomError, keep_apart};
use crate::config::Config;

impl Mailroom {
    /// Puts this config in force from the next judgement on, and says whether it is another one. What was decided under
    /// the old one stays decided: the ledger records what a decision took from it. Fails, and changes nothing, if
    /// agents are given users of their own and this process is not the daemon's.
    pub fn reconfigure(&mut self, config: Config) -> Result<bool, MailroomError> {
        if config == self.config {
            return Ok(false);
        }
        if !config.users().is_empty() {
            keep_apart(&self.root)?;
        }
        self.spool.limit_segments(config.ledger.segment_mib * 1024 * 1024);
        self.quiet.reconfigure(config.clone());
        self.desk.reconfigure(&config);
        self.config = config;
        Ok(true)
    }

    /// How things stand, in one line without anybody else's words.
    pub fn standing(&self) -> String {
        let state = &self.desk.state;
        let open = state.reviews().filter(|(_, review)| is_open(&review.phase)).count();
        let waiting = self.spool.waiting() + self.unread();
        format!(
            "{} agents, {open} reviews open, {} messages accepted, {waiting} waiting",
            self.desk.agents.len(),
            state.accepted()
        )
    }
}

fn is_open(phase: &Phase) -> bool {
    match phase {
        Phase::Awaiting { .. } | Phase::Reviewing(_) | Phase::Fixing { .. } | Phase::Addressed { .. } => true,
        Phase::Approved(_) | Phase::Escalated(_) | Phase::Closed(_) => false,
    }
}
