//! What the supervisor hears of the daemon, and the config that is read anew while it runs.

use super::Daemon;
use crate::clock;
use crate::config::Config;
use crate::mailroom::{MailroomError, chain};

impl Daemon {
    /// Reads `settled.toml` and applies it whole, or not at all: then the old one stays, and whoever supervises the
    /// daemon is told why.
    pub(super) fn reload(&mut self) {
        self.supervisor.reloading(clock::since_boot());
        let loaded = Config::load(self.mailroom.root());
        let applied =
            loaded.map_err(MailroomError::from).and_then(|config| self.mailroom.reconfigure(config));
        let refusal = match applied {
            Ok(changed) => {
                tracing::info!(changed, "settled.toml was read anew");
                None
            }
            Err(error) => {
                let why = chain(&error);
                tracing::error!(error = %why, "settled.toml is refused whole; the old one stays in force");
                Some(message_schema::line::escaped(&why))
            }
        };
        self.supervisor.config(refusal);
        self.supervisor.ready(&self.mailroom.standing());
    }

    /// Tells the supervisor how things stand.
    pub(super) fn report(&mut self) {
        if self.supervisor.listens() {
            self.supervisor.status(&self.mailroom.standing());
        }
    }
}
