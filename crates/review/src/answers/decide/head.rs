//! The commit of a response: an approval counts for the round's head, or for a newer head from an event.

use message_schema::Code;
use message_schema::id::CommitSha;

use review_words::alert::Alert;
use review_words::phase::Invocation;
use review_words::refusal::Fault;

/// Returns the commit of an approval: the one the reviewer names, else the round's head. It never comes from an event.
pub(super) fn approved(open: &Invocation, validated: Option<&CommitSha>) -> Option<CommitSha> {
    validated.or(open.head.as_ref()).cloned()
}

/// Returns the commit of a response, if the round is about another one.
pub(super) fn another<'a>(
    open: &'a Invocation,
    validated: Option<&'a CommitSha>,
) -> Option<OtherCommit<'a>> {
    let validated = validated.filter(|commit| !open.admits(commit))?;
    let head = open.head.as_ref()?;
    Some(OtherCommit {
        open,
        validated,
        head,
    })
}

/// A response about a commit other than the round's.
pub(super) struct OtherCommit<'a> {
    open: &'a Invocation,
    validated: &'a CommitSha,
    head: &'a CommitSha,
}

impl OtherCommit<'_> {
    pub(super) fn fault(&self) -> Fault {
        let Self {
            open,
            validated,
            head,
        } = self;
        let newer = open
            .newer_heads
            .iter()
            .map(|newer| format!(" or {newer}"))
            .collect::<String>();
        Fault::new(
            Code::HeadMismatch,
            format!("the approval is for `{validated}`, but the head of this round is `{head}`"),
        )
        .field("body.validated_head")
        .found(validated)
        .expected(format!("{head}{newer}"))
        .fix(format!(
            "review `{head}` and name it; if `{validated}` is newer, the author replaces the request with `declared_head: {validated}`"
        ))
    }

    pub(super) fn alert(&self) -> Alert {
        Alert::OtherCommit {
            validated: self.validated.clone(),
            head: self.head.clone(),
        }
    }
}
