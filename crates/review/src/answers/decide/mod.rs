//! The decision about a correct message: reads the state, answers, changes nothing.
//!
//! First admission (the outbox, the id, the recipients), then the review of the message, then the rules of its type,
//! one file each.

mod addressed;
mod budget;
mod context;
mod feedback;
mod head;
mod lgtm;
mod limits;
mod lookup;
mod request;

use chrono::{DateTime, Utc};
use message_schema::Code;
use message_schema::body::Body;
use message_schema::envelope::DAEMON;
use message_schema::id::{AgentName, MessageId};

pub use self::context::Posted;
use self::context::{MessageContext, Ruling};
pub use self::feedback::feedback_is_empty;
pub use self::lgtm::gate_faults;
use crate::parts::state::State;
use policy::Policy;
use review_words::record::{Accepted, ContentDigest, Duplicate, Judgement};
use review_words::refusal::{Fault, Refusal, outside_review};

/// The decision about a message that is not refused.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// The message goes to its recipients.
    Accept(Box<Accepted>),
    /// The message was accepted before; the daemon puts the file away without notice or effect.
    Duplicate(Duplicate),
}

impl Decision {
    /// Converts it to the form that the ledger keeps.
    pub fn into_judgement(self) -> Judgement {
        match self {
            Self::Accept(accepted) => Judgement::Accepted(accepted),
            Self::Duplicate(duplicate) => Judgement::Duplicate(duplicate),
        }
    }
}

/// Decides on one message at the time `now`; changes nothing.
pub fn decide(
    state: &State,
    policy: &Policy,
    posted: Posted<'_>,
    now: DateTime<Utc>,
) -> Result<Decision, Refusal> {
    let context = MessageContext {
        state,
        policy,
        posted,
        now,
    };
    let envelope = context.envelope();

    check_sender(&context)?;
    if let Some(duplicate) =
        state
            .admission
            .check_id(&envelope.from, &envelope.id, posted.digest)?
    {
        return Ok(Decision::Duplicate(duplicate));
    }
    let unsendable: Vec<Fault> = recipient_faults(&context)
        .into_iter()
        .chain(expiry_fault(&context))
        .collect();
    if !unsendable.is_empty() {
        return Err(outside_review(unsendable));
    }

    let ruling = match posted.valid.body() {
        Body::Request(body) => Some(request::decide(&context, body)?),
        Body::Feedback(body) => Some(feedback::decide(&context, body)?),
        Body::Addressed(body) => Some(addressed::decide(&context, body)?),
        Body::Lgtm(body) => Some(lgtm::decide(&context, body)?),
        Body::Text(_) => {
            limits::check_text(&context)?;
            None
        }
    };
    Ok(accept(&context, ruling))
}

/// Returns the duplicate if this outbox's message was accepted before, byte for byte; its packet may have changed
/// since. Call it before checking the message.
pub fn repeated(
    state: &State,
    outbox: &AgentName,
    id: &MessageId,
    digest: ContentDigest,
) -> Option<Duplicate> {
    state.admission.check_id(outbox, id, digest).ok().flatten()
}

fn accept(context: &MessageContext<'_>, ruling: Option<Ruling>) -> Decision {
    let envelope = context.envelope();
    let (step, alerts) = ruling.map_or((None, Vec::new()), |a| (Some(a.step), a.alerts));
    let warnings = context.posted.valid.warnings().iter();
    Decision::Accept(Box::new(Accepted {
        from: envelope.from.clone(),
        id: envelope.id.clone(),
        digest: context.posted.digest,
        to: envelope.to.names().to_vec(),
        kind: envelope.kind,
        conversation: envelope.conversation_id.clone(),
        step,
        alerts,
        warnings: warnings.map(|warning| warning.message.clone()).collect(),
        packet: context
            .posted
            .valid
            .packet()
            .map(|packet| packet.text.clone()),
    }))
}

fn check_sender(context: &MessageContext<'_>) -> Result<(), Refusal> {
    sender_fault(&context.envelope().from, context.posted.outbox)
        .map_or(Ok(()), |fault| Err(fault.refuses()))
}

/// Returns the fault of a message that names a sender other than the owner of its outbox. It is public so that a
/// refusal for other violations can name this one too.
pub fn sender_fault(from: &AgentName, owner: &AgentName) -> Option<Fault> {
    (from != owner).then(|| {
        Fault::new(
            Code::SenderMismatch,
            format!("the message says it is from `{from}`, but it is in the outbox of `{owner}`"),
        )
        .field("from")
        .found(from)
        .expected(owner.as_str())
        .fix(format!(
            "write `from: {owner}`: an agent speaks only for itself"
        ))
    })
}

fn recipient_faults(context: &MessageContext<'_>) -> Vec<Fault> {
    let (daemon, agents): (Vec<_>, Vec<_>) = context
        .envelope()
        .to
        .names()
        .iter()
        .partition(|name| name.is_daemon());
    let to_daemon = daemon.first().map(|_| {
        Fault::new(Code::NotForTheDaemon, format!("`{DAEMON}` reads no mail"))
            .field("to")
            .found(DAEMON)
            .expected("an agent of this workspace")
            .fix(format!("leave `{DAEMON}` out of `to`"))
    });
    let unknown: Vec<&str> = agents
        .into_iter()
        .filter(|name| !context.policy.agents.contains_key(*name))
        .map(AgentName::as_str)
        .collect();
    let to_unknown =
        (!unknown.is_empty()).then(|| {
            let known: Vec<&str> = context
                .policy
                .agents
                .keys()
                .map(AgentName::as_str)
                .collect();
            Fault::new(
            Code::UnknownRecipient,
            format!("`{}` is not an agent of this workspace", unknown.join("`, `")),
        )
        .field("to")
        .found(unknown.join(", "))
        .expected(format!("one of {}", known.join(", ")))
        .fix("name an agent that has a mailbox, or create its mailbox with `settled init --agents`")
        });
    to_daemon.into_iter().chain(to_unknown).collect()
}

fn expiry_fault(context: &MessageContext<'_>) -> Option<Fault> {
    let at = context
        .envelope()
        .expires_at
        .filter(|at| at.utc() <= context.now)?;
    let fault = Fault::new(Code::Expired, format!("the message expired at {at}"));
    let fault = fault
        .field("expires_at")
        .found(at)
        .expected("a time in the future");
    Some(fault.fix("send it again with a later expires_at, or without one"))
}
