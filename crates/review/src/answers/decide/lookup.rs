//! The search for a message's review, and the check of its sender's part in it.

use message_schema::Code;
use message_schema::body::{Body, ReviewRequest};
use message_schema::id::{AgentName, PrNumber};
use policy::Role;
use review_words::key::ReviewKey;
use review_words::phase::Phase;
use review_words::refusal::{Costs, Fault, Refusal, in_review};
use review_words::thread::Thread;

use super::context::MessageContext;
use crate::parts::review::Review;

/// The direction of a message type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Author to reviewer.
    FromAuthor,
    /// Reviewer to author.
    FromReviewer,
}

impl Part {
    fn of(body: &Body) -> Self {
        match body {
            Body::Request(_) | Body::Addressed(_) => Self::FromAuthor,
            Body::Feedback(_) | Body::Lgtm(_) => Self::FromReviewer,
            Body::Text(_) => unreachable!("only review messages belong to reviews"),
        }
    }
}

/// Refuses a sender or addressee whose configured role does not admit the part.
pub(super) fn check_configured_roles(context: &MessageContext<'_>) -> Result<(), Refusal> {
    let (from, to) = (&context.envelope().from, context.recipient());
    let (sender_role, addressee_role) = match Part::of(context.posted.valid.body()) {
        Part::FromAuthor => (Role::Author, Role::Reviewer),
        Part::FromReviewer => (Role::Reviewer, Role::Author),
    };
    for (agent, role, field) in [(from, sender_role, "from"), (to, addressee_role, "to")] {
        if !context.policy.admits(agent, role) {
            return Err(Fault::new(
                Code::WrongDirection,
                format!("settled.toml does not let `{agent}` be the {role} of a review"),
            )
            .field(field)
            .found(agent)
            .expected(format!("an agent with the role `{role}`"))
            .refuses());
        }
    }
    Ok(())
}

/// Finds the review of a message that answers one: feedback, lgtm or addressed.
pub(super) fn find<'a>(
    context: &MessageContext<'a>,
) -> Result<(&'a ReviewKey, &'a Review), Refusal> {
    check_configured_roles(context)?;
    let part = Part::of(context.posted.valid.body());
    let key = match by_pr(context, part)? {
        Some(key) => key,
        None => match by_thread_of_messages(context) {
            Some(key) => key,
            None => only_one_between(context, part)?,
        },
    };
    let review = context
        .state
        .reviews
        .get(key)
        .expect("the key came from the reviews");
    check_part(context, part, key, review)?;
    Ok((key, review))
}

fn author_and_reviewer<'a>(
    context: &MessageContext<'a>,
    part: Part,
) -> (&'a AgentName, &'a AgentName) {
    let (from, to) = (&context.envelope().from, context.recipient());
    match part {
        Part::FromAuthor => (from, to),
        Part::FromReviewer => (to, from),
    }
}

/// Finds the review of the named pull request between these two agents. If several repositories have the number, other
/// evidence has to decide.
fn by_pr<'a>(context: &MessageContext<'a>, part: Part) -> Result<Option<&'a ReviewKey>, Refusal> {
    let Some(pr) = &context.envelope().related_pr else {
        return Ok(None);
    };
    let (author, reviewer) = author_and_reviewer(context, part);
    let of_pr = || context.state.reviews.of_number(pr);
    let own: Vec<_> = of_pr()
        .filter(|(key, review)| review.is_between(key, author, reviewer))
        .map(|(key, _)| key)
        .collect();
    match own.as_slice() {
        [key] => Ok(Some(key)),
        [_, _, ..] => match by_thread_of_messages(context) {
            Some(key) if own.contains(&key) => Ok(Some(key)),
            Some(_) | None => only_open(context, &own)
                .map(Some)
                .ok_or_else(|| ambiguous(&own, "parent_message_id")),
        },
        [] => {
            // A review that was opened with this agent and then reassigned explains more than any other.
            let was_theirs =
                |(key, _): &(&ReviewKey, _)| key.author == *author && key.reviewer == *reviewer;
            match of_pr().find(was_theirs).or_else(|| of_pr().next()) {
                Some((other, _)) => Err(wrong_direction(context, other)),
                None => Err(no_open_request(context, Some(pr))),
            }
        }
    }
}

