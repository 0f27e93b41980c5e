//! The limits on one agent's requests to others: mail outside the review loop, and new reviews. They never hold up a
//! message of an open review: the number of those is bounded, and a review that cannot continue would end through no
//! fault of its own.

use message_schema::Code;
use review_words::key::ReviewKey;
use review_words::refusal::{Fault, Refusal};

use super::context::MessageContext;

/// Checks the limits of a message outside the review loop.
pub(super) fn check_text(context: &MessageContext<'_>) -> Result<(), Refusal> {
    check_rate(context)?;
    too_many_messages(context).map_or(Ok(()), |fault| Err(fault.refuses()))
}

/// Returns the limit that forbids opening a review or its next generation now, if one does.
pub(super) fn opening_fault(context: &MessageContext<'_>, key: &ReviewKey) -> Option<Fault> {
    too_many_messages(context).or_else(|| backlog_full(context, key))
}

fn too_many_messages(context: &MessageContext<'_>) -> Option<Fault> {
    let (outbox, rate) = (context.posted.outbox, &context.state.admission.rate);
    let limit = context.policy.files_per_hour.get();
    let found = rate.in_the_last_hour(outbox, context.now);
    (found >= limit).then(|| {
        let again = rate
            .is_below_at(outbox, limit, context.now)
            .format("%Y-%m-%dT%H:%M:%SZ");
        Fault::new(
            Code::TooManyMessages,
            format!("{found} files came from the outbox of `{outbox}` within the last hour"),
        )
        .field("from")
        .found(found)
        .expected(format!("fewer than {limit} an hour, refused ones included"))
        .fix(format!(
            "send it again after {again}; the daemon still takes messages of open reviews"
        ))
    })
}

fn backlog_full(context: &MessageContext<'_>, key: &ReviewKey) -> Option<Fault> {
    let limit = context.policy.open_reviews.get();
    let found = context
        .state
        .reviews
        .open_between(&key.author, &key.reviewer)
        .len();
    (found >= limit).then(|| {
        let (author, reviewer) = (&key.author, &key.reviewer);
        Fault::new(
            Code::BacklogFull,
            format!("{found} reviews of `{author}` with `{reviewer}` are open"),
        )
        .field("to")
        .found(found)
        .expected(format!("fewer than {limit} at a time"))
        .fix("send it again when one of them has ended, or ask another reviewer")
    })
}

fn check_rate(context: &MessageContext<'_>) -> Result<(), Refusal> {
    let from = &context.envelope().from;
    let limit = context.policy.messages_per_hour.get();
    for to in context.envelope().to.names() {
        let admission = &context.state.admission;
        if admission.is_full(from, to, limit, context.now) {
            return Err(Fault::new(
                Code::RateLimited,
                format!("`{from}` has sent `{to}` {limit} messages within the last hour"),
            )
            .field("to")
            .found(limit)
            .expected(format!("at most {limit} an hour outside the review loop"))
            .fix("wait, or put several things into one message")
            .refuses());
        }
    }
    Ok(())
}
