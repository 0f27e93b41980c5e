//! A repository on this machine, asked through `git`.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Output, Stdio};
use std::time::Duration;

use message_schema::id::CommitSha;

use crate::child::{self, Ended};

/// The time limit of a call of git unless a caller sets another one: [`Repository::within`].
const PATIENCE: Duration = Duration::from_secs(60);

/// A directory in a repository, or a bare repository.
#[derive(Clone, Debug)]
pub struct Repository {
    directory: PathBuf,
    patience: Duration,
}

/// Git could not run, or gave no usable answer.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// Git could not run.
    #[error("cannot run git in {}", .directory.display())]
    NotRun {
        /// The directory.
        directory: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The directory, a branch or a commit is not as required.
    #[error("{what}")]
    Unusable {
        /// The error: the actual and the required state.
        what: String,
    },
}

/// The merge base of two commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeBase {
    /// One commit.
    One(String),
    /// The commits have no common ancestor in this repository.
    None,
    /// Several commits; none is an ancestor of another.
    Several,
}

impl Repository {
    /// Names the repository that holds a directory. Does not run git yet.
    pub fn at(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            patience: PATIENCE,
        }
    }

    /// The same repository; a call of git that takes longer than this is ended and fails.
    pub fn within(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Returns the directory given to [`at`](Self::at).
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// True if the directory is in a repository that git reads.
    pub fn exists(&self) -> bool {
        self.look_for().is_ok_and(|is_there| is_there)
    }

    /// Looks for the repository that holds the directory. If git finds one and refuses to read it, such as another
    /// user's, the error has git's message.
    pub fn look_for(&self) -> Result<bool, GitError> {
        if !self.directory.is_dir() {
            return Ok(false);
        }
        let output = self.run(&["rev-parse", "--git-dir"], None)?;
        if output.status.success() {
            return Ok(true);
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        // If git finds none, it says so about this directory and its parents.
        if errors.contains(NO_REPOSITORY) {
            return Ok(false);
        }
        let first = errors.lines().next().unwrap_or("it gives no reason");
        Err(GitError::Unusable {
            what: format!(
                "git does not read the repository of {}: {}",
                self.directory.display(),
                first.trim_start_matches("fatal: ")
            ),
        })
    }

    /// Returns the full name of a commit; `None` if the repository has no such commit.
    pub fn resolve(&self, name: &str) -> Result<Option<String>, GitError> {
        if name.starts_with('-') {
            return Ok(None);
        }
        let peeled = format!("{name}^{{commit}}");
        let output = self.run(&["rev-parse", "--verify", "--quiet", &peeled], None)?;
        let full = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Ok(output.status.success().then_some(full))
    }

    /// Returns the full name of the commit at a branch: of this repository, or of the remote that the name begins with.
    /// Never takes a tag: git prefers tags to branches, and everybody who may push can name one like a branch. Any other
    /// name of a commit counts as for [`resolve`](Self::resolve).
    ///
    /// Fails if both have such a branch, or only a tag has the name.
    pub fn branch(&self, name: &str) -> Result<Option<String>, GitError> {
        let at = name.find(['^', '~', '@', ':']).unwrap_or(name.len());
        let (short, operators) = name.split_at(at);
        let places = ["refs/heads/", "refs/remotes/", "refs/tags/"];
        let [head, remote, tag] = places.map(|place| format!("{place}{short}"));
        let asked = ["for-each-ref", "--format=%(refname)", &head, &remote, &tag];
        let listed = self.run(&asked, None)?.stdout;
        let listed = String::from_utf8_lossy(&listed);
        // Git also lists what is below a name.
        let is_it = |name: &&str| [head.as_str(), &remote, &tag].contains(name);
        let found: Vec<&str> = listed.lines().filter(is_it).collect();
        let branches = found.iter().filter(|name| **name != tag);
        let branches: Vec<&&str> = branches.collect();
        let what = match (&branches[..], &found[..]) {
            ([branch], _) => return self.resolve(&format!("{branch}{operators}")),
            ([], []) => return self.resolve(name),
            ([], [tag, ..]) => format!("{name} is a tag and no branch; write {tag} if you mean it"),
            ([one, other, ..], _) => {
                format!("{name} is ambiguous: write {one} or {other}")
            }
        };
        Err(GitError::Unusable { what })
    }

    /// Returns the full name of a commit that may be abbreviated; `None` if the repository does not have it, or has
    /// several that begin so. A branch or tag of that name does not count.
    pub fn commit(&self, sha: &CommitSha) -> Result<Option<CommitSha>, GitError> {
        let named = sha.as_str().to_ascii_lowercase();
        let mut found = if sha.is_whole() {
            self.resolve(&named)?.into_iter().collect()
        } else {
            self.commits_beginning(&named)?
        };
        let one = found.pop().filter(|_| found.is_empty());
        let one = one.and_then(|one| CommitSha::new(one).ok());
        Ok(one.filter(|one| one.same_commit(sha)))
    }

    fn commits_beginning(&self, digits: &str) -> Result<Vec<String>, GitError> {
        let listed = self.run(&["rev-parse", &format!("--disambiguate={digits}")], None)?;
        let asked = ["cat-file", "--batch-check=%(objecttype) %(objectname)"];
        let kinds = self.run(&asked, Some(&listed.stdout))?.stdout;
        let kinds = String::from_utf8_lossy(&kinds);
        let commits = kinds
            .lines()
            .filter_map(|line| line.strip_prefix("commit "));
        Ok(commits.map(str::to_owned).collect())
    }

    /// Returns the merge base of two commits, given by their full names.
    pub fn merge_base(&self, one: &str, other: &str) -> Result<MergeBase, GitError> {
        let bases = self.run(&["merge-base", "--all", one, other], None)?;
        let bases = String::from_utf8_lossy(&bases.stdout).into_owned();
        Ok(match bases.lines().collect::<Vec<_>>()[..] {
            [one] => MergeBase::One(one.to_owned()),
            [] => MergeBase::None,
            [_, _, ..] => MergeBase::Several,
        })
    }

    /// Runs git in this repository, whatever repository the environment names: without hooks, a pager, a file system
    /// monitor, or a fetch of missing objects. `args` must switch off programs that the repository's config names for
    /// diffs.
    pub fn run(&self, args: &[&str], input: Option<&[u8]>) -> Result<Output, GitError> {
        self.run_with(args, input, &[])
    }

    /// Like [`run`](Self::run), with settings that override those of all files. They go through the environment, where
    /// a name may hold any character.
    pub(crate) fn run_with(
        &self,
        args: &[&str],
        input: Option<&[u8]>,
        settings: &[(String, String)],
    ) -> Result<Output, GitError> {
        let mut git = self.command(args);
        if !settings.is_empty() {
            // Keep the settings that the caller's environment already has.
            let known = std::env::var("GIT_CONFIG_COUNT");
            let known = known.map_or(0, |count| count.parse().unwrap_or(0));
            for (at, (key, value)) in (known..).zip(settings) {
                git.env(format!("GIT_CONFIG_KEY_{at}"), key)
                    .env(format!("GIT_CONFIG_VALUE_{at}"), value);
            }
            let count: usize = known + settings.len();
            git.env("GIT_CONFIG_COUNT", count.to_string());
        }
        self.finish(git, input)
    }

    /// The call of git that [`run`](Self::run) makes, for a caller that adds variables before it is
    /// [finished](Self::finish).
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut git = Command::new("git");
        git.arg("-C")
            .arg(&self.directory)
            .args(QUIET)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for name in OF_OTHERS {
            git.env_remove(name);
        }
        git.envs(ENVIRONMENT);
        git
    }

    /// Runs a call of git and waits until it ends.
    pub(crate) fn finish(&self, git: Command, input: Option<&[u8]>) -> Result<Output, GitError> {
        let everything = |mut printed: ChildStdout| {
            let mut all = Vec::new();
            printed.read_to_end(&mut all).map(|_| all)
        };
        let (stdout, ended) = self.read(git, input, everything)?;
        let (status, stderr) = (ended.status, ended.stderr);
        Ok(Output {
            status,
            stdout,
            stderr,
        })
    }

    /// Runs a call of git whose output `read` reads, all of it or the part that it needs.
    pub(crate) fn read<T: Send>(
        &self,
        git: Command,
        input: Option<&[u8]>,
        read: impl FnOnce(ChildStdout) -> io::Result<T> + Send,
    ) -> Result<(T, Ended), GitError> {
        let done = child::run(git, input.unwrap_or_default(), self.patience, read);
        done.map_err(|source| self.not_run(source))
    }

    /// The error of a call that could not run, or that did not end in time.
    pub(crate) fn not_run(&self, source: io::Error) -> GitError {
        let directory = self.directory.clone();
        if source.kind() == io::ErrorKind::TimedOut {
            let what = format!("git in {}: {source}", directory.display());
            return GitError::Unusable { what };
        }
        GitError::NotRun { directory, source }
    }
}

/// Arguments that keep git from fetching, from starting other programs, and from reading parents of a commit anywhere but
/// in the commit: a commit graph may name others.
const QUIET: [&str; 14] = [
    "--no-pager",
    "--no-replace-objects",
    "--literal-pathspecs",
    "--no-optional-locks",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "protocol.allow=never",
    "-c",
    "core.commitGraph=false",
    "-c",
    "advice.graftFileDeprecated=false",
];

/// The start of git's message outside of all repositories.
const NO_REPOSITORY: &str = "not a git repository (or any ";

const ENVIRONMENT: [(&str, &str); 4] = [
    ("LC_ALL", "C"),
    // A repository's own `info/grafts` would give a commit other parents.
    ("GIT_GRAFT_FILE", "/dev/null"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
];

/// Variables that would make git use another repository, or change the history or the diff that it reads in this one.
const OF_OTHERS: [&str; 9] = [
    "GIT_DIR",
    "GIT_COMMON_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_NAMESPACE",
    "GIT_SHALLOW_FILE",
    "GIT_EXTERNAL_DIFF",
    "GIT_DIFF_OPTS",
];
