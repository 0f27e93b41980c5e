//! `settled pair`: runs an author's and a reviewer's command in turn until the reviewer passes, one of them gives up,
//! or the budget is spent. The rules decide where each run leads; the driver acts only on what the ledger has. Nothing
//! is printed here.
//!
//! One turn: the daemon judges the outboxes; the driver drains the agent's mail into a folder, records in the ledger
//! that a run begins, runs the command under a keeper as the daemon does for its agents, has the daemon judge what the
//! command wrote, and records the result. A killed driver leaves a run with a beginning and no end; the next `--resume`
//! ends its processes and records that first.
//!
//! - `turn` runs a command once, `answer` reads its result, `mail` drains the inbox and waits for judgement;
//! - `members` finds the pair that is meant, and checks that its commands are ours to run;
//! - `progress` names the two sides and the news about them, `error` the reasons to stop;
//! - `serving` starts a daemon if none serves, `places` names the folders, `stop` listens for signals;
//! - `history` reads a pair back from the ledger, `view` puts it into words.

mod answer;
mod error;
pub mod history;
mod mail;
mod members;
mod places;
mod progress;
mod serving;
mod stop;
mod turn;
pub mod view;

use std::path::{Path, PathBuf};

use daemon::submit_order;
use review::{
    DeclinedEvent, Event, EventRecord, OpenPair, PairId, PairReport, PairSetup, PairStatus,
    PairStep,
};
use workspace::config::Config;
use workspace::index::LedgerIndex;

use self::places::Places;
use self::serving::Serving;

pub use self::error::PairError;
pub use self::progress::{Progress, RecordedStep, Role};
pub use self::stop::Stop;

/// A pair that this process drives.
pub struct Driver<'a> {
    root: PathBuf,
    id: PairId,
    setup: PairSetup,
    status: PairStatus,
    places: Places,
    _serving: Serving,
    stop: Stop,
    progress: &'a mut dyn FnMut(&Progress<'_>),
}

impl<'a> Driver<'a> {
    /// Opens a pair with this set-up.
    pub fn open(
        root: &Path,
        config: &Config,
        setup: PairSetup,
        stop: Stop,
        progress: &'a mut dyn FnMut(&Progress<'_>),
    ) -> Result<Self, PairError> {
        members::check(root, config, &setup)?;
        let id = new_id();
        let places = hold(root, &id)?;
        let status = PairStatus::new(&setup);
        let mut driver = Self {
            root: root.to_owned(),
            id,
            setup,
            status,
            _serving: Serving::see_to(root, &places.log()),
            places,
            stop,
            progress,
        };
        let setup = Box::new(driver.setup.clone());
        if let Err(error) = driver.record(PairStep::Opened(setup)) {
            driver.places.discard();
            return Err(error);
        }
        Ok(driver)
    }

    /// Resumes an interrupted pair: the named one, or the only one.
    pub fn resume(
        root: &Path,
        named: Option<&PairId>,
        stop: Stop,
        progress: &'a mut dyn FnMut(&Progress<'_>),
    ) -> Result<Self, PairError> {
        let (id, setup) = members::find(root, named)?;
        members::check(root, &Config::load(root)?, &setup)?;
        let mut driver = Self::take_over(root, id, stop, progress)?;
        driver.record(PairStep::Resumed)?;
        Ok(driver)
    }

    /// Discards an interrupted pair, the named one or the only one, and escalates its open request.
    pub fn drop_it(
        root: &Path,
        named: Option<&PairId>,
        stop: Stop,
        progress: &'a mut dyn FnMut(&Progress<'_>),
    ) -> Result<(PairId, PairStatus), PairError> {
        let (id, _) = members::find(root, named)?;
        let mut driver = Self::take_over(root, id, stop, progress)?;
        driver.record(PairStep::Dropped)?;
        Ok((driver.id, driver.status))
    }

    /// Takes over an interrupted pair. If its driver was killed, records the interruption first.
    fn take_over(
        root: &Path,
        id: PairId,
        stop: Stop,
        progress: &'a mut dyn FnMut(&Progress<'_>),
    ) -> Result<Self, PairError> {
        let places = hold(root, &id)?;
        // Read only now, when the previous driver can report nothing more.
        let (index, _) = LedgerIndex::read(root)?;
        let known = index.state().pair(&id).cloned();
        let OpenPair { setup, status, .. } = known.ok_or_else(|| PairError::Unknown(id.clone()))?;
        let mut driver = Self {
            root: root.to_owned(),
            id,
            setup,
            status,
            _serving: Serving::see_to(root, &places.log()),
            places,
            stop,
            progress,
        };
        if !driver.status.pair.run().is_terminal() {
            let run = driver.status.began_at.map(|at| turn::cut_off(&driver, at));
            driver.record(PairStep::Interrupted {
                why: "the process that drove it was ended".to_owned(),
                run,
            })?;
        }
        Ok(driver)
    }

    /// The pair's name.
    pub fn id(&self) -> &PairId {
        &self.id
    }

    /// Runs the commands in turn until the pair is over; returns its last state.
    pub fn drive(&mut self) -> Result<PairStatus, PairError> {
        loop {
            let run = self.status.pair.run();
            if run.is_terminal() {
                return Ok(self.status);
            }
            if let Some(why) = self.stop.cause() {
                self.record(PairStep::Interrupted {
                    why: why.to_owned(),
                    run: None,
                })?;
                continue;
            }
            match Role::of(run) {
                Some(role) => self.turn(role)?,
                None => self.start()?,
            }
        }
    }

    fn start(&mut self) -> Result<(), PairError> {
        let workdir = Path::new(&self.setup.workdir);
        let step = match std::fs::read_dir(workdir) {
            Ok(_) => PairStep::Started,
            Err(error) => PairStep::NotStarted {
                why: format!("cannot open its folder: {error}"),
            },
        };
        self.record(step)
    }

    /// Records a step in the ledger and adopts the pair's state from the record.
    fn record(&mut self, what: PairStep) -> Result<(), PairError> {
        let news = PairReport {
            pair: self.id.clone(),
            what,
        };
        let heard = submit_order::submit(&self.root, Event::Pair(news.clone()))?;
        match heard.record {
            EventRecord::Happened(happened) => {
                let was = self.status;
                self.status = happened.pair.unwrap_or(self.status);
                let Self {
                    setup,
                    status,
                    progress,
                    ..
                } = self;
                let told = RecordedStep {
                    pair: &news.pair,
                    setup,
                    step: &news.what,
                    was,
                    status,
                };
                progress(&Progress::Told(told));
                Ok(())
            }
            EventRecord::Declined(DeclinedEvent { code, why, .. }) => {
                Err(PairError::Declined { code, why })
            }
        }
    }
}

fn hold(root: &Path, id: &PairId) -> Result<Places, PairError> {
    Places::hold(root, id).map_err(|source| PairError::Places {
        id: id.clone(),
        source,
    })
}

fn new_id() -> PairId {
    let name = format!("pair-{}", workspace::clock::new_name());
    PairId(message_schema::id::MessageId::new(name).expect("letters, digits and dashes"))
}
