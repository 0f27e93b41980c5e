//! A person's decisions: gives the same orders as `settled review` and `settled thread`, and refuses what they refuse.
//! The page decides nothing.

use axum::extract::{Form, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use cockpit::Follower;
use daemon::submit_order::{self, SubmitError};
use message_schema::id::{FindingId, MessageId};
use review::{Act, DeclinedEvent, Event, EventRecord, PersonsDecision, Which};
use serde::Deserialize;
use workspace::orders::{self, TEXT_MAX};
use workspace::{directory, users};

use crate::Args;
use crate::door::is_same;
use crate::draw::review::shown;
use crate::draw::{self, Look, Outcome};
use crate::site::no_page;
use crate::state::{PageError, Site};

/// A form as a browser submits it.
#[derive(Debug, Deserialize)]
pub(crate) struct Decision {
    form: String,
    /// The id of the order, which the page drew into the form.
    #[serde(default)]
    order: String,
    key: String,
    act: String,
    #[serde(default)]
    thread: String,
    reason: String,
}

/// Returns the name of the person who decides; `None` without `--act`. Refuses a user that an agent also runs as, and
/// an invalid name.
pub(crate) fn person(args: &Args) -> Result<Option<String>, PageError> {
    if !args.act {
        return Ok(None);
    }
    if let Some(agent) = directory::agent_of_this_user(&args.root)? {
        return Err(PageError::SharedUser(agent));
    }
    let by = args.by.clone().unwrap_or_else(users::login);
    if orders::is_fit(&by) {
        Ok(Some(by))
    } else {
        Err(PageError::Name(format!(
            "the name of who decides has to be 1 to {TEXT_MAX} characters on one line"
        )))
    }
}

/// Handles `/act`.
pub(crate) async fn act(State(site): State<Site>, Form(decision): Form<Decision>) -> Response {
    let Some(by) = site.by.clone() else {
        tracing::warn!("refused: the page is for looking only");
        let why = "this page is for looking only";
        let fix = "Start settled page with --act to decide here";
        return draw::refusal(StatusCode::FORBIDDEN, why, fix);
    };
    let order = MessageId::new(decision.order.as_str()).ok();
    let Some(order) = order.filter(|_| is_same(&decision.form, &site.keys.form)) else {
        tracing::warn!("refused: the form is not one of this page's");
        let why = "the form is not one that this page drew";
        let fix = "Load the review again and decide there";
        return draw::refusal(StatusCode::FORBIDDEN, why, fix);
    };
    match directory::agent_of_this_user(&site.root) {
        Ok(None) => {}
        Ok(Some(agent)) => {
            let refused = PageError::SharedUser(agent);
            tracing::warn!("refused: {refused}");
            return (StatusCode::FORBIDDEN, refused.to_string()).into_response();
        }
        Err(error) => return (StatusCode::SERVICE_UNAVAILABLE, error.to_string()).into_response(),
    }
    let key = decision.key.clone();
    let which = site.read(move |follower, _| {
        let key = follower.key_of(&key)?;
        Some(Which {
            pr: key.pr.clone(),
            repo: key.repo.clone(),
            reviewer: Some(key.reviewer.clone()),
        })
    });
    let which = match which.await {
        Ok(Some(which)) => which,
        Ok(None) => return no_page(),
        Err(failed) => return failed,
    };
    let place = draw::address(&decision.key);
    let given = match event(&decision, which, &by) {
        Ok(event) => give(&site, order, event).await,
        Err(outcome) => Err(outcome),
    };
    match given {
        Ok(()) => Redirect::to(&place).into_response(),
        Err(outcome) => {
            let drawn = site.read(move |follower, look| {
                let mut page = shown(follower, look, &decision.key, Some(&outcome));
                *page.status_mut() = StatusCode::CONFLICT;
                page
            });
            drawn.await.unwrap_or_else(|failed| failed)
        }
    }
}

fn event(decision: &Decision, which: Which, by: &str) -> Result<Event, Outcome> {
    let reason = decision.reason.trim();
    if !orders::is_fit(reason) {
        let what = format!("the reason has to be 1 to {TEXT_MAX} characters on one line");
        return Err(Outcome(what));
    }
    let thread = || {
        FindingId::new(decision.thread.as_str())
            .map_err(|error| Outcome(format!("the thread: {error}")))
    };
    let act = match decision.act.as_str() {
        "reopen" => Act::Reopen,
        "grant" => Act::Grant { rounds: 1 },
        "cancel" => Act::Cancel,
        "resolve" => Act::Resolve(thread()?),
        "hold" => Act::Hold(thread()?),
        "release" => Act::Release(thread()?),
        "queue" => Act::Queue(thread()?),
        _ => return Err(Outcome("the page has no such decision".to_owned())),
    };
    Ok(Event::Person(PersonsDecision {
        which,
        by: by.to_owned(),
        reason: reason.to_owned(),
        act,
    }))
}

/// Gives the order and waits for its record, as the commands do.
async fn give(site: &Site, order: MessageId, event: Event) -> Result<(), Outcome> {
    let (root, id) = (site.root.clone(), order.clone());
    let given = tokio::task::spawn_blocking(move || submit_order::submit_as(&root, id, event));
    match given.await {
        Ok(Ok(heard)) => match heard.record {
            EventRecord::Happened(_) => Ok(()),
            EventRecord::Declined(DeclinedEvent { code, why, .. }) => {
                Err(Outcome(format!("{code}: {why}")))
            }
        },
        Ok(Err(error @ SubmitError::Gone { .. })) => {
            let is_known = move |follower: &Follower, _: &Look<'_>| {
                follower.status().index.state().has_order(&order)
            };
            Err(Outcome(match site.read(is_known).await {
                Ok(true) => "this form was sent before, and its order counts once; decide again \
                             here if you mean another"
                    .to_owned(),
                Ok(false) | Err(_) => error.to_string(),
            }))
        }
        Ok(Err(error)) => Err(Outcome(error.to_string())),
        Err(_) => Err(Outcome(
            "the order broke off; look before you repeat it".to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The decision of a form for `ann`: the act with its reason, or why there is none.
    fn decided(act: &str, thread: &str, reason: &str) -> Result<(Act, String), String> {
        let decision = Decision {
            form: String::new(),
            order: String::new(),
            key: String::new(),
            act: act.to_owned(),
            thread: thread.to_owned(),
            reason: reason.to_owned(),
        };
        let which = Which {
            pr: "86".parse().expect("a pull request"),
            repo: None,
            reviewer: None,
        };
        match event(&decision, which.clone(), "ann") {
            Ok(Event::Person(given)) => {
                assert_eq!((&given.which, &*given.by), (&which, "ann"));
                Ok((given.act, given.reason))
            }
            Ok(other) => panic!("{other:?} is no person's decision"),
            Err(Outcome(why)) => Err(why),
        }
    }

    #[test]
    fn each_choice_of_a_form_gives_its_order() {
        let thread = || FindingId::new("F-1").expect("an id");
        for (word, act) in [
            ("reopen", Act::Reopen),
            ("grant", Act::Grant { rounds: 1 }),
            ("cancel", Act::Cancel),
            ("resolve", Act::Resolve(thread())),
            ("hold", Act::Hold(thread())),
            ("release", Act::Release(thread())),
            ("queue", Act::Queue(thread())),
        ] {
            let expected = Ok((act, "it is late".to_owned()));
            assert_eq!(decided(word, "F-1", " it is late\n"), expected, "{word}");
        }
    }

    #[test]
    fn a_choice_that_no_form_has_and_a_reason_that_no_record_holds_give_no_order() {
        let unknown = decided("approve", "F-1", "why");
        assert_eq!(unknown, Err("the page has no such decision".to_owned()));
        let unnamed = decided("hold", "", "why").expect_err("no thread");
        assert!(unnamed.starts_with("the thread: "), "{unnamed}");
        let reason = format!("the reason has to be 1 to {TEXT_MAX} characters on one line");
        for unfit in [" ", "a\nb", &"x".repeat(TEXT_MAX + 1)] {
            let refused = decided("cancel", "", unfit);
            assert_eq!(refused.as_ref(), Err(&reason), "{unfit:?}");
        }
    }
}
