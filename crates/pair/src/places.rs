//! `.settled/pairs/<id>/`: the input and output of a pair's commands. Only the owner of `.settled` can read it. The
//! ledger has everything that counts; a lost folder costs the commands only what they would read.
//!
//! It has `mail/<iteration>-<role>/` with copies of one turn's messages, each side's last output, and a numbered folder
//! for each run, as the daemon's runner makes them. In that, `given/` has copies of all that the run reads: a program
//! that may write there reaches neither the input of another run nor the output of any.

use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use review::PairId;
use runner::folder::Folder;
use spool::Layout;
use workspace::atomic_file;

use super::Role;

/// The number of pair folders to keep; older ones are removed.
const KEPT_MAX: usize = 50;

/// The folder of one pair, locked by one process at a time.
#[derive(Debug)]
pub(super) struct Places {
    at: PathBuf,
    _lock: File,
}

/// The reason a pair's folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum NoPlaces {
    /// Another process drives the pair.
    #[error("another process drives the pair")]
    Busy,
    /// The disk failed.
    #[error("{}: {source}", at.display())]
    Io {
        /// The folder.
        at: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl Places {
    /// Makes the folder of a pair, if it is missing, and locks it.
    pub(super) fn hold(root: &Path, id: &PairId) -> Result<Self, NoPlaces> {
        let pairs = Layout::new(root).pairs();
        let at = pairs.join(id.as_str());
        let failed = |source| NoPlaces::Io {
            at: at.clone(),
            source,
        };
        make(&at.join("mail")).map_err(failed)?;
        let locked = atomic_file::try_lock_file(&at.join("lock")).map_err(failed)?;
        let lock = locked.ok_or(NoPlaces::Busy)?;
        tidy(&pairs, &at);
        Ok(Self { at, _lock: lock })
    }

    /// Removes the folder of a pair that was not opened; ignores errors.
    pub(super) fn discard(&self) {
        let _ = std::fs::remove_dir_all(&self.at);
    }

    /// The log of the daemon that the pair started.
    pub(super) fn log(&self) -> PathBuf {
        self.at.join("serve.log")
    }

    /// The file with the last output of this side.
    pub(super) fn output_file(&self, role: Role) -> PathBuf {
        self.at.join(format!("{}.said", role.word()))
    }

    /// The file with the note to this side about its last answer.
    pub(super) fn note(&self, role: Role) -> PathBuf {
        self.at.join(format!("{}.note", role.word()))
    }

    /// The folder for a turn's messages; a restarted run uses the same one.
    pub(super) fn mail(&self, iteration: u8, role: Role) -> io::Result<PathBuf> {
        let at = self
            .at
            .join("mail")
            .join(format!("{iteration:03}-{}", role.word()));
        make(&at)?;
        Ok(at)
    }

    /// Makes the folder of a new run. Removes an older one of the same number, whose run the ledger does not have.
    pub(super) fn new_run(&self, start: u16) -> io::Result<Folder> {
        let at = self.run(start);
        match std::fs::remove_dir_all(&at) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        Folder::make_at(&at)
    }

    /// The folder of a run.
    pub(super) fn run(&self, start: u16) -> PathBuf {
        self.at.join(format!("{start:03}"))
    }
}

/// Copies of the files that one run reads, in a folder of their own.
#[derive(Debug)]
pub(super) struct Given(PathBuf);

impl Given {
    /// The folder inside a run's; does not make it.
    pub(super) fn of(run: &Folder) -> Self {
        Self(run.path().join("given"))
    }

    /// Makes the folder, with the task and the messages of the turn.
    pub(super) fn fill(&self, task: &str, mail: &Path) -> io::Result<()> {
        make(&self.mail())?;
        std::fs::write(self.task(), task)?;
        for entry in std::fs::read_dir(mail)? {
            let entry = entry?;
            std::fs::copy(entry.path(), self.mail().join(entry.file_name()))?;
        }
        Ok(())
    }

    /// Copies a file of the pair into the folder, or makes an empty one if there is no such file.
    pub(super) fn copy(&self, file: &Path) -> io::Result<PathBuf> {
        let copied = self.0.join(file.file_name().unwrap_or_default());
        match std::fs::copy(file, &copied) {
            Err(error) if error.kind() == ErrorKind::NotFound => std::fs::write(&copied, "")?,
            done => drop(done?),
        }
        Ok(copied)
    }

    /// The path of the task.
    pub(super) fn task(&self) -> PathBuf {
        self.0.join("task.md")
    }

    /// The path of the brief.
    pub(super) fn brief(&self) -> PathBuf {
        self.0.join("brief.yaml")
    }

    /// The folder of the messages.
    pub(super) fn mail(&self) -> PathBuf {
        self.0.join("mail")
    }
}

/// Replaces a file by this text atomically.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    let temporary = path.with_extension("tmp");
    std::fs::write(&temporary, text)?;
    std::fs::rename(temporary, path)
}

