//! The effects of an event: a person's decision, a pull request that moves, a reviewer that takes its request or counts
//! its turns, a deadline that has passed. The rules read the state and answer; they change nothing.

mod context;
mod deadline;
mod fallback;
mod pair;
mod person;
mod pull;
mod reviewer;
mod spent;

use chrono::{DateTime, Utc};
use message_schema::id::MessageId;
use policy::Policy;
use review_words::event::{Event, SentDiffers};
use review_words::record::{DeclinedEvent, EventRecord, Happened, Says};

use self::context::{Consequences, Declined, EventContext};
use crate::parts::state::State;

/// An event as a person, a runner or the daemon reports it.
#[derive(Clone, Copy, Debug)]
pub struct ReportedEvent<'a> {
    /// The id of the order by which a person or a runner reported it.
    pub order: Option<&'a MessageId>,
    /// The event.
    pub event: &'a Event,
}

/// Returns the effects of an event on its reviews, or the reason it has none. `ids` gives a fresh message id for each
/// message the daemon writes about it.
pub fn on_event(
    state: &State,
    policy: &Policy,
    reported: ReportedEvent<'_>,
    now: DateTime<Utc>,
    ids: &mut dyn FnMut() -> MessageId,
) -> EventRecord {
    let mut context = EventContext {
        state,
        policy,
        now,
        ids,
    };
    let answer = match reported.event {
        Event::Deadline { review, which } => deadline::on_event(&mut context, review, *which),
        Event::Taken(which) => reviewer::taken(&mut context, which),
        Event::Turns { which, count } => reviewer::turns(&mut context, which, *count),
        Event::Started(which) => reviewer::started(&mut context, which),
        Event::Failed { which, failure } => fallback::failed(&mut context, which, failure.cause),
        Event::Spent(report) => spent::on_event(&mut context, report),
        Event::Observed { which, files } => reviewer::observed(&context, which, files),
        Event::Ran { which, run } => reviewer::ran(&context, which, run),
        Event::Pull(pull) => pull::on_event(&mut context, pull),
        Event::Person(decision) => person::on_event(&mut context, decision),
        Event::Pair(news) => pair::on_event(&mut context, news),
        // No review moves: `fleet` folds the hosts.
        Event::LedgerAccepted(_) | Event::Host(_) => Ok(Consequences::default()),
        Event::SentDiffers(differs) => Ok(sent_differs(&mut context, differs)),
    };
    let (event, order) = (reported.event.clone(), reported.order.cloned());
    match answer {
        Ok(Consequences {
            steps,
            messages,
            handoff,
            pair,
        }) => EventRecord::Happened(Box::new(Happened {
            event,
            home_away: false,
            order,
            steps,
            messages,
            handoff,
            pair,
        })),
        Err(Declined { code, why }) => EventRecord::Declined(DeclinedEvent {
            event: Box::new(event),
            order,
            code,
            why,
        }),
    }
}

/// Tells only the sender, who alone can send the rest; the recipients keep what the daemon judged.
fn sent_differs(context: &mut EventContext<'_>, differs: &SentDiffers) -> Consequences {
    let file = differs.file.clone();
    Consequences {
        messages: vec![context.message(&differs.agent, Says::SentDiffers { file })],
        ..Consequences::default()
    }
}

/// Returns the record of the earliest deadline that has passed, if one has. Call it again after `apply` until none is
/// left. Judge every finished file in the outboxes first.
pub fn due(
    state: &State,
    policy: &Policy,
    now: DateTime<Utc>,
    ids: &mut dyn FnMut() -> MessageId,
) -> Option<EventRecord> {
    let (at, key) = state.next_deadline()?;
    let (_, which) = state.review(key)?.deadline()?;
    let event = Event::Deadline {
        review: key.clone(),
        which,
    };
    (at <= now).then(|| {
        on_event(
            state,
            policy,
            ReportedEvent {
                order: None,
                event: &event,
            },
            now,
            ids,
        )
    })
}
