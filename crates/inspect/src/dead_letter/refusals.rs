//! The refusals that somebody still has to act on: not corrected, the file still in `dead_letter/`, the review not over.
//!
//! `status`, `why`, `problems` and `dead-letter list` all take their open refusals from here.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use message_schema::Report;
use message_schema::id::{AgentName, PrNumber};
use message_schema::limit::MESSAGE_BYTES_MAX;
use message_schema::line::is_shown_as_is;
use review::{Phase, Review, ReviewKey, State};
use spool::FileName;
use workspace::index::LedgerIndex;
use workspace::refusals::Refusal;
use workspace::shell::quoted;

use crate::status::pending::ClaimedReview;

/// The number of refused files that a command reads for the pull request they name, the newest first, and their bytes in
/// all. The review that the daemon found is known for all, and their files are not read.
const LOOKED_INTO_MAX: usize = 100;
const BYTES_MAX: u64 = 4 * BYTES_OF_AGENT_MAX;

/// The bytes of one agent's files, so that large ones do not keep those of all others unread. The newest always fits.
const BYTES_OF_AGENT_MAX: u64 = MESSAGE_BYTES_MAX;

/// A refused message that its sender has to correct or to remove.
#[derive(Clone, Debug)]
pub struct OpenRefusal {
    /// The refusal.
    pub refusal: Refusal,
    /// The pull request it names, if the daemon found no review and its file was looked into.
    pub pr: Option<PrNumber>,
    /// Its report in `dead_letter/`.
    report: Option<PathBuf>,
}

/// Lists the open refusals, oldest first. Only the files that the refusals name are looked for in `dead_letter/`: its
/// owner may put any number of others there.
pub fn open(root: &Path, index: &LedgerIndex) -> Vec<OpenRefusal> {
    let mut refusals: Vec<&Refusal> = index
        .refusals
        .iter()
        .map(|(_, refusal)| refusal)
        .filter(|refusal| refusal.corrected.is_none())
        .collect();
    refusals.sort_unstable_by_key(|refusal| refusal.seq);
    let mut budget = ReadBudget::default();
    let mut open: Vec<OpenRefusal> = refusals
        .into_iter()
        .rev()
        .filter_map(|refusal| {
            let directory = super::directory(root, &refusal.agent);
            let path = directory.join(&refusal.file);
            let bytes = path.symlink_metadata().ok()?.len();
            let is_read = refusal.review.is_none() && budget.spend(&refusal.agent, bytes);
            let pr = is_read.then(|| ClaimedReview::of(&path).pr);
            Some(OpenRefusal {
                refusal: refusal.clone(),
                pr: pr.flatten(),
                report: refusal
                    .report_file
                    .as_ref()
                    .map(|file| directory.join(file)),
            })
        })
        .filter(|open| !open.is_over(index.state()))
        .collect();
    open.reverse();
    open
}

/// The files and bytes that were spent on looking into refused files.
#[derive(Default)]
struct ReadBudget<'a> {
    files: usize,
    bytes: u64,
    bytes_of: HashMap<&'a AgentName, u64>,
}

impl<'a> ReadBudget<'a> {
    /// Spends a file of this size; false, and nothing is spent, if it is too large for what is left.
    fn spend(&mut self, agent: &'a AgentName, bytes: u64) -> bool {
        let of_agent = self.bytes_of.entry(agent).or_default();
        let fits = self.files < LOOKED_INTO_MAX
            && self.bytes.saturating_add(bytes) <= BYTES_MAX
            && of_agent.saturating_add(bytes) <= BYTES_OF_AGENT_MAX;
        if fits {
            self.files += 1;
            self.bytes += bytes;
            *of_agent += bytes;
        }
        fits
    }
}

impl OpenRefusal {
    /// The agent that sent it.
    pub fn agent(&self) -> &AgentName {
        &self.refusal.agent
    }

    /// The name it has in `dead_letter/`; its `Display` is the one for terminals.
    pub fn file(&self) -> String {
        raw(&self.refusal.file)
    }

    /// Reads the fix that its report names.
    pub fn fix(&self) -> Option<String> {
        let bytes = super::bytes(self.report.as_ref()?).ok()??;
        let violations = Report::from_yaml(&bytes).ok()?.violations;
        violations.into_iter().find_map(|violation| violation.fix)
    }

    /// Returns the words of the command that shows it. Does not repeat a name that could steer a terminal, has invisible
    /// characters or looks like an option.
    pub fn show(&self) -> String {
        let file = self.file();
        if is_shown_as_is(&file) && !file.starts_with('-') {
            return format!("dead-letter show {}", quoted(file.as_ref()));
        }
        "dead-letter list".to_owned()
    }

