//! The work while the disk is recorded: writers post messages, the real daemon runs in every mode, readers watch
//! and one of them takes, and now and then the kernel writes something back on its own.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use settled_tests::{names, wait};

use super::recorder::Journal;
use super::trial::is_done;
use crate::checker;
use crate::messages::{self, AGENTS, Message, Mix};
use crate::power::history::History;
use crate::power::run_to_end;
use crate::taker::{Take, name_of, visible};

/// The number of messages posted at a time.
const LOT: usize = 7;

/// A run in progress.
pub(crate) struct Workload<'a> {
    pub(crate) settled: &'a Path,
    pub(crate) root: PathBuf,
    pub(crate) journal: Arc<Journal>,
    pub(crate) history: Arc<Mutex<History>>,
}

impl Workload<'_> {
    /// Makes the workspace and serves it `rounds` times.
    pub(crate) fn run(&self, rounds: usize) -> io::Result<()> {
        run_to_end(self.settled("init").args(["--agents", &AGENTS.join(",")]))?;
        self.with(|history| history.ready = self.journal.position());
        let watching = Watching::start(self);
        let ended = (0..rounds).try_for_each(|round| self.round(round));
        watching.stop();
        self.with(|history| history.end = self.journal.position());
        ended?;
        self.with(|history| history.ledger = checker::lines(&self.root));
        checker::records(&self.root)
            .map(|_| ())
            .map_err(io::Error::other)
    }

    fn round(&self, round: usize) -> io::Result<()> {
        let mix = [
            Mix::Several,
            Mix::Notes,
            Mix::Requests,
            Mix::Several,
            Mix::Refusals,
        ][round % 5];
        let messages = mix.messages(LOT, round as u64 + 1);
        self.with(|history| history.messages.extend(messages.iter().cloned()));
        match round % 3 {
            // All messages at once, and a checkpoint at the end.
            0 => {
                messages
                    .iter()
                    .for_each(|message| messages::post(&self.root, message));
                let output = self.settled("serve").arg("--once").output()?;
                if !is_done(output.status) {
                    return Err(io::Error::other(
                        String::from_utf8_lossy(&output.stderr).into_owned(),
                    ));
                }
                self.checkpointed();
            }
            // One message after the other, then a kill before any sync; the next round recovers.
            1 => {
                let mut daemon = self.serve(&messages)?;
                daemon.kill()?;
                daemon.wait()?;
            }
            // One message after the other, and a normal end.
            _ => {
                let mut daemon = self.serve(&messages)?;
                let pid = rustix::process::Pid::from_child(&daemon);
                rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
                if daemon.wait()?.success() {
                    self.checkpointed();
                }
            }
        }
        Ok(())
    }

    /// Serves until every one of these messages is judged and put away.
    fn serve(&self, messages: &[Message]) -> io::Result<Child> {
        let daemon = self
            .settled("serve")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        for few in messages.chunks(2) {
            few.iter()
                .for_each(|message| messages::post(&self.root, message));
            wait::until("the outboxes to be empty", || {
                AGENTS.iter().all(|agent| {
                    names(self.root.join("agents").join(agent).join("outbox")).is_empty()
                })
            });
        }
        Ok(daemon)
    }

    /// Notes that everything so far is durable and was acknowledged.
    fn checkpointed(&self) {
        let records = checker::records(&self.root).map_or(0, |records| records.len());
        let position = self.journal.position();
        self.with(|history| {
            history.checkpoints.push((position, records));
            history.acknowledged.push((position, records));
        });
    }

    fn settled(&self, command: &str) -> Command {
        let mut settled = Command::new(self.settled);
        settled
            .arg(command)
            .arg(&self.root)
            .env_remove("SETTLED_LOG")
            .stdin(Stdio::null());
        settled
    }

    fn with<T>(&self, act: impl FnOnce(&mut History) -> T) -> T {
        act(&mut self.history.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Threads that note what they see, and codex, who takes it.
struct Watching {
    done: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Watching {
    fn start(workload: &Workload<'_>) -> Watching {
        let done = Arc::new(AtomicBool::new(false));
        let work: [fn(&Path, &Journal, &Mutex<History>); 2] = [look, write_back];
        let threads = work.map(|work| {
            let (done, root) = (Arc::clone(&done), workload.root.clone());
            let (journal, history) = (Arc::clone(&workload.journal), Arc::clone(&workload.history));
            std::thread::spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    work(&root, &journal, &history);
                    std::thread::yield_now();
                }
            })
        });
        Watching {
            done,
            threads: threads.into(),
        }
    }

    fn stop(self) {
        self.done.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    }
}

/// Reads every mailbox once and takes the messages in codex's inbox.
fn look(root: &Path, journal: &Journal, history: &Mutex<History>) {
    let with = || history.lock().unwrap_or_else(PoisonError::into_inner);
    let mailboxes = AGENTS.iter().flat_map(|agent| {
        ["inbox", "sent", "dead_letter"].map(|directory| format!("agents/{agent}/{directory}"))
    });
    for mailbox in mailboxes.chain(["packets/briefs".to_owned()]) {
        for path in visible(&root.join(&mailbox)) {
            let file = name_of(&path);
            let position = journal.position();
            with().saw(format!("{mailbox}/{file}"), position);
            if mailbox == "agents/codex/inbox" {
                let bytes = std::fs::read(&path).expect("only this reader takes from this inbox");
                let take = Take {
                    agent: "codex".to_owned(),
                    file,
                    bytes,
                };
                // Note it before removing it: from here on the disk may know.
                let position = journal.position();
                with().takes.push((position, take));
                std::fs::remove_file(&path).expect("only this reader takes from this inbox");
            }
        }
    }
}

/// Writes one cursor back, as the kernel may do with any file at any time. Its notes are then ahead of the files they
/// describe.
fn write_back(root: &Path, journal: &Journal, _history: &Mutex<History>) {
    let cursors = settled_tests::list(root.join(".settled/cursors"));
    let Some(cursor) = cursors.get(journal.position() % cursors.len().max(1)) else {
        return;
    };
    if let Ok(file) = std::fs::File::open(cursor) {
        let _ = file.sync_data();
    }
    wait::a_moment(std::time::Duration::from_millis(3));
}
