//! Serves the runs of agents: which requests are open, what their briefs say, whether an agent's mail is judged. Events
//! of a run are judged by the rules and committed like any others.

use std::ffi::OsStr;

use judgement::brief::{brief, file::text};
use message_schema::id::AgentName;
use review::{Event, EventRecord, Invocation, ReportedEvent, Review, ReviewKey};
use spool::SpoolError;
use workspace::clock::Moment;

use super::Mailroom;
use crate::docket::Batch;

impl Mailroom {
    /// Every review whose reviewer owes a response, with its open request.
    pub(crate) fn open_requests(&self) -> impl Iterator<Item = (&ReviewKey, &Review, &Invocation)> {
        self.state()
            .reviews()
            .filter_map(|(key, review)| Some((key, review, review.phase.invocation()?)))
    }

    /// The state of a review.
    pub fn review(&self, key: &ReviewKey) -> Option<&Review> {
        self.state().review(key)
    }

    /// The text of the brief for the open request of a review, as it is now.
    pub(crate) fn brief_now(&self, key: &ReviewKey, moment: Moment) -> Option<String> {
        brief(
            self.state(),
            self.docket.tentative.policy(),
            key,
            moment.utc,
        )
        .map(|brief| text(&brief))
    }

    /// Whether something lies in the outbox of that agent that may be a message: what cannot be listed may hold one.
    pub(crate) fn has_mail(&self, agent: &AgentName) -> bool {
        let is_message = |name: &OsStr| {
            let name = name.as_encoded_bytes();
            !name.starts_with(b".")
                && [b".yaml".as_slice(), b".yml", b".json"]
                    .iter()
                    .any(|end| name.ends_with(end))
        };
        let listed = std::fs::read_dir(self.spool.layout().outbox(agent.as_str()));
        listed.map_or(true, |mut listed| {
            listed.any(|entry| entry.map_or(true, |entry| is_message(&entry.file_name())))
        })
    }

    /// Judges an event of a command and commits it to the ledger before returning; says whether it changes anything.
    pub(crate) fn record_run(&mut self, event: &Event, moment: Moment) -> Result<bool, SpoolError> {
        match self.judge_event(ReportedEvent { order: None, event }, moment) {
            record @ EventRecord::Happened(_) => {
                let mut batch = Batch::default();
                self.add(&mut batch, record, moment);
                self.commit(batch, &mut super::Pass::default())?;
                Ok(true)
            }
            // Nobody asked, so nobody waits for the answer.
            EventRecord::Declined(declined) => {
                tracing::debug!(?declined, "the end of a command changes nothing");
                Ok(false)
            }
        }
    }
}