fn by_thread_of_messages<'a>(context: &MessageContext<'a>) -> Option<&'a ReviewKey> {
    let envelope = context.envelope();
    let parent = envelope
        .parent_message_id
        .as_deref()
        .and_then(|id| id.parse().ok())
        .and_then(|id| {
            [&envelope.from, context.recipient()]
                .into_iter()
                .find_map(|who| context.state.review_of_message(who, &id))
        });
    parent.or_else(|| by_conversation(context))
}

/// Finds the only review of a conversation between these two agents, or the only open one of several. If the
/// conversation involved other agents only, one of its reviews shows who has which part.
fn by_conversation<'a>(context: &MessageContext<'a>) -> Option<&'a ReviewKey> {
    let envelope = context.envelope();
    let (from, to) = (&envelope.from, context.recipient());
    let state = context.state;
    let known = state
        .conversations
        .reviews(envelope.conversation_id.as_ref()?);
    let keys: Vec<&ReviewKey> = known
        .iter()
        .filter_map(|key| Some(state.reviews.entry(key)?.0))
        .collect();
    let is_theirs = |key: &&ReviewKey| {
        let review = context.state.review(key);
        review.is_some_and(|review| {
            [&key.author, review.reviewer(key)]
                .into_iter()
                .all(|name| name == from || name == to)
        })
    };
    let theirs: Vec<&ReviewKey> = keys.iter().copied().filter(is_theirs).collect();
    match theirs.as_slice() {
        [] => keys.last().copied(),
        [only] => Some(only),
        several => only_open(context, several),
    }
}

fn only_one_between<'a>(
    context: &MessageContext<'a>,
    part: Part,
) -> Result<&'a ReviewKey, Refusal> {
    let (author, reviewer) = author_and_reviewer(context, part);
    let mut open = context.state.reviews.open_between(author, reviewer);
    match (open.next(), open.len()) {
        (Some(key), 0) => Ok(key),
        (Some(key), _) => {
            let some: Vec<_> = std::iter::once(key).chain(open.take(4)).collect();
            Err(ambiguous(&some, "related_pr"))
        }
        (None, _) => {
            let swapped = context.state.reviews.open_between(reviewer, author).next();
            Err(swapped.map_or_else(
                || no_open_request(context, None),
                |other| wrong_direction(context, other),
            ))
        }
    }
}

/// Checks that the sender may move a review that was found by its messages.
fn check_part(
    context: &MessageContext<'_>,
    part: Part,
    key: &ReviewKey,
    review: &Review,
) -> Result<(), Refusal> {
    let (author, reviewer) = author_and_reviewer(context, part);
    if review.is_between(key, author, reviewer) {
        return Ok(());
    }
    let refusal = wrong_direction(context, key);
    Err(Refusal {
        legal_next: context.state.legal_next(key, review),
        ..refusal
    })
}

/// Returns the review of a request: an existing one, whether or not both name the repository, so that naming it or
/// leaving it out gives no fresh count.
pub(super) fn key_of_request(
    context: &MessageContext<'_>,
    body: &ReviewRequest,
) -> Result<ReviewKey, Refusal> {
    let (author, reviewer) = (&context.envelope().from, context.recipient());
    let known: Vec<&ReviewKey> = context
        .state
        .of_pr(body.repo.as_ref(), &body.pr)
        .filter(|(key, review)| {
            let was_theirs = key.author == *author && key.reviewer == *reviewer;
            was_theirs || review.is_between(key, author, reviewer)
        })
        .map(|(key, _)| key)
        .collect();
    match known.as_slice() {
        [] => Ok(ReviewKey::new(
            body.repo.as_ref(),
            &body.pr,
            author.clone(),
            reviewer.clone(),
        )),
        [key] => Ok((*key).clone()),
        [_, _, ..] => match only_open(context, &known) {
            Some(key) => Ok(key.clone()),
            None => Err(ambiguous(&known, "body.repo")),
        },
    }
}

