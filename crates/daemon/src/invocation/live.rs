//! Follows a live run: its output, its remaining time and its end. The keeper ends the agent; this module tells it
//! when, and kills a keeper that does not exit.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, ChildStdin};
use std::time::{Duration, Instant};

use message_schema::id::RepoPath;
use message_schema::spend::Spend;
use review::{Closer, UsedUp};
use runner::folder::{Folder, Launch};
use runner::launch::KeeperNote;
use runner::tree;
use runner::validation::CommandRun;
use workspace::clock::Moment;

use super::{Run, is_open};
use crate::mailroom::Mailroom;

/// The time for which an agent may run after its answer was accepted, in milliseconds.
const LINGER_MS: u64 = 10_000;

/// The time a keeper has to end its agent, in milliseconds; longer than the keeper gives the agent.
const KEEPER_MS: u64 = 8_000;

/// A run whose keeper is our child.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) run: Run,
    pub(super) folder: Folder,
    /// The turns that the ledger has.
    pub(super) counted: u16,
    /// Its spend so far.
    pub(super) spend: Spend,
    /// Files of the repository that the agent was seen to read and that the ledger does not have yet.
    pub(super) reads: BTreeSet<RepoPath>,
    /// Validation commands that ran and that the ledger does not have yet.
    pub(super) ran: Vec<CommandRun>,
    /// True while the keeper holds the agent back until the ledger has the validation commands.
    pub(super) is_validated: bool,
    keeper: Child,
    /// Open for as long as the agent may go on.
    control: Option<ChildStdin>,
    turns: u16,
    is_silent: bool,
    is_warned: bool,
    over_since: Option<u64>,
    told_at: Option<u64>,
}

impl Live {
    /// `is_warned` is true if an earlier start already logged the warning about its time.
    pub(super) fn new(run: Run, folder: Folder, mut keeper: Child, is_warned: bool) -> Self {
        let control = keeper.stdin.take();
        Self {
            run,
            folder,
            counted: 0,
            spend: Spend::default(),
            reads: BTreeSet::new(),
            ran: Vec::new(),
            is_validated: false,
            keeper,
            control,
            turns: 0,
            is_silent: false,
            is_warned,
            over_since: None,
            told_at: None,
        }
    }

    pub(super) fn note(&mut self, note: &KeeperNote) {
        match note {
            KeeperNote::Turns(turns) => self.turns = self.turns.max(*turns),
            KeeperNote::Spent(spend) => self.spend = self.spend.most(*spend),
            KeeperNote::Read(file) => self.reads.extend(self.in_repository(file)),
            KeeperNote::Ran(run) => self.ran.push(run.clone()),
            KeeperNote::Validated => self.is_validated = true,
            KeeperNote::Silent => self.is_silent = true,
        }
    }

    /// The file's path in the repository if it is in the tree of the run or, without a tree, below the command's
    /// working directory. With a tree, files elsewhere are not under review.
    fn in_repository(&self, file: &str) -> Option<RepoPath> {
        let Launch {
            workdir, checkout, ..
        } = &self.run.launch;
        let place = checkout.as_ref().map_or(workdir, |own| &own.tree);
        let whole = workdir.join(file);
        let below = [place.canonicalize().ok(), Some(place.clone())]
            .into_iter()
            .flatten()
            .find_map(|place| whole.strip_prefix(place).ok().map(Path::to_owned))?;
        RepoPath::new(below.to_str()?.trim_start_matches("./")).ok()
    }

    /// Ends the run because a budget of the day is used up.
    pub(super) fn end_for(&mut self, used_up: &UsedUp, now: Moment) {
        if self.told_at.is_none() {
            tracing::warn!(review = %self.run.review, run = self.run.id, why = %used_up, "ending a command");
            self.over_since.get_or_insert(now.mono);
            self.tell_to_end(now.mono);
        }
    }

    /// Lets the keeper start the agent, once.
    pub(super) fn let_start(&mut self) {
        self.is_validated = false;
        if let Some(control) = &mut self.control {
            // A keeper that has exited starts nothing.
            let _ = control.write_all(b"go\n");
        }
    }

    /// The turns that the keeper reported and the ledger does not have yet.
    pub(super) fn uncounted(&self) -> u16 {
        self.turns.saturating_sub(self.counted)
    }

    /// True if the run has only to end.
    pub(super) fn is_being_ended(&self) -> bool {
        self.over_since.is_some() || self.is_silent
    }

