//! The reason a message was not written, with what its sender may do instead.

use mailbox::compose::draft::DraftError;
use mailbox::compose::post::PostError;
use mailbox::my_reviews::{Move, MyReview};
use message_schema::Code;
use message_schema::id::MessageId;

use super::Outgoing;
use crate::cli::failure::Failure;
use crate::cli::home;
use crate::cli::posted::invalid;
use crate::exit::Exit;

impl Outgoing<'_> {
    /// The failure to post, classified by who has to act.
    pub(super) fn failed(&self, id: &MessageId, error: &PostError) -> Failure {
        match error {
            PostError::Draft(error) => self.no_draft(error),
            PostError::Invalid(violations) => invalid(self.context, id, violations, self.origin),
            PostError::Mailboxes(_) | PostError::NoPlace | PostError::Gone(_) => {
                Failure::plain(Exit::Temporary, error.to_string())
            }
            PostError::Io { .. } => {
                Failure::new(Exit::Temporary, error).next(self.context.command("doctor"))
            }
        }
    }

    /// True if this agent has had reviews of the pull request and none is open.
    fn is_over(&self) -> bool {
        let reviews = self
            .letter
            .pr
            .as_ref()
            .map(|pr| home::reviews_of(pr, self.me));
        let reviews = reviews.unwrap_or_default();
        let is_open = |mine: &MyReview| matches!(mine.whose, Move::Yours | Move::Theirs);
        self.letter.kind.is_review() && !reviews.is_empty() && !reviews.iter().any(is_open)
    }

    fn no_draft(&self, error: &DraftError) -> Failure {
        match error {
            DraftError::Nobody if self.is_over() => {
                let mut failure =
                    Failure::plain(Exit::InvalidMessage, "nothing was written:".to_owned());
                let pr = self.letter.pr.as_ref();
                for mine in pr.iter().flat_map(|pr| home::reviews_of(pr, self.me)) {
                    let whose = match mine.whose {
                        Move::Person => "a person decides",
                        Move::Yours | Move::Theirs | Move::Nobody => "the review is over",
                    };
                    failure.message += &format!("\n{}: {}; {whose}", mine.review, mine.phase);
                    for (command, _) in home::moves(&mine, self.me, self.context) {
                        failure = failure.or(command);
                    }
                }
                failure.code(Code::ReviewClosed.as_str())
            }
            DraftError::Nobody if self.letter.pr.is_none() && self.letter.kind.is_review() => {
                let message = "no pull request given: use --pr NUMBER";
                Failure::plain(Exit::Usage, message.to_owned())
            }
            DraftError::Nobody => {
                let agents = workspace::directory::agents(&self.me.root).unwrap_or_default();
                let others = agents
                    .iter()
                    .filter(|agent| **agent != self.me.agent)
                    .map(ToString::to_string);
                let message = format!(
                    "{error}; use --to with one of {}",
                    others.collect::<Vec<_>>().join(", ")
                );
                Failure::plain(Exit::Usage, message)
            }
            DraftError::Foreign { .. } => Failure::new(Exit::Usage, error),
            DraftError::Packet { .. } => Failure::new(Exit::Failed, error),
        }
    }
}
