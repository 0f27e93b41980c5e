//! Expands the arguments to messages to check; a directory means the messages in it.

use std::path::{Path, PathBuf};

use ignore::{DirEntry, WalkBuilder};

use super::place;
use super::subject::Subject;

/// Lists the messages that the arguments mean, in their order.
pub(crate) fn subjects(files: Vec<PathBuf>, stdin_filename: Option<&Path>) -> Vec<Subject> {
    let mut subjects = Vec::with_capacity(files.len());
    for file in files {
        if file == Path::new("-") {
            subjects.push(Subject::Stdin(stdin_filename.map(Path::to_owned)));
        } else if may_be_directory(&file) && file.is_dir() {
            subjects.extend(messages(&file));
        } else {
            subjects.push(Subject::File(file));
        }
    }
    subjects
}

/// Returns whether the argument is anything but the name of a message. Asking for the kind of a file takes more than half
/// as long as opening and closing it, and there may be ten thousand.
fn may_be_directory(argument: &Path) -> bool {
    let ends_in_separator = argument.as_os_str().as_encoded_bytes().ends_with(b"/");
    ends_in_separator || !place::is_named_as_message(argument)
}

/// The files found by a walk.
#[derive(Default)]
struct Met {
    in_mailboxes: Vec<PathBuf>,
    elsewhere: Vec<PathBuf>,
    is_workspace: bool,
    lost: Vec<Subject>,
}

/// Lists the messages beneath a directory, sorted by path. If there are mailboxes, only files in them are messages; in
/// any other directory every file with such a name is one, except packets and events. Skips ignored and hidden files,
/// and follows no symlinks.
fn messages(directory: &Path) -> Vec<Subject> {
    let above = place::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    let mut met = Met {
        is_workspace: place::workspace_around_mailbox(&above).is_some(),
        ..Met::default()
    };
    let root = directory.to_owned();
    // `.gitignore` counts too in a tree that was exported or is not committed yet.
    let walk = WalkBuilder::new(directory)
        .require_git(false)
        .filter_entry(move |entry| !is_set_apart(entry, &root))
        .build();
    for entry in walk {
        match entry {
            Ok(entry) => met.take(entry, &above, directory),
            Err(error) => met
                .lost
                .push(Subject::Lost(directory.to_owned(), error.to_string())),
        }
    }
    let mut files = if met.is_workspace {
        met.in_mailboxes
    } else {
        met.elsewhere
    };
    files.sort_unstable();
    // Names omit a leading `.`, as a person would type them.
    let plain = |file: PathBuf| file.strip_prefix(".").map(Path::to_owned).unwrap_or(file);
    files
        .into_iter()
        .map(plain)
        .map(Subject::File)
        .chain(met.lost)
        .collect()
}

impl Met {
    fn take(&mut self, entry: DirEntry, above: &Path, directory: &Path) {
        let Some(kind) = entry.file_type() else {
            return;
        };
        let inside = entry.path().strip_prefix(directory).unwrap_or(entry.path());
        let is_in_mailbox = place::workspace_around_mailbox(&above.join(inside)).is_some();
        self.is_workspace |= is_in_mailbox;
        if kind.is_file() && place::is_named_as_message(entry.path()) {
            let files = if is_in_mailbox {
                &mut self.in_mailboxes
            } else {
                &mut self.elsewhere
            };
            files.push(entry.into_path());
        }
    }
}

fn is_the_daemons(directory: &Path) -> bool {
    place::absolute(directory).is_ok_and(|directory| place::is_the_daemons(&directory))
}

/// Returns whether a directory's name says that it holds no messages, unless it was given itself.
fn is_set_apart(entry: &DirEntry, root: &Path) -> bool {
    let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
    let name = entry.file_name();
    let is_apart = ["packets", "events", "dead_letter"]
        .iter()
        .any(|apart| name == *apart);
    is_directory && entry.path() != root && (is_apart || is_the_daemons(entry.path()))
}
