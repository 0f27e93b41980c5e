//! Serves the runs of agents: which requests are open, what their briefs say, whether an agent's mail is judged. Like
//! any other events, those of a run are judged by the rules and committed.

use std::ffi::OsStr;

use judgement::RequestFile;
use judgement::brief::{brief, file::text};
use mailbox::compose::ask::{self, Ask};
use message_schema::id::AgentName;
use message_schema::spend::Spend;
use review::{Event, EventRecord, Invocation, Review, ReviewKey, RunSpend, UsedUp};
use spool::{FileName, SpoolError};
use workspace::clock::Moment;
use workspace::ledger_end::{self, RECORDS_AT_FIRST};

use super::Mailroom;
use crate::batch::OpenBatch;

/// The most names of an outbox that one look for mail reads. A look comes before each start of a command and after its end,
/// while everybody waits; an agent that keeps more names there delays its own commands alone.
const MAIL_LOOKED_AT: usize = 1_024;

impl Mailroom {
    /// The reviews whose reviewer owes a response, each with its open request.
    pub(crate) fn open_requests(&self) -> impl Iterator<Item = (&ReviewKey, &Review, &Invocation)> {
        self.state()
            .requested_reviews()
            .filter(move |(key, review)| self.is_at_home(review.reviewer(key)))
            .filter_map(|(key, review)| Some((key, review, review.phase.invocation()?)))
    }

    /// Returns the review with this key.
    pub fn review(&self, key: &ReviewKey) -> Option<&Review> {
        self.state().review(key)
    }

    /// The current reviewer of a review.
    pub(crate) fn reviewer<'a>(&'a self, key: &'a ReviewKey) -> Option<&'a AgentName> {
        Some(self.review(key)?.reviewer(key))
    }

    /// The part of a run's spend that is not in the ledger yet.
    pub(crate) fn unrecorded(&self, report: &RunSpend) -> Spend {
        self.state().unrecorded(report)
    }

    /// The daily budget, if any, that keeps an agent's command from starting, counting the spend of these live runs.
    pub(crate) fn used_up(
        &self,
        agent: &AgentName,
        going_on: &[RunSpend],
        moment: Moment,
    ) -> Option<UsedUp> {
        let policy = self.docket.tentative.policy();
        self.state().used_up(policy, agent, going_on, moment.utc)
    }

    /// True if a review's budget is used up when `more` is spent as well.
    pub(crate) fn is_used_up(&self, key: &ReviewKey, more: Spend) -> bool {
        let limit = self.docket.tentative.policy().budget.per_review;
        self.review(key)
            .is_some_and(|review| limit.is_reached(review.spent.plus(more)))
    }

    /// The brief for the open request of a review, as of `moment`, and the schema of its answer.
    pub(crate) fn brief_now(&self, key: &ReviewKey, moment: Moment) -> Option<(String, String)> {
        let brief = brief(
            self.state(),
            self.docket.tentative.policy(),
            key,
            moment.utc,
        )?;
        Some((text(&brief), brief.response_schema))
    }

    /// True if the agent's outbox holds a file that may be a message, or cannot be listed. Among more than [`MAIL_LOOKED_AT`]
    /// names it sees the files that a hint or a sweep has found.
    pub(crate) fn has_mail(&self, agent: &AgentName) -> bool {
        let is_message = |name: &OsStr| {
            FileName::new(name.as_encoded_bytes()).is_ok_and(|name| spool::is_candidate(&name))
        };
        let listed = std::fs::read_dir(self.spool.layout().outbox(agent.as_str()));
        self.docket.intake.known(agent.as_str()) > 0
            || listed.map_or(true, |listed| {
                let mut first = listed.take(MAIL_LOOKED_AT);
                first.any(|entry| entry.map_or(true, |entry| is_message(&entry.file_name())))
            })
    }

    /// The open request of a review, in the form in which its reviewer answers it.
    pub(crate) fn ask(&self, key: &ReviewKey, now: Moment) -> Option<Ask> {
        let known = (self.state(), self.docket.tentative.policy());
        ask::of_review(&self.root, known, (key, self.review(key)?), now.utc)
    }

    /// The open request of the review that the record gives to another reviewer, or none. Taken from the ledger,
    /// because a file in a mailbox may have been changed.
    fn handed_on(&self, record: &EventRecord) -> Result<Option<RequestFile>, SpoolError> {
        let EventRecord::Happened(happened) = record else {
            return Ok(None);
        };
        let moved = happened
            .steps
            .iter()
            .find(|step| step.reassigned_to.is_some());
        let Some((key, open)) =
            moved.and_then(|step| Some((&step.review, step.phase.invocation()?)))
        else {
            return Ok(None);
        };
        ledger_end::search(&self.root, RECORDS_AT_FIRST, |tail, _| {
            let mut found = None;
            tail.read(&mut |entry| {
                let is_it =
                    entry.kind == "accepted" && entry.id.as_deref() == Some(open.request.as_str());
                let original = entry.original.as_ref().filter(|_| is_it);
                if let Some(original) = original.filter(|it| it.outbox == key.author.as_str()) {
                    found = original.text.clone().map(|text| RequestFile {
                        file: original.file.clone(),
                        text,
                    });
                }
                Ok(())
            })?;
            Ok(found)
        })
    }

    /// Judges an event of a command and commits it before returning; true if it changes anything.
    pub(crate) fn record_run(&mut self, event: &Event, moment: Moment) -> Result<bool, SpoolError> {
        match self.judge_event(event, None, moment) {
            record @ EventRecord::Happened(_) => {
                let mut batch = OpenBatch::default();
                let request = self.handed_on(&record)?;
                self.add_with_request(&mut batch, record, request, moment);
                self.commit(batch, moment, &mut super::Pass::default())?;
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