    /// Checks whether the request is still open. Ends the run at once if it is over, or after a grace period if the
    /// reviewer answered.
    pub(super) fn check_request(&mut self, mailroom: &Mailroom, now: Moment) {
        if is_open(mailroom, &self.run) {
            self.warn(mailroom, now);
            return;
        }
        let since = *self.over_since.get_or_insert(now.mono);
        let review = mailroom.review(&self.run.review);
        let is_answered = review.is_some_and(|review| {
            review.phase.invocation().is_none() && review.closed_by == Some(Closer::Reviewer)
        });
        if self.told_at.is_none() && (!is_answered || now.mono >= since + LINGER_MS) {
            tracing::info!(review = %self.run.review, run = self.run.id, "its request is over; ending the command");
            self.tell_to_end(now.mono);
        }
    }

    /// The monotonic time at which to log that the run's time is nearly over; none once that is logged.
    pub(super) fn warns_at(&self, mailroom: &Mailroom, now: Moment) -> Option<u64> {
        let warn_ms = i64::try_from(mailroom.config().runner.warn_s)
            .ok()?
            .saturating_mul(1000);
        if self.is_warned || self.over_since.is_some() || warn_ms <= 0 {
            return None;
        }
        let (at, _) = mailroom.review(&self.run.review)?.deadline()?;
        let left_ms = (at - now.utc).num_milliseconds().saturating_sub(warn_ms);
        Some(now.mono.saturating_add(u64::try_from(left_ms).unwrap_or(0)))
    }

    fn warn(&mut self, mailroom: &Mailroom, now: Moment) {
        if self.warns_at(mailroom, now).is_none_or(|at| at > now.mono) {
            return;
        }
        self.is_warned = true;
        let deadline = mailroom
            .review(&self.run.review)
            .and_then(review::Review::deadline);
        let left_s = deadline.map_or(0, |(at, _)| (at - now.utc).num_seconds());
        tracing::warn!(review = %self.run.review, run = self.run.id, left_s, "the time of a command is nearly over");
    }

    fn tell_to_end(&mut self, mono: u64) {
        self.control = None;
        self.told_at.get_or_insert(mono);
    }

    /// True if the keeper has exited. Kills a keeper that takes too long, and with it every process it started.
    pub(super) fn is_gone(&mut self, now: Moment) -> bool {
        if self.told_at.is_some_and(|at| now.mono >= at + KEEPER_MS) {
            tracing::warn!(
                run = self.run.id,
                "the command's keeper did not exit in time; killing it"
            );
            let _ = self.keeper.kill();
        }
        // If we cannot wait for a process, it is no longer our child.
        (self.is_silent || self.told_at.is_some()) && !matches!(self.keeper.try_wait(), Ok(None))
    }

    /// Removes the control group of a run that has no process left; a killed keeper could not.
    pub(super) fn remove_group(&self) {
        if let Some(group) = self.folder.processes().group {
            group.remove();
        }
    }
}

