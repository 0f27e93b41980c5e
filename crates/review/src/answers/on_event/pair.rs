//! Answers reports about a pair of commands. Its driver reports what the commands did; this file decides what follows:
//! the pair is charged for the run, and no signal of a command overrules the reviews between the two.

use message_schema::Code;
use pair_machine::{InvalidTransition, RunState};
use pair_machine::{Pair, PairEvent, PairFailure, Signal};
use pair_machine::{PairReport, PairSetup, PairStatus, PairStep, Transcript};
use review_words::phase::{EscalationReason, Phase};

use super::context::{Consequences, Declined, EventContext};
use super::reviewer;
use crate::parts::open_pair::OpenPair;
use crate::parts::state::State;

pub(super) fn on_event(
    context: &mut EventContext<'_>,
    news: &PairReport,
) -> Result<Consequences, Declined> {
    let known = context.state.pair(&news.pair);
    let status = match (&news.what, known) {
        (PairStep::Opened(_), Some(_)) => {
            Err(invalid(format!("the pair {} already exists", news.pair)))
        }
        (PairStep::Opened(setup), None) => open(context, setup),
        (_, Some(known)) => go_on(context, known, &news.what),
        (_, None) => Err(invalid(format!("no pair {} can continue", news.pair))),
    }?;
    let mut answer = Consequences {
        pair: Some(status),
        ..Consequences::default()
    };
    if let Some(known) = known
        && status.pair.run() == RunState::Failed
        && !status.pair.can_resume()
    {
        give_up(context, known, &mut answer);
    }
    Ok(answer)
}

/// Escalates the open requests of a reviewer that will not answer any more. It is never a pass.
fn give_up(context: &mut EventContext<'_>, known: &OpenPair, answer: &mut Consequences) {
    let state = context.state;
    let own = state.reviews_of_pair(known);
    for (key, review) in own.filter(|(_, review)| review.phase.invocation().is_some()) {
        let (step, messages) =
            reviewer::given_up(context, (key, review), EscalationReason::InvocationFailed);
        answer.messages.extend(messages);
        answer.steps.push(step);
    }
}

/// True if one of the pair's reviews is escalated: a person decides there, not the pair.
fn is_left_to_a_person(state: &State, pair: &OpenPair) -> bool {
    let mut own = state.reviews_of_pair(pair);
    own.any(|(_, review)| matches!(review.phase, Phase::Escalated(_)))
}

fn open(context: &EventContext<'_>, setup: &PairSetup) -> Result<PairStatus, Declined> {
    let agents = &context.policy.agents;
    if let Some(member) = setup
        .members()
        .find(|member| !agents.contains_key(&member.agent))
    {
        return Err(invalid(format!(
            "{} is not an agent of this workspace",
            member.agent
        )));
    }
    if setup
        .reviewer
        .as_ref()
        .is_some_and(|reviewer| reviewer.agent == setup.author.agent)
    {
        return Err(invalid("author and reviewer are the same agent"));
    }
    if [
        setup.run_seconds,
        setup.seconds,
        u32::from(setup.iterations),
        setup.turns.unwrap_or(1),
    ]
    .contains(&0)
    {
        return Err(invalid("a limit of the pair is 0"));
    }
    if !setup.words.are_distinct() {
        return Err(invalid(
            "two words of the pair are the same, or one is empty",
        ));
    }
    Ok(PairStatus::new(setup))
}

