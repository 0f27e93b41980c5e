//! A reader that takes every file of an inbox as soon as it appears, as an agent does, and keeps what it saw.

use std::path::{Path, PathBuf};

use crate::onlooker::Onlooker;

/// One file that a reader took from its inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Take {
    /// The agent whose inbox held it.
    pub agent: String,
    /// Its name there.
    pub file: String,
    /// Its bytes, as the reader saw them.
    pub bytes: Vec<u8>,
}

/// A reader on its own thread.
pub struct Taker(Onlooker<Vec<Take>>);

impl Taker {
    /// Begins to empty an agent's inbox.
    pub fn start(root: &Path, agent: &str) -> Taker {
        let inbox = root.join("agents").join(agent).join("inbox");
        let (root, agent) = (root.to_owned(), agent.to_owned());
        let take = move |takes: &mut Vec<Take>| take_all(&root, &agent, takes);
        Taker(Onlooker::start(vec![inbox], Vec::new(), take))
    }

    /// Takes what is left, stops, and returns everything it took.
    pub fn stop(self) -> Vec<Take> {
        self.0.stop()
    }
}

/// Reads and removes every file that an agent sees in its inbox, which excludes dotfiles.
pub fn take_all(root: &Path, agent: &str, takes: &mut Vec<Take>) {
    for path in visible(&root.join("agents").join(agent).join("inbox")) {
        let bytes = std::fs::read(&path).expect("only this reader takes from this inbox");
        std::fs::remove_file(&path).expect("only this reader takes from this inbox");
        let file = name_of(&path);
        takes.push(Take {
            agent: agent.to_owned(),
            file,
            bytes,
        });
    }
}

/// The regular files of a directory, without dotfiles.
pub(crate) fn visible(directory: &Path) -> Vec<PathBuf> {
    let shown = |path: &PathBuf| path.is_file() && !name_of(path).starts_with('.');
    settled_tests::list(directory)
        .into_iter()
        .filter(shown)
        .collect()
}

/// A path's last component as text.
pub(crate) fn name_of(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}