/// Ends all runs and waits until they have ended.
pub(super) fn end_all(live: &mut Vec<Live>) {
    if live.is_empty() {
        return;
    }
    live.iter_mut().for_each(|live| live.tell_to_end(0));
    let start = Instant::now();
    while live
        .iter_mut()
        .any(|live| matches!(live.keeper.try_wait(), Ok(None)))
    {
        if start.elapsed() >= Duration::from_millis(KEEPER_MS) {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    for live in live.iter_mut() {
        // Most keepers have exited by now.
        let _ = live.keeper.kill();
        let _ = live.keeper.wait();
    }
    tree::end_strays(&[]);
    live.iter().for_each(Live::remove_group);
    live.clear();
}

/// Ends the processes that agents left behind when their keeper was killed.
pub(super) fn end_strays(live: &[Live]) {
    let kept: Vec<i32> = live
        .iter()
        .map(|live| live.keeper.id().cast_signed())
        .collect();
    tree::end_strays(&kept);
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::Path;
    use std::process::{Command, Stdio};
    use std::time::UNIX_EPOCH;

    use chrono::{DateTime, TimeDelta};
    use message_schema::id::{AgentName, DiffDigest, MessageId, PrNumber};
    use review::{Act, Event, PersonsDecision, ReviewKey, Which};
    use runner::stream::OutputFormat;
    use runner::validation::CommandEnd;
    use tempfile::TempDir;

    use super::super::report::{record_reads, record_validation_runs};
    use super::super::{AgentCommands, orphans};
    use super::*;

    /// A review with an open request, and a command that runs until the daemon ends it.
    struct Started {
        root: TempDir,
        mailroom: Mailroom,
        live: Live,
    }

    fn at(mono: u64) -> Moment {
        let begin = DateTime::from_timestamp(1_771_000_000, 0).expect("an instant");
        let later = TimeDelta::milliseconds(mono.cast_signed());
        let utc = begin + later;
        Moment { mono, utc }
    }

    fn post(root: &Path, from: &str, to: &str, kind: &str, body: &str) {
        let text = format!(
            "id: \"{kind}\"\nfrom: {from}\nto: {to}\ntype: {kind}\npriority: P1\n\
             created_at_utc: \"2026-02-13T10:00:00Z\"\nrelated_pr: \"86\"\nsubject: \"{kind}\"\nbody: |\n  {body}\n"
        );
        let outbox = root.join(format!("agents/{from}/outbox/{kind}.yaml"));
        std::fs::write(&outbox, text).expect("a message");
        // Its modification time is older than anything the test does, so it counts as finished.
        let file = File::options()
            .write(true)
            .open(&outbox)
            .expect("the message");
        file.set_modified(UNIX_EPOCH)
            .expect("a file's time can be set");
    }

    impl Started {
        fn new() -> Self {
            Self::with("")
        }

        /// The same with these lines in the request.
        fn with(more: &str) -> Self {
            let root = tempfile::tempdir().expect("a directory");
            let agents = ["claude", "codex"].map(|name| AgentName::new(name).expect("a name"));
            workspace::directory::init(root.path(), &agents).expect("a workspace");
            let body = format!("pr: 86\n  branch: x\n  diff_summary: y{more}");
            post(root.path(), "claude", "codex", "review_request", &body);
            let mailroom = Mailroom::open(root.path()).expect("a start").0;
            let live = live(root.path());
            let mut started = Self {
                root,
                mailroom,
                live,
            };
            started.pass(10_000);
            started
        }

        /// Judges the files in the outboxes.
        fn pass(&mut self, mono: u64) {
            self.mailroom.sweep().expect("a sweep");
            let pass = self.mailroom.pass(at(mono)).expect("a pass");
            assert_eq!(pass.accepted, 1);
        }

        /// True if the daemon has told the keeper by this instant to end the command.
        fn is_ended(&mut self, mono: u64) -> bool {
            self.live.check_request(&self.mailroom, at(mono));
            self.live.told_at.is_some()
        }
    }

    fn live(root: &Path) -> Live {
        kept_by(root, &mut Command::new("cat"))
    }

    fn kept_by(root: &Path, keeper: &mut Command) -> Live {
        let keeper = keeper.stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
        let pr = PrNumber::new("86").expect("a number");
        let [author, reviewer] =
            ["claude", "codex"].map(|name| AgentName::new(name).expect("a name"));
        let run = Run {
            schema_version: 1,
            id: "run-1".to_owned(),
            review: ReviewKey::new(None, &pr, author, reviewer),
            reassigned_to: None,
            request: MessageId::new("review_request").expect("an id"),
            start: 1,
            launch: Launch {
                command: Vec::new(),
                workdir: root.to_owned(),
                checkout: None,
                validation: None,
                sandbox: None,
                reads_prompt: false,
                output: OutputFormat::Text,
                seconds_max: 600,
            },
        };
        Live::new(run, Folder::at(root), keeper.expect("a process"), false)
    }

    impl Drop for Started {
        fn drop(&mut self) {
            // The command ends when its standard input is closed.
            self.live.control = None;
            let _ = self.live.keeper.wait();
        }
    }

    /// The note that a validation command has passed.
    fn ran(command: &str) -> KeeperNote {
        let output = DiffDigest::new(format!("sha256:{}", "0".repeat(64))).expect("a digest");
        let (exit, duration_ms) = (Some(0), 5);
        KeeperNote::Ran(CommandRun {
            command: command.to_owned(),
            end: CommandEnd {
                exit,
                duration_ms,
                output,
            },
        })
    }

    #[test]
    fn a_command_whose_request_was_called_off_is_ended_at_once() {
        let mut started = Started::new();
        assert!(!started.is_ended(20_000), "its request is open");
        let cancelled = Event::Person(PersonsDecision {
            which: Which::of(&started.live.run.review),
            by: "ann".to_owned(),
            reason: "the branch is gone".to_owned(),
            act: Act::Cancel,
        });
        let is_heard = started.mailroom.record_run(&cancelled, at(30_000));
        assert!(is_heard.expect("a commit"));
        assert!(started.is_ended(30_000));
        assert_eq!(started.live.keeper.wait().expect("it ends").code(), Some(0));
        assert!(started.live.is_gone(at(30_000)));
    }

    #[test]
    fn what_a_keeper_reports_is_recorded_once() {
        let mut started =
            Started::with("\n  changed_files: [src/a.rs, src/b.rs]\n  validation_commands: [make]");
        let Started { mailroom, live, .. } = &mut started;
        for (note, reads, runs) in [
            (KeeperNote::Read("src/a.rs".to_owned()), true, 0),
            (KeeperNote::Read("src/a.rs".to_owned()), false, 0),
            (KeeperNote::Read("src/other.rs".to_owned()), false, 0),
            (ran("make"), false, 1),
            (KeeperNote::Read("src/b.rs".to_owned()), true, 0),
        ] {
            live.note(&note);
            let told = (
                record_reads(mailroom, live, at(20_000)).expect("a commit"),
                record_validation_runs(mailroom, live, at(20_000)).expect("a commit"),
            );
            assert_eq!(told, (reads, runs), "{note:?}");
        }
        let review = mailroom.review(&live.run.review).expect("a review");
        let observed = review.reading.observed.iter().map(ToString::to_string);
        assert_eq!(observed.collect::<Vec<_>>(), ["src/a.rs", "src/b.rs"]);
        assert_eq!(review.reading.runs.len(), 1);
    }

    #[test]
    fn what_runs_report_is_counted_once_and_for_the_run_that_did_it() {
        let mut started =
            Started::with("\n  changed_files: [src/a.rs]\n  validation_commands: [make]");
        let mut commands = AgentCommands::default();
        commands.live.push(live(started.root.path()));
        let review = started.live.run.review.clone();
        let mut counted = |notes: &[(&str, KeeperNote)]| {
            let notes = notes.iter();
            let notes = notes.map(|(id, note)| ((*id).to_owned(), note.clone()));
            commands.notes.extend(notes);
            let mailroom = &mut started.mailroom;
            let told = commands
                .count_turns(mailroom, at(20_000))
                .expect("a commit");
            let review = mailroom.review(&review).expect("a review");
            let open = review.phase.invocation().expect("an open request");
            let reading = &review.reading;
            let done = [reading.observed.len(), reading.runs.len()];
            (told, open.turns_taken, done)
        };
        let turns = KeeperNote::Turns;
        let read = KeeperNote::Read("src/a.rs".to_owned());
        for (notes, expected) in [
            (
                vec![("run-1", turns(3)), ("run-2", turns(9))],
                (1, 3, [0, 0]),
            ),
            (vec![], (0, 3, [0, 0])),
            (
                vec![("run-2", read.clone()), ("run-2", ran("make"))],
                (0, 3, [0, 0]),
            ),
            (
                vec![("run-1", turns(2)), ("run-1", turns(5))],
                (1, 5, [0, 0]),
            ),
            (
                vec![("run-1", read.clone()), ("run-1", turns(6))],
                (2, 6, [1, 0]),
            ),
            (
                vec![("run-1", read), ("run-1", ran("make"))],
                (1, 6, [1, 1]),
            ),
        ] {
            assert_eq!(counted(&notes), expected, "{notes:?}");
        }
        commands.stop();
        assert!(commands.live.is_empty());
    }

    #[test]
    fn a_keeper_that_is_told_to_end_is_waited_for() {
        let root = tempfile::tempdir().expect("a directory");
        let ended = root.path().join("ended");
        let mut keeper = Command::new("sh");
        keeper
            .args(["-c", "cat; cat < /dev/null; echo yes > \"$0\""])
            .arg(&ended);
        let mut all = vec![kept_by(root.path(), &mut keeper)];
        end_all(&mut all);
        assert!(all.is_empty());
        assert_eq!(
            std::fs::read_to_string(ended).expect("its last word"),
            "yes\n"
        );
    }

    #[test]
    fn of_an_earlier_daemon_s_runs_only_the_last_start_of_an_open_request_is_settled() {
        let started = Started::new();
        let root = started.root.path();
        let mut run = started.live.run.clone();
        let folder = Folder::make(root, &run.id).expect("a folder");
        let mut settled = |start| {
            run.start = start;
            folder.tell_run(&run).expect("a run");
            orphans::see_to(&started.mailroom, at(20_000)).len()
        };
        // The ledger has no start of this request, and the run spent nothing that is not recorded.
        assert_eq!([settled(1), settled(0)], [0, 1]);
    }

    #[test]
    fn a_command_that_has_answered_may_go_on_for_ten_seconds() {
        let mut started = Started::new();
        let root = started.root.path().to_owned();
        let body = "quality_gate_result: pass\n  merge_ready: true";
        post(&root, "codex", "claude", "review_lgtm", body);
        started.pass(30_000);
        assert!(!started.is_ended(30_000) && !started.is_ended(39_999));
        assert!(started.is_ended(40_000));
    }
}