    /// True if a correction is useless by now: its review was closed, or was approved or escalated since.
    fn is_over(&self, state: &State) -> bool {
        let of_pr = self.named_pr();
        let reviews = || {
            let of_pr = of_pr.iter().flat_map(|pr| state.reviews_of(pr));
            of_pr.filter(|(key, review)| self.is_about(key, review))
        };
        let has_ended = |review: &Review| match review.phase {
            Phase::Closed(_) => true,
            Phase::Approved(_) | Phase::Escalated(_) => review.since > self.refusal.at,
            Phase::Awaiting { .. }
            | Phase::Reviewing(_)
            | Phase::Fixing { .. }
            | Phase::Addressed { .. } => false,
        };
        reviews().next().is_some() && reviews().all(|(_, review)| has_ended(review))
    }

    /// The pull request of the review it belongs to, which is written like `#86 claude -> codex`, else the one it names.
    fn named_pr(&self) -> Option<PrNumber> {
        let number = |review: &str| review.split_once('#')?.1.split(' ').next()?.parse().ok();
        let of_review = self.refusal.review.as_deref().and_then(number);
        of_review.or_else(|| self.pr.clone())
    }

    /// True if it belongs to a review: the daemon found so, or it names the pull request and comes from the author or
    /// from a reviewer, the one that the review was opened with or the one that took over.
    pub fn is_about(&self, key: &ReviewKey, review: &Review) -> bool {
        match (&self.refusal.review, &self.pr) {
            // The number first: it is cheaper to look for than the whole is to write.
            (Some(name), _) => name.contains(key.pr.as_str()) && *name == key.to_string(),
            (None, Some(pr)) => {
                let parties = [&key.author, &key.reviewer, review.reviewer(key)];
                pr.same_pr(&key.pr) && parties.contains(&self.agent())
            }
            (None, None) => false,
        }
    }
}

