//! Makes one run of a pair's command: its input, its keeper and its end.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use mailbox::compose::ask::{self, Ask};
use message_schema::Code;
use message_schema::id::MessageId;
use message_schema::render_document;
use review::{PairMember, PairStep, ReviewKey, TRANSCRIPT_MAX, Transcript};
use runner::folder::{ExitReason, Folder, Launch, RunEnd};
use runner::launch::{self, KeeperNote, RunIdentity};
use runner::stream::{AgentOutput, OutputFormat};
use runner::{prompt, tree};
use spool::{Since, Tail};
use workspace::clock;
use workspace::index::LedgerIndex;

use super::answer::{self, FinishedRun, Word};
use super::places::Given;
use super::{Driver, PairError, Progress, Role, mail, places};

/// The interval at which the driver reports a running command and checks for signals.
const TICK: Duration = Duration::from_millis(100);

/// The pause between two checks for the keeper's exit: a silent keeper exits at once.
const LAST_LOOK: Duration = Duration::from_millis(2);

/// The time a keeper has to end its agent; longer than it gives the agent.
const KEEPER: Duration = Duration::from_secs(8);

/// The brief of a command without an open request.
const NO_BRIEF: &str = "# No request is open: do only what the task says.\n";

const AUTHOR: &str = include_str!("author.md");
const REVIEWER: &str = include_str!("reviewer.md");

/// A run that is prepared but has not begun.
pub(super) struct Prepared {
    /// The number of the run, from 1.
    pub(super) start: u16,
    folder: Folder,
    /// The request whose brief it gets.
    pub(super) asked: Option<(ReviewKey, MessageId)>,
}

/// The reason the driver ended a run.
#[derive(Clone, Debug)]
enum StopReason {
    /// A signal stopped the pair.
    Stopped(&'static str),
    /// No turns are left.
    NoTurns,
}

impl Driver<'_> {
    /// Runs the command of the side that has the turn once, and records the result.
    pub(super) fn turn(&mut self, role: Role) -> Result<(), PairError> {
        let member = self.member(role).clone();
        for member in self.setup.members() {
            mail::judged(&self.root, &member.agent)?;
        }
        let start = self.status.starts.saturating_add(1);
        let prepared = self.prepare(role, &member, start)?;
        let mut tail = Tail::open(&self.root, Since::End)?;
        if let Err(error) = self.record(PairStep::Began(start)) {
            return self.rest(error);
        }

        let began = Instant::now();
        let (end, why) = match self.launch(&member, &prepared) {
            Ok(keeper) => self.see_through(role, keeper, &prepared.folder, began),
            Err(error) => (Some(not_started(&error)), None),
        };
        let ms = u64::try_from(began.elapsed().as_millis())
            .unwrap_or(u64::MAX)
            .max(1);
        let said = output_of(&prepared.folder, end.as_ref(), &member);
        let mut run = transcript(&said, start, ms);
        self.keep_words(role, &said)?;
        if let Some(StopReason::Stopped(why)) = why {
            return self.record(PairStep::Interrupted {
                why: why.to_owned(),
                run: Some(run),
            });
        }

        mail::judged(&self.root, &member.agent)?;
        let messages = mail::accepted(&mut tail, &member.agent)?;
        let no_turns = matches!(why, Some(StopReason::NoTurns));
        let ran = FinishedRun {
            end,
            no_turns,
            messages,
        };
        let word = answer::read(self, role, &prepared, &ran)?;
        let later = mail::accepted(&mut tail, &member.agent)?;
        run.messages = ran
            .messages
            .iter()
            .chain(&later)
            .map(|sent| sent.id.clone())
            .collect();
        self.record(match word {
            Word::Signal(signal) => PairStep::Ended { signal, run },
            Word::Crashed(why) => PairStep::Crashed { why, run },
        })
    }

    /// Interrupts a pair that has no budget left for today; it can be resumed when the next day begins.
    fn rest(&mut self, error: PairError) -> Result<(), PairError> {
        if let PairError::Declined {
            code: Code::ProviderUnavailable,
            why,
        } = error
        {
            return self.record(PairStep::Interrupted { why, run: None });
        }
        Err(error)
    }

    pub(super) fn member(&self, role: Role) -> &PairMember {
        match role {
            Role::Author => &self.setup.author,
            Role::Reviewer => self
                .setup
                .reviewer
                .as_ref()
                .expect("only a pair with a reviewer reviews"),
        }
    }

