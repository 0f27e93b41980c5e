//! `settled gate check`: tells CI if the approval holds for this commit.

use std::path::PathBuf;

use clap::Subcommand;
use inspect::verdict::{
    ApprovalQuestion, ApprovalVerdict, CheckedReview, EvidenceSummary, NoAnswer, Patches, Reason,
};
use message_schema::id::{AgentName, CommitSha, PrNumber, Repo};
use review::State;
use serde::Serialize;
use workspace::config::Config;
use workspace::index::LedgerIndex;

use super::answer::CommandOutput;
use super::context::{Context, quoted};
use super::failure::Failure;
use crate::exit::Exit;

/// Checks approvals.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled gate check --pr 86 --head 9b2f41c07de1a3b85c6f2e94d1a07b3c5e8f6a21")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check that a pull request is approved at exactly this commit: exit code 0 if so, 8 if not
    #[command(after_help = "Examples:
  settled gate check --pr 86 --head 9b2f41c07de1a3b85c6f2e94d1a07b3c5e8f6a21
  settled gate check --pr 86 --head \"$HEAD\" --reviewer codex --reviewer gemini
  settled gate check --pr 86 --head \"$HEAD\" --repo-dir . --base origin/main
      an approval from before a rebase holds if the patch is the same")]
    Check(Check),
}

#[derive(Debug, clap::Args)]
struct Check {
    /// The number of the pull request
    #[arg(long, value_name = "PR")]
    pr: PrNumber,
    /// The repository, if the number alone is ambiguous
    #[arg(long, value_name = "OWNER/NAME")]
    repo: Option<Repo>,
    /// A reviewer that must approve; repeatable [default: every reviewer of the pull request]
    #[arg(long = "reviewer", value_name = "AGENT")]
    reviewers: Vec<AgentName>,
    #[command(flatten)]
    at: At,
}

/// The commit to check, and how an approval of another commit may hold for it.
#[derive(Debug, clap::Args)]
pub(super) struct At {
    /// The full id of the commit to merge
    #[arg(long, value_name = "SHA")]
    pub(super) head: CommitSha,
    /// Accept an approval that its reviewer marked as not ready to merge (`merge_ready: false`)
    #[arg(long)]
    pub(super) allow_waiting: bool,
    /// A clone to compare the patches of the approved commit and the head in; an approval of an equal patch holds
    #[arg(long, value_name = "DIR", requires = "base")]
    repo_dir: Option<PathBuf>,
    /// The target branch of both, as the clone names it
    #[arg(long, value_name = "REF", requires = "repo_dir")]
    base: Option<String>,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<Exit, Failure> {
    let Command::Check(Check {
        pr,
        repo,
        reviewers,
        at,
    }) = &args.command;
    let (index, _) = LedgerIndex::read(context.workspace()?)?;
    let asked = at.asked(pr.clone(), repo.clone(), reviewers.clone());
    let mut verdict = at.judge(index.state(), &asked)?;
    if verdict.passes
        && let Some(patches) = at.patches()
    {
        let config = Config::load(context.workspace()?)?;
        let changes = patches.changes(&at.head)?;
        verdict.bar_human_paths(changes.as_ref(), &config.gate.human_paths);
    }
    at.answer(verdict, &asked, context)
}

impl At {
    pub(super) fn asked(
        &self,
        pr: PrNumber,
        repo: Option<Repo>,
        reviewers: Vec<AgentName>,
    ) -> ApprovalQuestion {
        ApprovalQuestion {
            pr,
            repo,
            reviewers,
            head: self.head.clone(),
            allow_waiting: self.allow_waiting,
        }
    }

    /// Judges the approvals in `state`, and compares patches in the clone for those of another commit, if there is one.
    pub(super) fn judge(
        &self,
        state: &State,
        asked: &ApprovalQuestion,
    ) -> Result<ApprovalVerdict, Failure> {
        let mut verdict = ApprovalVerdict::of(state, asked).map_err(|error| {
            let exit = match &error {
                NoAnswer::NoReview { .. } => Exit::NotFound,
                NoAnswer::Ambiguous { .. } => Exit::Failed,
            };
            Failure::new(exit, &error)
        })?;
        if let Some(patches) = self.patches() {
            let remapped = verdict.remap(|commit| patches.compare(commit, &self.head));
            remapped
                .and_then(|()| verdict.bar_other_changes(|from, to| patches.hidden(from, to)))?;
        }
        Ok(verdict)
    }

