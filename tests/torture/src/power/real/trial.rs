//! One crash state: written to a disk, mounted, recovered by the real daemon in another boot or mount, judged, emptied by a
//! reader, and recovered in yet another boot; sometimes cut again during the recovery.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use super::cuts;
use super::ground::{Boot, Boots, FileSystem};
use super::image::Image;
use super::recorder;
use crate::checker;
use crate::dice::Dice;
use crate::power::history::History;
use crate::power::judge::{self, Before, Said, Scene};
use crate::taker;

/// The outcome of one crash state.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The broken promises.
    pub(crate) wrong: Vec<String>,
    /// The kernel's message, if it could not mount the state.
    pub(crate) unmountable: Option<String>,
    /// The number of files delivered again.
    pub(crate) again: usize,
    /// The number of files repaired.
    pub(crate) mended: usize,
    /// True if the daemon cut off a torn tail.
    pub(crate) torn: bool,
}

/// A place to try crash states, one per thread.
pub(crate) struct Bench<'a> {
    pub(crate) settled: &'a Path,
    pub(crate) file_system: FileSystem,
    pub(crate) boots: Boots,
    pub(crate) scratch: PathBuf,
}

impl Bench<'_> {
    /// Tries one crash state.
    pub(crate) fn trial(&self, disk: &Image, history: &History, at: usize) -> io::Result<Outcome> {
        // A new file each time: the loop device of the last one may still hold that.
        let file = tempfile::NamedTempFile::new_in(&self.scratch)?;
        disk.save(file.as_file())?;
        self.on(file.path(), |room| {
            // After an error the kernel may lose as much in the same boot, if the file system is mounted again.
            let boot = match at.is_multiple_of(2) && self.file_system.numbers_mounts() {
                true => Boot::Recorded,
                false => Boot::Number(2),
            };
            let (mut outcome, before, said) = self.recover(room, boot)?;
            if outcome.wrong.is_empty() {
                let scene = Scene {
                    root: room,
                    history,
                    at,
                    before: &before,
                    said: &said,
                };
                outcome.wrong = judge::judge(&scene);
                self.again(room, &mut outcome)?;
            }
            Ok(outcome)
        })
    }

    /// Tries cuts of the recovery from a cut.
    pub(crate) fn trial_of_recovery(
        &self,
        disk: &Image,
        history: &History,
        at: usize,
        count: usize,
        dice: &mut Dice,
    ) -> io::Result<Vec<Outcome>> {
        let under = self.scratch.join("recorded");
        std::fs::create_dir_all(&under)?;
        let (journal, session) = recorder::mount(disk.clone(), &under)?;
        let mut later = History::default();
        let first = self.on(&under.join("disk"), |room| {
            // This boot is cut; the following ones have other numbers.
            let (outcome, ..) = self.recover(room, Boot::Number(1))?;
            later = history.after_cut(at, checker::lines(room), journal.position());
            Ok(outcome)
        })?;
        session.umount_and_join()?;
        let events = journal.events();
        let mut outcomes = vec![first];
        let (mut flushed, mut so_far) = (disk.clone(), 0);
        for cut in cuts::choose(&events, 0, later.end, count, dice) {
            let to = cuts::flushed(&events, cut.at);
            cuts::advance(&mut flushed, &events, so_far, to);
            so_far = to;
            let mut image = flushed.clone();
            cuts::strike(&mut image, &events, &cut, self.file_system.superblock());
            let mut outcome = self.trial(&image, &later, cut.at)?;
            outcome
                .wrong
                .iter_mut()
                .for_each(|what| *what = format!("second cut, {cut:?}: {what}"));
            outcomes.push(outcome);
        }
        Ok(outcomes)
    }

    /// Mounts a disk while `act` runs; a disk that cannot be mounted is an outcome.
    fn on(
        &self,
        disk: &Path,
        act: impl FnOnce(&Path) -> io::Result<Outcome>,
    ) -> io::Result<Outcome> {
        let at = self.scratch.join("mnt");
        match self.file_system.mount(disk, &at) {
            Ok(_mounted) => act(&at.join("room")),
            Err(error) => Ok(Outcome {
                unmountable: Some(error.to_string()),
                ..Outcome::default()
            }),
        }
    }

    /// Lets the daemon recover in this boot.
    fn recover(&self, room: &Path, boot: Boot) -> io::Result<(Outcome, Before, Said)> {
        self.boots.boot(boot)?;
        let before = judge::look(room);
        let mut outcome = Outcome::default();
        let log = self.run(&["serve"], room, &["--once"], &mut outcome)?;
        let said = said(&log);
        outcome.again = said.again.len();
        outcome.mended = log
            .matches("restored a file that was empty or torn")
            .count();
        outcome.torn = said.torn.is_some();
        if outcome.wrong.is_empty() {
            self.run(&["ledger", "verify"], room, &[], &mut outcome)?;
        }
        Ok((outcome, before, said))
    }

    /// Lets a reader take everything; then nothing may be delivered again, not even in another boot.
    fn again(&self, room: &Path, outcome: &mut Outcome) -> io::Result<()> {
        taker::take_all(room, "codex", &mut Vec::new());
        let before = judge::tree(room);
        self.boots.boot(Boot::Number(3))?;
        self.run(&["serve"], room, &["--once"], outcome)?;
        outcome
            .wrong
            .extend(judge::changed(&before, &judge::tree(room)));
        if let Err(what) = checker::records(room) {
            outcome.wrong.push(what);
        }
        Ok(())
    }

    fn run(
        &self,
        command: &[&str],
        room: &Path,
        rest: &[&str],
        outcome: &mut Outcome,
    ) -> io::Result<String> {
        let mut settled = Command::new(self.settled);
        settled
            .args(command)
            .arg(room)
            .args(rest)
            .env_remove("SETTLED_LOG")
            .stdin(Stdio::null());
        let output = settled.output()?;
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        if !is_done(output.status) {
            outcome.wrong.push(format!(
                "settled {command:?} ends with {}: {}",
                output.status,
                log.trim()
            ));
        }
        Ok(log)
    }
}

/// True if the daemon judged everything, with or without refusals.
pub(super) fn is_done(status: ExitStatus) -> bool {
    matches!(status.code(), Some(0 | 7))
}

/// Reads the daemon's report on its recovery from its log.
fn said(log: &str) -> Said {
    let mut said = Said::default();
    for line in log.lines() {
        let field = |name: &str| {
            let (_, rest) = line.split_once(&format!(" {name}="))?;
            Some(
                rest.split_whitespace()
                    .next()
                    .unwrap_or_default()
                    .to_owned(),
            )
        };
        let number = |name: &str| field(name).and_then(|text| text.parse::<u64>().ok());
        if line.contains("delivered again") {
            let seq = number("seq")
                .and_then(|seq| usize::try_from(seq).ok())
                .unwrap_or(0);
            said.again.push((seq, field("file").unwrap_or_default()));
        } else if line.contains("ended in an unfinished batch") {
            said.torn = number("offset").zip(number("bytes"));
        }
    }
    said
}