/// The name on the disk; its `Display` is the one for terminals.
pub(super) fn raw(name: &FileName) -> String {
    name.as_ref().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, TimeDelta};
    use message_schema::envelope::Priority;
    use message_schema::limit::Rounds;
    use serde_json::json;

    use super::*;

    fn name(name: &str) -> AgentName {
        name.parse().expect("a name")
    }

    fn key() -> ReviewKey {
        let pr: PrNumber = "86".parse().expect("a number");
        ReviewKey::new(None, &pr, name("claude"), name("codex"))
    }

    fn review(phase: Phase, since_s: i64) -> Review {
        Review {
            generation: 1,
            rounds: Rounds::default(),
            granted: 0,
            first_round: 1,
            round: 1,
            phase,
            since: DateTime::UNIX_EPOCH + TimeDelta::seconds(since_s),
            closed_by: None,
            threads: std::collections::BTreeMap::new(),
            commit: None,
            priority: Priority::P1,
            asked: 1,
            given_back: Vec::new(),
            fixes: None,
            reassigned_to: Some(name("gemini")),
            failed: None,
            spent: message_schema::spend::Spend::default(),
            past_requests: Vec::new(),
            reading: review::ReadingState::default(),
        }
    }

    fn fixing() -> Phase {
        let due = DateTime::UNIX_EPOCH + TimeDelta::hours(1);
        Phase::Fixing { due }
    }

    /// A refusal a minute after the epoch, by this agent, of the file and the review of that name.
    fn refusal(seq: u64, agent: &str, file: &str, review: Option<&str>) -> Refusal {
        let refusal = json!({
            "seq": seq, "at": "1970-01-01T00:01:00Z", "agent": agent, "file": file, "original": file,
            "code": "no_open_request", "review": review,
        });
        serde_json::from_value(refusal).expect("a refusal")
    }

    fn of_review(review: Option<&str>, pr: Option<&str>) -> OpenRefusal {
        OpenRefusal {
            refusal: refusal(1, "codex", "m-1.yaml", review),
            pr: pr.map(|pr| pr.parse().expect("a number")),
            report: None,
        }
    }

    #[test]
    fn a_refusal_of_either_reviewer_belongs_to_a_reassigned_review() {
        let (key, review) = (key(), review(fixing(), 0));
        let is_about = |agent: &str| {
            let open = OpenRefusal {
                refusal: refusal(1, agent, "m-1.yaml", None),
                ..of_review(None, Some("086"))
            };
            open.is_about(&key, &review)
        };
        let parties = ["claude", "codex", "gemini", "qwen"].map(is_about);
        assert_eq!(parties, [true, true, true, false]);
    }

    #[test]
    fn the_review_that_the_daemon_found_is_known_by_its_whole_name() {
        let is_about = |name: &str, pr| {
            let open = of_review(Some(name), pr);
            open.is_about(&key(), &review(fixing(), 0))
        };
        assert!(is_about("#86 claude -> codex", None));
        assert!(!is_about("#860 claude -> codex", Some("86")));
        assert!(!is_about("#86 claude -> gemini", Some("86")));
    }

    #[test]
    fn a_refusal_is_over_once_its_review_is_closed_or_has_ended_since() {
        let approved = || {
            let approval = json!({"merge_ready": true, "at": "1970-01-01T00:00:00Z"});
            Phase::Approved(serde_json::from_value(approval).expect("an approval"))
        };
        let escalated = || Phase::Escalated(review::EscalationReason::AuthorTimeout);
        let closed = || Phase::Closed(review::CloseReason::Merged);
        for (phase, since_s, expected) in [
            (fixing(), 99, false),
            (closed(), 0, true),
            (approved(), 59, false),
            (approved(), 60, false),
            (approved(), 61, true),
            (escalated(), 60, false),
            (escalated(), 61, true),
        ] {
            let (key, review) = (key(), review(phase, since_s));
            let state = State::of([(&key, &review)], [], []);
            let is_over = |name: Option<&str>, pr| of_review(name, pr).is_over(&state);
            let phase = review.phase.word();
            assert_eq!(is_over(None, Some("86")), expected, "{phase} {since_s}");
            let found = is_over(Some("#86 claude -> codex"), None);
            assert_eq!(found, expected, "{phase} {since_s}");
            assert!(!is_over(None, Some("87")), "{phase} {since_s}");
            assert!(!is_over(None, None), "{phase} {since_s}");
        }
    }

    #[test]
    fn a_name_that_is_no_argument_is_not_repeated_in_a_command() {
        let show = |file: &str| {
            let refusal = refusal(1, "codex", file, None);
            let open = OpenRefusal {
                refusal,
                ..of_review(None, None)
            };
            open.show()
        };
        assert_eq!(show("a b.yaml"), "dead-letter show 'a b.yaml'");
        assert_eq!(show("-a.yaml"), "dead-letter list");
        assert_eq!(show("a\nb.yaml"), "dead-letter list");
        assert_eq!(show("a\u{200b}b.yaml"), "dead-letter list");
    }

    /// Lists the refusals, oldest first, of these files: the agent, the size of the message in bytes, and its review, if
    /// the daemon found it. All name pull request 86. Returns the number of each that was looked into.
    fn looked_into(files: &[(&str, usize, Option<&str>)]) -> Vec<u64> {
        const MESSAGE: &str = "id: q-1\nfrom: a\nto: b\ntype: question\npriority: P1\n\
            created_at_utc: \"2026-11-23T08:01:28Z\"\nrelated_pr: \"86\"\nsubject: Which\nbody: |\n  Which?\n";
        let root = tempfile::tempdir().expect("a directory");
        let mut index = LedgerIndex::default();
        for (seq, (agent, bytes, review)) in (1..).zip(files) {
            let directory = super::super::directory(root.path(), &name(agent));
            std::fs::create_dir_all(&directory).expect("a directory");
            let file = format!("{seq}.yaml");
            let padding = "\n".repeat(bytes.saturating_sub(MESSAGE.len()));
            std::fs::write(directory.join(&file), format!("{MESSAGE}{padding}")).expect("a file");
            let refusal = refusal(seq, agent, &file, *review);
            index.refusals.remember((*agent).to_owned(), refusal);
        }
        let open = open(root.path(), &index);
        let seqs = open.iter().map(|it| it.refusal.seq);
        assert!(seqs.eq((1..).take(files.len())), "all are listed");
        for pr in open.iter().filter_map(|it| it.pr.as_ref()) {
            assert_eq!(pr.as_str(), "86");
        }
        let known = open.iter().filter(|it| it.pr.is_some());
        known.map(|it| it.refusal.seq).collect()
    }

    #[test]
    fn the_newest_hundred_are_read_for_the_pull_request_that_they_name() {
        let files: Vec<_> = (0..102)
            .map(|n| (["claude", "codex", "gemini", "pi"][n % 4], 0, None))
            .collect();
        assert_eq!(looked_into(&files), (3..=102).collect::<Vec<_>>());
    }

    #[test]
    fn large_files_are_read_up_to_a_quarter_of_a_mib_of_each_agent_and_a_mib_in_all() {
        let largest = usize::try_from(MESSAGE_BYTES_MAX).expect("a quarter of a MiB");
        // A file that does not fit stays unread; the reader still reads smaller files, and those of other agents.
        let files = [
            ("codex", 0, None),
            ("claude", 300, None),
            ("claude", largest / 4, None),
            ("claude", largest / 2, None),
            ("claude", largest / 2, None),
        ];
        assert_eq!(looked_into(&files), [1, 4, 5]);
        let files = [
            ("claude", 300, None),
            ("claude", largest / 2, None),
            ("claude", largest / 2 + 1, None),
        ];
        assert_eq!(looked_into(&files), [1, 3]);
        let agents = ["claude", "codex", "gemini", "pi", "qwen"];
        let files = agents.map(|agent| (agent, largest, None));
        assert_eq!(looked_into(&files), [2, 3, 4, 5]);
        let files: Vec<_> = (0..32).map(|_| ("claude", 26_000, None)).collect();
        assert_eq!(looked_into(&files), (23..=32).collect::<Vec<_>>());
    }

    #[test]
    fn a_file_whose_review_the_daemon_found_is_not_read() {
        let largest = usize::try_from(MESSAGE_BYTES_MAX).expect("a quarter of a MiB");
        let files = [
            ("claude", largest, None),
            ("claude", largest, Some("#87 claude -> codex")),
        ];
        assert_eq!(looked_into(&files), [1]);
    }
}