    fn patches(&self) -> Option<Patches> {
        Some(Patches {
            directory: self.repo_dir.clone()?,
            base: self.base.clone()?,
        })
    }

    /// Prints an approval that holds; otherwise fails with the command that fixes it.
    fn answer(
        &self,
        verdict: ApprovalVerdict,
        asked: &ApprovalQuestion,
        context: &Context,
    ) -> Result<Exit, Failure> {
        if !verdict.passes {
            return Err(self.refusal(&verdict, &verdict, asked, context));
        }
        let mut answer = CommandOutput::new(verdict);
        self.alert(&mut answer);
        context.say(&answer, text)?;
        Ok(Exit::Ok)
    }

    /// Alerts the caller to an abbreviated commit.
    pub(super) fn alert<T: Serialize>(&self, answer: &mut CommandOutput<T>) {
        if self.head.as_str().len() < 40 {
            let message = format!(
                "{} is an abbreviated commit; CI should name all 40 digits",
                self.head
            );
            answer.alert("head_abbreviated", message);
        }
    }

    /// The failure for an approval that does not hold, with all of `data`.
    pub(super) fn refusal(
        &self,
        verdict: &ApprovalVerdict,
        data: &impl Serialize,
        asked: &ApprovalQuestion,
        context: &Context,
    ) -> Failure {
        let void: Vec<&CheckedReview> = verdict
            .reviews
            .iter()
            .filter(|review| !review.passes)
            .collect();
        let said: Vec<String> = void
            .iter()
            .map(|one| format!("{}: {}", one.review, one.summary))
            .collect();
        let failure = Failure::plain(Exit::GateRefused, said.join("\n  ")).data(data);
        let remedy = void
            .first()
            .map(|review| self.remedy(review, asked, context));
        match remedy {
            Some(command) => failure.next(command),
            None => failure,
        }
    }

    /// The command that fixes a review's first problem.
    fn remedy(
        &self,
        review: &CheckedReview,
        asked: &ApprovalQuestion,
        context: &Context,
    ) -> String {
        let fetch = review.remap.as_ref().and_then(|remap| remap.fetch.as_ref());
        if let (Some(directory), Some(fetch)) = (&self.repo_dir, fetch) {
            return format!("git -C {} {fetch}", quoted(directory.as_os_str()));
        }
        let repo = review
            .repo
            .as_ref()
            .map_or_else(String::new, |repo| format!(" --repo {repo}"));
        let CheckedReview {
            author, reviewer, ..
        } = review;
        let check = |more: &str| {
            let (pr, head) = (&asked.pr, &asked.head);
            context.command(&format!("gate check --pr {pr} --head {head}{repo} {more}"))
        };
        match review
            .reasons
            .first()
            .expect("what does not pass has a reason")
        {
            Reason::NoApproval => context.command("status"),
            // A new request for a commit that matches the approved one would be refused as `already_approved`.
            Reason::Abbreviated
                if self.repo_dir.is_none()
                    && review
                        .approved_commit
                        .as_ref()
                        .is_some_and(CommitSha::is_whole) =>
            {
                check("--repo-dir DIR --base REF")
            }
            Reason::Escalated | Reason::Closed | Reason::GateBroken | Reason::Abbreviated => {
                context.command(&format!(
                    "review reopen {} --reviewer {reviewer}{repo}",
                    asked.pr
                ))
            }
            // Only a new request can lead to a new approval, and only its author can send it.
            Reason::Unbound | Reason::OtherCommit | Reason::Stale | Reason::OtherChange => {
                let words = format!(
                    "send review_request --to {reviewer} --pr {}{repo} --declared-head {} --branch BRANCH \
                     --diff-summary TEXT",
                    asked.pr, asked.head
                );
                context.command_of(Some(author), &words)
            }
            Reason::HumanPaths => context.command(&format!("review approve {}{repo}", asked.pr)),
            Reason::NothingToCompare => check("--repo-dir DIR --base REF"),
            Reason::BlockedElsewhere => {
                let other = review.blocked_by().and_then(|key| key.repo.as_ref());
                let other = other.map_or_else(String::new, |repo| format!(" --repo {repo}"));
                context.command(&format!("threads {}{other}", asked.pr))
            }
            Reason::Waiting => check("--allow-waiting"),
        }
    }
}

/// The lines about a review's evidence.
pub(super) fn shown(evidence: &EvidenceSummary) -> String {
    let lines = evidence.lines().into_iter();
    lines.map(|line| format!("    {line}\n")).collect()
}

/// The verdict as text for people.
pub(super) fn text(verdict: &ApprovalVerdict) -> String {
    let ApprovalVerdict {
        pr, head, reviews, ..
    } = verdict;
    let all = reviews
        .iter()
        .map(|one| format!("  {}: {}\n{}", one.review, one.summary, shown(&one.shown)));
    std::iter::once(format!("pull request {pr} is approved at {head}\n"))
        .chain(all)
        .collect()
}

#[cfg(test)]
mod tests {
    use inspect::verdict::Remap;