    /// Drains the mail of the agent that has the turn, and makes the run's folder with all its input.
    fn prepare(&self, role: Role, member: &PairMember, start: u16) -> Result<Prepared, PairError> {
        let failed = |source| PairError::Io {
            what: format!("the folder of run {start}"),
            source,
        };
        let iteration = self.status.pair.iteration();
        let mail = self.places.mail(iteration, role).map_err(failed)?;
        let (own, others) = self.asks(role)?;
        mail::drain(&self.root, &member.agent, &mail, &others)?;
        let folder = self.places.new_run(start).map_err(failed)?;
        let given = self.give(role, member, &folder, &mail, own.first());
        let asked = given.map_err(failed)?;
        Ok(Prepared {
            start,
            folder,
            asked,
        })
    }

    fn give(
        &self,
        role: Role,
        member: &PairMember,
        folder: &Folder,
        mail: &Path,
        ask: Option<&Ask>,
    ) -> io::Result<Option<(ReviewKey, MessageId)>> {
        let given = Given::of(folder);
        given.fill(&self.setup.task, mail)?;
        let other_said = given.copy(&self.places.output_file(role.other()))?;
        let note = given.copy(&self.places.note(role))?;
        let brief = ask.map(|ask| render_document(&ask.whole));
        let brief = brief.as_deref().unwrap_or(NO_BRIEF);
        let asked = ask.map(|ask| (ask.key(), ask.brief.request.clone()));
        Folder::write(&folder.brief(), brief)?;
        Folder::write(&given.brief(), brief)?;
        let words = &self.setup.words;
        let seconds = self.seconds();
        let other = match (role, &self.setup.reviewer) {
            (Role::Author, Some(reviewer)) => format!("then `{}` reviews", reviewer.agent),
            (Role::Author, None) => "nobody reviews".to_owned(),
            (Role::Reviewer, _) => format!("the author is `{}`", self.setup.author.agent),
        };
        let shown = |path: &Path| path.display().to_string();
        let values = [
            ("agent", member.agent.to_string()),
            ("other", other),
            ("iteration", self.status.pair.iteration().to_string()),
            ("iterations", self.setup.iterations.to_string()),
            ("seconds", seconds.to_string()),
            ("workdir", self.setup.workdir.clone()),
            ("task", shown(&given.task())),
            ("mail", shown(&given.mail())),
            ("said", shown(&other_said)),
            ("note", shown(&note)),
            ("brief", shown(&given.brief())),
            ("done", words.done.clone()),
            ("pass", words.pass.clone()),
            ("fail", words.fail.clone()),
        ];
        let template = match role {
            Role::Author => AUTHOR,
            Role::Reviewer => REVIEWER,
        };
        Folder::write(&folder.prompt(), &prompt::fill(template, &values))?;
        folder.tell_run(&Launch {
            command: ["/bin/sh", "-c", &member.command]
                .map(str::to_owned)
                .to_vec(),
            workdir: PathBuf::from(&self.setup.workdir),
            // The reviewer reads what the author has not committed yet.
            checkout: None,
            validation: None,
            sandbox: None,
            reads_prompt: true,
            output: form(&member.output),
            seconds_max: seconds,
        })?;
        Ok(asked)
    }

    /// The open requests to this side: those of the pair's own reviews, and the ids of all others.
    pub(super) fn asks(&self, role: Role) -> Result<(Vec<Ask>, BTreeSet<MessageId>), PairError> {
        let me = &self.member(role).agent;
        let asks = ask::open(&self.root, me, clock::now()).map_err(|error| PairError::Io {
            what: format!("what is asked of {me}"),
            source: io::Error::other(error.to_string()),
        })?;
        let (index, _) = LedgerIndex::read(&self.root)?;
        let pair = index.state().pair(&self.id);
        let (own, others): (Vec<Ask>, Vec<Ask>) = asks
            .into_iter()
            .partition(|ask| pair.is_some_and(|pair| pair.is_own(&ask.key())));
        let others = others.into_iter().map(|ask| ask.brief.request);
        Ok((own, others.collect()))
    }

    /// The time limit of the next run, in seconds; at least one.
    fn seconds(&self) -> u64 {
        u64::from(self.setup.run_seconds)
            .min(self.status.ms_left.div_ceil(1_000))
            .max(1)
    }

    fn launch(&self, member: &PairMember, prepared: &Prepared) -> io::Result<Child> {
        let folder = &prepared.folder;
        let given = Given::of(folder);
        let run = run_name(self, prepared.start);
        let text = |path: PathBuf| path.display().to_string();
        let env = BTreeMap::from([
            ("SETTLED_PAIR".to_owned(), self.id.to_string()),
            ("SETTLED_PROMPT".to_owned(), text(folder.prompt())),
            ("SETTLED_BRIEF".to_owned(), text(given.brief())),
            ("SETTLED_TASK".to_owned(), text(given.task())),
            ("SETTLED_MAIL".to_owned(), text(given.mail())),
        ]);
        launch::keeper(
            folder,
            &RunIdentity {
                root: &self.root,
                agent: &member.agent,
                run: &run,
                env: &env,
            },
        )
    }