/// Returns the only one of these reviews that an agent can still move.
fn only_open<'a>(context: &MessageContext<'a>, keys: &[&'a ReviewKey]) -> Option<&'a ReviewKey> {
    let is_open = |key: &&&ReviewKey| {
        context
            .state
            .review(key)
            .is_some_and(|review| !review.phase.is_final())
    };
    let mut open = keys.iter().filter(is_open);
    open.next().copied().filter(|_| open.next().is_none())
}

/// Refuses a request that would swap the roles of a known pull request.
pub(super) fn check_opener(
    context: &MessageContext<'_>,
    pr: &PrNumber,
    repo: Option<&message_schema::id::Repo>,
) -> Result<(), Refusal> {
    check_configured_roles(context)?;
    let from = &context.envelope().from;
    let is_taken =
        |(key, review): &(&ReviewKey, &Review)| key.author != *from && review.holds_number();
    let Some((key, review)) = context.state.of_pr(repo, pr).find(is_taken) else {
        return Ok(());
    };
    let mut refusal = wrong_direction(context, key);
    for fault in &mut refusal.faults {
        fault.fix = Some(gives_up(key, review));
    }
    Err(refusal)
}

/// Returns the commands by which a person gives a number to another author.
fn gives_up(key: &ReviewKey, review: &Review) -> String {
    let (pr, reviewer) = (&key.pr, review.reviewer(key));
    let repo = key
        .repo
        .as_ref()
        .map_or_else(String::new, |repo| format!(" --repo {repo}"));
    let closed = format!("`settled pr closed {pr}{repo}` and `settled pr reopened {pr}{repo}`");
    let how = match &review.phase {
        _ if review.threads.values().any(Thread::blocks_approval) => {
            format!("`settled threads {pr}{repo}` lists what has to be resolved first")
        }
        Phase::Reviewing(_) => format!("`settled review cancel {pr}{repo} --reviewer {reviewer}`"),
        Phase::Awaiting { .. } | Phase::Fixing { .. } | Phase::Addressed { .. } => closed,
        Phase::Approved(_) | Phase::Escalated(_) | Phase::Closed(_) => {
            format!("`settled review reopen {pr}{repo} --reviewer {reviewer}`, then {closed}")
        }
    };
    format!("only a person can give the number to another author: {how}")
}

pub(super) fn wrong_direction(context: &MessageContext<'_>, key: &ReviewKey) -> Refusal {
    let envelope = context.envelope();
    let review = context.state.review(key);
    let reviewer = review.map_or(&key.reviewer, |review| review.reviewer(key));
    let moved = if *reviewer == key.reviewer {
        String::new()
    } else {
        format!(", which was reassigned from `{}`", key.reviewer)
    };
    let fault = Fault::new(
        Code::WrongDirection,
        format!(
            "`{}` from `{}` to `{}` does not fit the review {key}{moved}: there `{}` is the author and `{reviewer}` the reviewer",
            envelope.kind,
            envelope.from,
            context.recipient(),
            key.author,
        ),
    )
    .field("from")
    .found(format!("{} to {}", envelope.from, context.recipient()))
    .expected(match Part::of(context.posted.valid.body()) {
        Part::FromAuthor => format!("{} to {reviewer}", key.author),
        Part::FromReviewer => format!("{reviewer} to {}", key.author),
    });
    let legal = review.map_or_else(Vec::new, |review| context.state.legal_next(key, review));
    in_review(vec![fault], key, legal, Costs::Nothing)
}

fn ambiguous(keys: &[&ReviewKey], tells: &str) -> Refusal {
    let names: Vec<_> = keys.iter().map(|key| key.to_string()).collect();
    Fault::new(
        Code::ReviewAmbiguous,
        format!("the message could belong to {}", names.join(" or to ")),
    )
    .field(tells)
    .expected(format!("a `{tells}` that says which"))
    .fix(match tells {
        "body.repo" => "name the repository in the body: `repo: owner/name`",
        "parent_message_id" => "write parent_message_id: the id of the request you answer",
        _ => "write related_pr: the number of the pull request",
    })
    .refuses()
}

fn no_open_request(context: &MessageContext<'_>, pr: Option<&PrNumber>) -> Refusal {
    let (from, to) = (&context.envelope().from, context.recipient());
    let what = pr.map_or_else(String::new, |pr| format!(" of pull request {pr}"));
    Fault::new(
        Code::NoOpenRequest,
        format!(
            "there is no review{what} between `{from}` and `{to}` that this message could move"
        ),
    )
    .field("related_pr")
    .fix("a review opens with review_request from its author; check related_pr and the recipient")
    .refuses()
}