    use super::*;

    fn at(repo_dir: Option<&str>) -> At {
        At {
            head: "1c0ffee".parse().expect("a commit"),
            allow_waiting: false,
            repo_dir: repo_dir.map(PathBuf::from),
            base: repo_dir.map(|_| "main".to_owned()),
        }
    }

    /// The approved review of the recorded workspace.
    fn approved(asked: &ApprovalQuestion) -> CheckedReview {
        let recorded = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/recorded");
        let (index, _) = LedgerIndex::read(recorded.as_ref()).expect("a ledger");
        let verdict = ApprovalVerdict::of(index.state(), asked).expect("it is known");
        verdict.reviews[0].clone()
    }

    #[test]
    fn each_reason_against_a_merge_has_the_command_that_takes_it_away() {
        let context = Context::of("room".as_ref(), "codex");
        let at = at(None);
        let asked = at.asked("88".parse().expect("a number"), None, Vec::new());
        let review = approved(&asked);
        let own = |words: &str| context.command(words);
        let remedy = |reason| {
            let mut review = review.clone();
            review.reasons = [reason].into();
            at.remedy(&review, &asked, &context)
        };
        let check = |more: &str| own(&format!("gate check --pr 88 --head 1c0ffee {more}"));
        let reopen = own("review reopen 88 --reviewer claude");
        let request = context.command_of(
            Some(&review.author),
            "send review_request --to claude --pr 88 --declared-head 1c0ffee --branch BRANCH --diff-summary TEXT",
        );
        for (reason, command) in [
            (Reason::NoApproval, own("status")),
            (Reason::Escalated, reopen.clone()),
            (Reason::Closed, reopen.clone()),
            (Reason::GateBroken, reopen.clone()),
            (Reason::Unbound, request.clone()),
            (Reason::OtherCommit, request.clone()),
            (Reason::Stale, request.clone()),
            (Reason::OtherChange, request),
            (Reason::Abbreviated, reopen),
            (Reason::HumanPaths, own("review approve 88")),
            (Reason::NothingToCompare, check("--repo-dir DIR --base REF")),
            (Reason::BlockedElsewhere, own("threads 88")),
            (Reason::Waiting, check("--allow-waiting")),
        ] {
            assert_eq!(remedy(reason), command, "{reason:?}");
        }
    }

    #[test]
    fn an_abbreviated_commit_is_compared_in_a_clone_and_a_missing_one_fetched() {
        let context = Context::of("room".as_ref(), "codex");
        let asked = at(None).asked("88".parse().expect("a number"), None, Vec::new());
        let mut review = approved(&asked);
        review.reasons = [Reason::Abbreviated].into();
        review.approved_commit = Some("8".repeat(40).parse().expect("a commit"));
        let remedy = |at: At, review: &CheckedReview| at.remedy(review, &asked, &context);
        assert!(remedy(at(None), &review).contains(" --repo-dir DIR --base REF"));
        assert!(remedy(at(Some("code")), &review).contains(" review reopen 88 "));
        review.approved_commit = Some("8888888".parse().expect("a commit"));
        assert!(remedy(at(None), &review).contains(" review reopen 88 "));
        review.remap = Some(Remap {
            remapped: false,
            from: String::new(),
            to: String::new(),
            patch_id: None,
            why: None,
            fetch: Some("fetch origin 888".to_owned()),
        });
        assert_eq!(
            remedy(at(Some("the code")), &review),
            "git -C 'the code' fetch origin 888"
        );
        assert!(remedy(at(None), &review).contains(" review reopen 88 "));
    }
}
