//! The agents: the work that waits for each, and the command that the daemon started for it, with its last words.

use std::collections::BTreeMap;
use std::path::Path;

use chrono::{DateTime, Utc};
use inspect::status::WorkspaceStatus;
use message_schema::line;
use review::{ReviewKey, Side};
use runner::folder::{self, ExitReason, Folder, Launch};
use runner::tree::Process;
use serde::{Deserialize, Serialize};
use workspace::config::Config;

/// One agent. Fields are added, never changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AgentRow {
    /// Its name.
    pub agent: String,
    /// The company that makes its model, if the config names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vendor: Option<String>,
    /// The program that the daemon starts for it, if the config names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The number of reviews in which it has to move.
    pub owed: usize,
    /// The number of messages in its outbox that the daemon has not judged yet.
    pub waiting: usize,
    /// The number of its refused messages that nobody corrected.
    pub dead_letters: usize,
    /// The newest run of its command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunView>,
}

/// A run of an agent's command. Fields are added, never changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunView {
    /// Its id.
    pub id: String,
    /// The review it answers.
    pub review: String,
    /// The program.
    pub program: String,
    /// The time of its start.
    pub since: DateTime<Utc>,
    /// True while it runs.
    pub is_running: bool,
    /// Its end: `exit code 0`, `signal 9`, `ended by settled`, or the reason why it was not started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// The turns it took, once it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u16>,
    /// The last line it printed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub last_words: String,
}

/// The runs seen so far. Only the owner of `.settled` can see any.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    by_id: BTreeMap<String, KnownRun>,
}

#[derive(Debug)]
struct KnownRun {
    agent: String,
    view: RunView,
}

/// The fields of `run.json` of a run for a review.
#[derive(Deserialize)]
struct StartedRun {
    review: ReviewKey,
    #[serde(flatten)]
    launch: Launch,
}

impl Runs {
    /// Reads new and running runs; ended ones do not change.
    pub(crate) fn refresh(&mut self, root: &Path) {
        let folders = folder::all(root).unwrap_or_default();
        self.by_id
            .retain(|id, _| folders.iter().any(|folder| folder.id() == id));
        for folder in folders {
            let is_over = |known: &KnownRun| known.view.ended.is_some();
            if !self.by_id.get(folder.id()).is_some_and(is_over)
                && let Some(run) = KnownRun::of(&folder)
            {
                self.by_id.insert(folder.id().to_owned(), run);
            }
        }
    }

    /// The newest run of an agent. An id begins with its time, so ids sort by age.
    fn newest(&self, agent: &str) -> Option<&RunView> {
        let mut newest = self.by_id.values().rev();
        newest.find(|run| run.agent == agent).map(|run| &run.view)
    }
}

impl KnownRun {
    fn of(folder: &Folder) -> Option<Self> {
        let StartedRun { review, launch } = folder.run().ok()?;
        let since = folder.path().join("run.json").symlink_metadata().ok()?;
        let end = folder.end();
        let said = match &end {
            Some(end) => line::last(&end.said.text).to_owned(),
            None => folder.last_words(launch.output),
        };
        let said = if said.is_empty() {
            folder.last_error_line()
        } else {
            said
        };
        let view = RunView {
            id: folder.id().to_owned(),
            review: review.to_string(),
            program: launch.command.first().cloned().unwrap_or_default(),
            since: since.modified().ok()?.into(),
            is_running: end.is_none() && folder.processes().agent.is_some_and(Process::is_running),
            ended: end.as_ref().map(|end| ended(&end.how)),
            turns: end.as_ref().map(|end| end.said.turns),
            last_words: said,
        };
        Some(Self {
            agent: review.reviewer.to_string(),
            view,
        })
    }
}

fn ended(how: &ExitReason) -> String {
    match how {
        ExitReason::Code(code) => format!("exit code {code}"),
        ExitReason::Signal(signal) => format!("signal {signal}"),
        ExitReason::Ended => "ended by settled".to_owned(),
        ExitReason::NotStarted(why) | ExitReason::Unprepared(why) => format!("not started: {why}"),
    }
}

impl AgentRow {
    pub(crate) fn all(status: &WorkspaceStatus, config: &Config, runs: &Runs) -> Vec<Self> {
        let mut owed: BTreeMap<&str, usize> = BTreeMap::new();
        for (key, review) in status.index.state().current_reviews() {
            match review.mover() {
                Side::Author => *owed.entry(key.author.as_str()).or_default() += 1,
                Side::Reviewer => {
                    *owed.entry(review.reviewer(key).as_str()).or_default() += 1;
                }
                Side::Person | Side::Nobody => {}
            }
        }
        let row = |agent: &_| {
            let of_config = config.agents.get(agent);
            let waiting = status.unjudged.counts.iter();
            let dead = status.dead.iter();
            Self {
                agent: agent.to_string(),
                vendor: of_config.and_then(|section| section.vendor.clone()),
                program: of_config.and_then(|section| section.command.first().cloned()),
                owed: owed.get(agent.as_str()).copied().unwrap_or(0),
                waiting: waiting
                    .filter(|(of, _)| of == agent)
                    .map(|(_, count)| count)
                    .sum(),
                dead_letters: dead.filter(|open| open.agent() == agent).count(),
                run: runs.newest(agent.as_str()).cloned(),
            }
        };
        status.agents.iter().map(row).collect()
    }
}