fn make(at: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).recursive(true).create(at)
}

/// Removes the oldest folders above the number to keep, except locked ones; ignores errors.
fn tidy(pairs: &Path, own: &Path) {
    let mut all: Vec<PathBuf> = std::fs::read_dir(pairs)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    // A pair's name begins with its time.
    all.sort_unstable();
    for old in all
        .iter()
        .take(all.len().saturating_sub(KEPT_MAX))
        .filter(|old| *old != own)
    {
        if let Ok(Some(_lock)) = atomic_file::try_lock_file(&old.join("lock")) {
            let _ = std::fs::remove_dir_all(old);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use message_schema::id::MessageId;
    use tempfile::TempDir;

    use super::*;

    fn held(root: &TempDir, id: &str) -> Places {
        let id = PairId(MessageId::new(id).expect("an id"));
        Places::hold(root.path(), &id).expect("a folder")
    }

    #[test]
    fn the_newest_folders_are_kept_and_those_in_use() {
        let root = tempfile::tempdir().expect("a directory");
        let pairs = root.path().join(".settled/pairs");
        let name = |number: usize| format!("pair-{number:03}");
        // Dropped at once, so no process drives them.
        for number in 0..=KEPT_MAX {
            drop(held(&root, &name(number)));
        }
        let kept = || {
            let entries = fs::read_dir(&pairs).expect("a folder");
            let names = entries.map(|entry| entry.expect("an entry").file_name());
            let mut names: Vec<_> = names
                .map(|name| name.into_string().expect("text"))
                .collect();
            names.sort_unstable();
            names
        };
        assert_eq!(kept(), (1..=KEPT_MAX).map(name).collect::<Vec<_>>());
        let _driven = held(&root, &name(2));
        let _own = held(&root, &name(0));
        // With its own folder there are 51: the oldest is its own, and so is kept.
        assert_eq!(kept(), (0..=KEPT_MAX).map(name).collect::<Vec<_>>());
        drop(held(&root, &name(KEPT_MAX + 1)));
        drop(held(&root, &name(KEPT_MAX + 2)));
        // The oldest three are 0, 1 and 2; two of them are in use.
        let expected = [0].into_iter().chain(2..=KEPT_MAX + 2).map(name);
        assert_eq!(kept(), expected.collect::<Vec<_>>());
    }

    #[test]
    fn a_folder_that_cannot_be_replaced_and_a_file_that_cannot_be_copied_are_errors() {
        let root = tempfile::tempdir().expect("a directory");
        let places = held(&root, "pair-1");
        fs::write(places.run(1), "").expect("a file");
        let error = places.new_run(1).expect_err("a file is in its place");
        assert_eq!(error.kind(), ErrorKind::NotADirectory);
        let run = places.new_run(2).expect("a folder");
        let given = Given::of(&run);
        given
            .fill("task", &places.mail(1, Role::Author).expect("a folder"))
            .expect("copies");
        let missing = given
            .copy(&places.note(Role::Author))
            .expect("an empty file");
        assert_eq!(fs::read(missing).expect("a file"), b"");
        given.copy(&places.run(2)).expect_err("a folder is no file");
    }
}
