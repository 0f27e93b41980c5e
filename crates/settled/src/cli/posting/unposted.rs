//! The reason a message was not written, with what its sender may do instead.

use mailbox::compose::draft::DraftError;
use mailbox::compose::post::PostError;
use mailbox::compose::sent_before;
use mailbox::mailboxes::file_name;
use mailbox::my_reviews::{self, Move, MyReview};
use message_schema::{Code, ReportedViolation};
use validate_message::Violations;
use views::posted::{Posted, invalid};

use super::{Outgoing, flags};
use crate::cli::context::Me;
use crate::cli::failure::Failure;
use crate::exit::Exit;

impl Outgoing<'_> {
    /// The failure to post, classified by who has to act.
    pub(super) fn failed(&self, error: &PostError) -> Failure {
        match error {
            PostError::Draft(error) => self.no_draft(error),
            PostError::Invalid(violations) => self.invalid(violations),
            PostError::NoPlace | PostError::Gone(_) => {
                self.not_written(Failure::plain(Exit::Temporary, error.to_string()))
            }
            PostError::Mailboxes(_) | PostError::Io { .. } => {
                let failure = Failure::new(Exit::Temporary, error);
                self.not_written(failure.next(self.context.command("doctor")))
            }
        }
    }

    /// Says that sending again is right, with the same exit code as where it is wrong: unless the message may be there after
    /// all, because only the sync of its directory failed, or the search for its outcome.
    fn not_written(&self, failure: Failure) -> Failure {
        let Me { root, agent } = self.me;
        if !matches!(sent_before::find(root, agent, self.id), Ok(None)) {
            return failure;
        }
        let message = format!("{}; nothing was written", failure.message);
        let failure = failure.data(&Posted::new(self.id, "not_written", None));
        Failure { message, ..failure }
    }

    fn invalid(&self, violations: &Violations) -> Failure {
        let file = file_name(self.id);
        let flags = flags(&(self.context.command_line)(), self.origin);
        let violations = violations.iter();
        let violations = violations.map(|violation| {
            self.origin
                .translate(violation.reported(&file), &file, &flags)
        });
        let violations: Vec<ReportedViolation> = violations.collect();
        // A fix says more than the explanation of the code.
        let has_fix = violations.iter().any(|violation| violation.fix.is_some());
        let failure = invalid(self.id, violations);
        match failure.code.filter(|_| !has_fix) {
            Some(code) => failure.next(self.context.command(&format!("explain {code}"))),
            None => failure,
        }
    }

    fn no_draft(&self, error: &DraftError) -> Failure {
        let Me { root, agent } = self.me;
        let pr = self
            .draft
            .pr
            .as_ref()
            .filter(|_| self.draft.kind.is_review());
        let mine = pr.map_or_else(Vec::new, |pr| my_reviews::read(root, pr, agent));
        let is_open = |mine: &MyReview| matches!(mine.whose, Move::Yours | Move::Theirs);
        match error {
            DraftError::Nobody if !mine.is_empty() && !mine.iter().any(is_open) => {
                let mut message = "nothing was written:".to_owned();
                for mine in &mine {
                    let whose = match mine.whose {
                        Move::Person => "a person decides",
                        Move::Yours | Move::Theirs | Move::Nobody => "the review is over",
                    };
                    message += &format!("\n{}: {}; {whose}", mine.review, mine.phase);
                }
                let failure = Failure::plain(Exit::InvalidMessage, message);
                let failure = failure.code(Code::ReviewClosed.as_str());
                self.moves(&mine, failure)
            }
            DraftError::Nobody if self.draft.pr.is_none() && self.draft.kind.is_review() => {
                let message = "no pull request given: use --pr NUMBER";
                Failure::plain(Exit::Usage, message.to_owned())
            }
            DraftError::Nobody => {
                let agents = workspace::directory::agents(root).unwrap_or_default();
                let others = agents.iter().filter(|other| *other != agent);
                let others: Vec<String> = others.map(ToString::to_string).collect();
                let message = format!("{error}; use --to with one of {}", others.join(", "));
                Failure::plain(Exit::Usage, message)
            }
            DraftError::Foreign { .. } => Failure::new(Exit::Usage, error),
            DraftError::Packet { .. } => Failure::new(Exit::Failed, error),
        }
    }
}
