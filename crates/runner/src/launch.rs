//! Starts a keeper and reads its notes, for the daemon's agents and for pairs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;

use message_schema::id::AgentName;
use message_schema::spend::Spend;

use crate::folder::Folder;
use crate::program;
use crate::tree;
use crate::validation::CommandRun;

/// The word that makes our own program a keeper; not a command for people.
pub const KEEPER: &str = "keep-run";

/// The prefix of a keeper's note about a file.
pub(crate) const READ: &str = "read ";

/// The prefix of a keeper's note about tokens and money.
pub(crate) const SPENT: &str = "spent ";

/// The prefix of a keeper's note about a command.
pub(crate) const RAN: &str = "ran ";

/// A keeper's note that it holds the agent back until the daemon has recorded the validation commands.
pub(crate) const VALIDATED: &str = "validated";

/// A keeper's note: the progress of its agent, or that the keeper says nothing more.
#[derive(Clone, Debug)]
pub enum KeeperNote {
    /// The number of turns completed so far.
    Turns(u16),
    /// The spend so far.
    Spent(Spend),
    /// The agent read a file, named as the agent named it.
    Read(String),
    /// A validation command was run.
    Ran(CommandRun),
    /// All validation commands were run, and the keeper waits for permission to start the agent.
    Validated,
    /// The keeper's output has ended.
    Silent,
}

/// The identity of a run, which its command finds in the environment.
pub struct RunIdentity<'a> {
    /// The workspace.
    pub root: &'a Path,
    /// The agent whose command runs.
    pub agent: &'a AgentName,
    /// The name of the run.
    pub run: &'a str,
    /// More variables for its environment.
    pub env: &'a BTreeMap<String, String>,
}

/// Starts the keeper of a folder that says which command to run. It ends the agent when its standard input is closed.
pub fn keeper(folder: &Folder, it: &RunIdentity<'_>) -> io::Result<Child> {
    tree::become_reaper();
    Command::new(program::running()?)
        .arg(KEEPER)
        .arg(folder.path())
        // A pair hands out a copy of the brief and names it in `env`.
        .env("SETTLED_BRIEF", folder.brief())
        .envs(it.env)
        .env("PATH", path(it.env)?)
        .env("SETTLED_ROOT", it.root)
        .env("SETTLED_AGENT", it.agent.as_str())
        .env("SETTLED_RUN", it.run)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
}

/// Passes a keeper's notes to `tell`, on a thread of its own, until the keeper closes its output.
pub fn listen(heard: ChildStdout, mut tell: impl FnMut(KeeperNote) + Send + 'static) {
    thread::spawn(move || {
        let notes = BufReader::new(heard).lines().map_while(Result::ok);
        let told = notes.filter_map(|line| note(&line));
        told.chain([KeeperNote::Silent]).for_each(&mut tell);
    });
}

fn note(line: &str) -> Option<KeeperNote> {
    if let Some(file) = line.strip_prefix(READ) {
        return serde_json::from_str(file).ok().map(KeeperNote::Read);
    }
    if let Some(spend) = line.strip_prefix(SPENT) {
        return serde_json::from_str(spend).ok().map(KeeperNote::Spent);
    }
    if let Some(run) = line.strip_prefix(RAN) {
        return serde_json::from_str(run).ok().map(KeeperNote::Ran);
    }
    if line == VALIDATED {
        return Some(KeeperNote::Validated);
    }
    line.parse().ok().map(KeeperNote::Turns)
}

/// The given `PATH`, or our own, with the directory of `settled` at the end, so that the agent can answer with it.
/// Relative directories are dropped, because they could belong to the commit under review.
fn path(env: &BTreeMap<String, String>) -> io::Result<OsString> {
    let own = std::env::current_exe()?;
    let known = env
        .get("PATH")
        .map(OsString::from)
        .or_else(|| std::env::var_os("PATH"));
    let known = known.unwrap_or_default();
    let places = std::env::split_paths(&known).filter(|place| place.is_absolute());
    let places = places.chain(own.parent().map(Path::to_owned));
    std::env::join_paths(places).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_program_is_looked_for_where_its_command_starts() {
        let env = BTreeMap::from([("PATH".to_owned(), "bin::/usr/bin:./x:".to_owned())]);
        let path = path(&env).expect("a PATH");
        let places: Vec<_> = std::env::split_paths(&path).collect();
        assert_eq!(places.len(), 2, "{path:?}");
        assert_eq!(places[0], Path::new("/usr/bin"));
    }

    #[test]
    fn each_note_of_a_keeper_is_read_and_what_is_none_is_passed_over() {
        let ran = format!(
            r#"{RAN}{{"command":"make","exit":0,"duration_ms":1,"output":"sha256:{}"}}"#,
            "0".repeat(64)
        );
        for (line, begin) in [
            ("3", "Turns(3)"),
            (r#"spent {"tokens":5}"#, "Spent(Spend { tokens: 5,"),
            (r#"read "a b.rs""#, r#"Read("a b.rs")"#),
            (&*ran, r#"Ran(CommandRun { command: "make","#),
            ("validated", "Validated"),
        ] {
            let read = note(line).map(|note| format!("{note:?}"));
            let read = read.expect(line);
            assert!(read.starts_with(begin), "{line}: {read}");
        }
        for line in ["", "-1", "read a.rs", "spent 5", "ran make", "validated 1"] {
            assert!(note(line).is_none(), "{line}");
        }
    }
}