    /// Waits for the end of a run, or ends it when its time is up or the pair stops. Then none of its processes is
    /// left.
    fn see_through(
        &mut self,
        role: Role,
        mut keeper: Child,
        folder: &Folder,
        began: Instant,
    ) -> (Option<RunEnd>, Option<StopReason>) {
        let mut control = keeper.stdin.take();
        let (tell, heard) = channel();
        // Once the run is over, nobody receives notes.
        launch::listen(keeper.stdout.take().expect("it was piped"), move |note| {
            let _ = tell.send(note);
        });
        let last = began + Duration::from_secs(self.seconds()) + KEEPER;
        let why = self.wait(role, &heard, began, last);
        control.take();
        let until = Instant::now() + KEEPER;
        while matches!(keeper.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(LAST_LOOK);
        }
        // Ends a keeper that hangs, and then the processes it kept.
        let _ = keeper.kill();
        let _ = keeper.wait();
        tree::end_strays(&[]);
        // A killed keeper has left the group behind.
        if let Some(group) = folder.processes().group {
            group.remove();
        }
        (folder.end(), why)
    }

    /// Waits until the keeper falls silent or the run must end.
    fn wait(
        &mut self,
        role: Role,
        heard: &Receiver<KeeperNote>,
        began: Instant,
        last: Instant,
    ) -> Option<StopReason> {
        let mut turns = 0;
        while Instant::now() < last {
            if let Some(why) = self.stop.cause() {
                return Some(StopReason::Stopped(why));
            }
            if self
                .status
                .turns_left
                .is_some_and(|left| u32::from(turns) >= left)
            {
                return Some(StopReason::NoTurns);
            }
            match heard.recv_timeout(TICK) {
                Ok(KeeperNote::Turns(count)) => turns = count,
                Ok(
                    KeeperNote::Read(_)
                    | KeeperNote::Spent(_)
                    | KeeperNote::Ran(_)
                    | KeeperNote::Validated,
                ) => {}
                Ok(KeeperNote::Silent) => return None,
                Err(_) => (self.progress)(&Progress::Works(role, began.elapsed(), turns.into())),
            }
        }
        None
    }

    /// Keeps the output for the other side.
    fn keep_words(&self, role: Role, said: &AgentOutput) -> Result<(), PairError> {
        let failed = |source| PairError::Io {
            what: "what was said".to_owned(),
            source,
        };
        places::write(&self.places.output_file(role), &said.text).map_err(failed)
    }
}

/// Ends what a killed driver left running, and returns what is known about the run. Charges it the time until now, up
/// to the limit of a run.
pub(super) fn cut_off(driver: &Driver<'_>, began_at: DateTime<Utc>) -> Transcript {
    let start = driver.status.starts;
    let folder = Folder::at(&driver.places.run(start));
    runner::orphans::end(&folder, &run_name(driver, start));
    let run = driver.status.pair.run();
    let said = driver
        .setup
        .member(run)
        .map(|member| output_of(&folder, folder.end().as_ref(), member));
    let passed = u64::try_from((clock::now() - began_at).num_milliseconds())
        .unwrap_or(0)
        .max(1);
    transcript(
        &said.unwrap_or_default(),
        start,
        passed.min(driver.seconds() * 1_000),
    )
}

/// The name of a run in the environment of all its processes.
pub(super) fn run_name(driver: &Driver<'_>, start: u16) -> String {
    format!("{}-{start}", driver.id)
}

fn not_started(error: &io::Error) -> RunEnd {
    RunEnd {
        how: ExitReason::NotStarted(error.to_string()),
        said: AgentOutput::default(),
    }
}

/// The output of a run. If the keeper was killed, it is what was stored by then, because used turns stay used.
fn output_of(folder: &Folder, end: Option<&RunEnd>, member: &PairMember) -> AgentOutput {
    end.map_or_else(
        || {
            folder
                .printed(form(&member.output))
                .unwrap_or_else(|_| AgentOutput::default())
        },
        |end| end.said.clone(),
    )
}

/// Keeps the last characters of the output, because the signal is at the end.
fn transcript(said: &AgentOutput, start: u16, ms: u64) -> Transcript {
    let text = &said.text;
    let length = text.chars().count();
    let kept = text
        .chars()
        .skip(length.saturating_sub(TRANSCRIPT_MAX))
        .collect();
    Transcript {
        start,
        ms,
        turns: said.turns.into(),
        spend: said.spend,
        said: kept,
        length: length as u64,
        messages: Vec::new(),
    }
}

/// The output format of this name; text if the name is unknown.
fn form(word: &str) -> OutputFormat {
    serde_json::from_value(word.into()).unwrap_or_default()
}