fn go_on(
    context: &EventContext<'_>,
    known: &OpenPair,
    step: &PairStep,
) -> Result<PairStatus, Declined> {
    let status = known.status;
    match step {
        PairStep::Opened(_) => Err(invalid("a pair is opened once")),
        PairStep::Started => Ok(bounded(context, known, moved(status, PairEvent::Started)?)),
        PairStep::NotStarted { .. } => moved(status, PairEvent::StartFailed),
        PairStep::Began(start) => begin(context, known, *start),
        PairStep::Ended { signal, run } => {
            let used = used(status, run)?;
            let approves = *signal == Signal::Pass && status.pair.run() == RunState::Reviewing;
            // The reviewer cannot approve a review that was meanwhile escalated to a person.
            if approves && is_left_to_a_person(context.state, known) {
                return Ok(PairStatus {
                    pair: used.pair.failed(PairFailure::WithAPerson),
                    ..used
                });
            }
            // The author had its turn and left its threads unanswered: another turn would change nothing.
            if approves && known.is_unanswered(context.state.reviews_of_pair(known)) {
                return Ok(PairStatus {
                    pair: used.pair.failed(PairFailure::Unanswered),
                    ..used
                });
            }
            // Only the ledger's record of a review approves it.
            let is_gated = approves && !known.is_approved(context.state.reviews_of_pair(known));
            let signal = if is_gated { Signal::None } else { *signal };
            Ok(bounded(
                context,
                known,
                moved(used, PairEvent::Ended(signal))?,
            ))
        }
        PairStep::Crashed { run, .. } => Ok(bounded(
            context,
            known,
            moved(used(status, run)?, PairEvent::Crashed)?,
        )),
        PairStep::Interrupted { run: Some(run), .. } => {
            moved(used(status, run)?, PairEvent::Interrupted)
        }
        PairStep::Interrupted { run: None, .. } if status.began_at.is_some() => Err(invalid(
            "a command of the pair is running, and this interruption does not mention it",
        )),
        PairStep::Interrupted { run: None, .. } => moved(status, PairEvent::Interrupted),
        PairStep::Resumed => moved(status, PairEvent::Resumed),
        PairStep::Dropped => moved(status, PairEvent::Dropped),
    }
}

fn begin(context: &EventContext<'_>, known: &OpenPair, start: u16) -> Result<PairStatus, Declined> {
    let status = known.status;
    if !matches!(status.pair.run(), RunState::Working | RunState::Reviewing) {
        return Err(invalid(format!(
            "the pair is {}: no command may run now",
            status.pair.run().word()
        )));
    }
    // Two drivers of one pair would each run the command.
    if status.began_at.is_some() || start != status.starts.saturating_add(1) {
        return Err(invalid(format!(
            "run {} of the pair has already begun",
            status.starts
        )));
    }
    if let Some(member) = known.setup.member(status.pair.run()) {
        context.has_budget(&member.agent)?;
    }
    let now = Some(context.now);
    let is_new_turn = status.pair.run() == RunState::Working && !status.pair.is_restarted();
    Ok(PairStatus {
        starts: start,
        began_at: now,
        worked_at: if is_new_turn { now } else { status.worked_at },
        ..status
    })
}

/// Charges the running run; a run that is not running cannot end.
fn used(status: PairStatus, run: &Transcript) -> Result<PairStatus, Declined> {
    if status.began_at.is_none() || run.start != status.starts {
        return Err(invalid(format!(
            "run {} of the pair is not running",
            run.start
        )));
    }
    Ok(status.without(run))
}

/// Ends a pair that would continue although a person has its review, or its budget is spent.
fn bounded(context: &EventContext<'_>, known: &OpenPair, now: PairStatus) -> PairStatus {
    if now.pair.run().is_terminal() {
        return now;
    }
    let failure = if is_left_to_a_person(context.state, known) {
        PairFailure::WithAPerson
    } else if now.is_spent() {
        PairFailure::BudgetSpent
    } else {
        return now;
    };
    PairStatus {
        pair: now.pair.failed(failure),
        ..now
    }
}

fn moved(status: PairStatus, event: PairEvent) -> Result<PairStatus, Declined> {
    let after = |pair: Pair| PairStatus { pair, ..status };
    status
        .pair
        .after(event)
        .map(after)
        .map_err(|error: InvalidTransition| {
            Declined::new(Code::InvalidTransition, error.to_string())
        })
}

fn invalid(why: impl Into<String>) -> Declined {
    Declined::new(Code::DecisionInvalid, why)
}
