//! The invariants of an accepted response: each open thread got one legal action, and that action had its effect.

use message_schema::envelope::{MessageType, ReviewKind};
use message_schema::id::FindingId;
use message_schema::packet::{Action, Severity, Stance};
use review::{REPLIES_MAX, Review, ReviewKey, RoundKind, Thread, ThreadMode, ThreadState};

use super::{Broken, Invariant, holds, report};
use crate::bounds::Bounds;
use crate::describe::{NAMES, Say};
use crate::inputs::Input;

/// Judges the effect of a response on every thread.
pub(super) fn judge(
    bounds: &Bounds,
    input: &Input,
    key: &ReviewKey,
    was: &Review,
    now: &Review,
) -> Result<(), Broken> {
    let round_kind = was.round_kind();
    let said = |id: &FindingId| {
        let place = NAMES.iter().position(|(name, ..)| *name == id.as_str());
        place
            .and_then(|place| input.says.get(place))
            .copied()
            .unwrap_or(Say::Silent)
    };
    for (id, after) in &now.threads {
        let judged = match was.threads.get(id) {
            None => holds(
                NAMES.iter().any(|(name, ..)| *name == id.as_str()),
                Invariant::LegalActions,
                || format!("`{id}` repeats a thread and opened one of its own"),
            ),
            Some(thread) if thread.is_open() => {
                let heard = Heard {
                    bounds,
                    input,
                    was,
                    id,
                    thread,
                    after,
                    round_kind,
                };
                heard.open(said(id))
            }
            Some(thread) => settled(id, thread, after, said(id)),
        };
        judged.map_err(|broken| Broken {
            why: format!("{key}: {}", broken.why),
            ..broken
        })?;
    }
    Ok(())
}

/// An open thread before and after the response that answers it.
struct Heard<'a> {
    bounds: &'a Bounds,
    input: &'a Input,
    was: &'a Review,
    id: &'a FindingId,
    thread: &'a Thread,
    after: &'a Thread,
    round_kind: RoundKind,
}

impl Heard<'_> {
    fn open(&self, said: Say) -> Result<(), Broken> {
        match said {
            Say::Silent => self.silence(),
            Say::Act(action, stance) => self.act(action, stance),
            Say::Status(status, stance) => self.status(status.is_settled(), stance),
            Say::Worse => self.status(false, None),
            Say::Both => self.breach("was resolved and raised again in one breath"),
            Say::Again | Say::AgainEscalated => self.breach("was raised again while it is open"),
        }
    }

    fn breach(&self, why: &str) -> Result<(), Broken> {
        Err(Broken::new(
            Invariant::LegalActions,
            format!("{} {why}: {:?}", self.id, self.after),
        ))
    }

    fn status(&self, is_settled: bool, stance: Option<Stance>) -> Result<(), Broken> {
        match self.bounds.policy.threads {
            ThreadMode::Inferred if is_settled => self.act(Action::Resolve, stance),
            ThreadMode::Inferred if self.round_kind == RoundKind::Last => {
                self.act(Action::Escalate, stance)
            }
            ThreadMode::Inferred => self.act(Action::Reply, stance),
            ThreadMode::Explicit => self.left(),
        }
    }

    fn act(&self, action: Action, stance: Option<Stance>) -> Result<(), Broken> {
        let stance = stance.unwrap_or(self.thread.dialogue.stance);
        if !self
            .thread
            .legal_actions(stance, self.round_kind)
            .contains(&action)
        {
            return self.breach(&format!("took {action}, which is not legal"));
        }
        if self.round_kind == RoundKind::Last && action == Action::Reply {
            return self.breach("took a reply in the last round");
        }
        let became = match action {
            Action::Resolve => self.after.state == ThreadState::Resolved,
            Action::Veto | Action::Escalate => self.after.is_held(),
            // In an approval, a nit covers a thread that is still discussed if it does not block.
            Action::Reply => self.after.is_open() || self.is_deferred(),
        };
        if !became {
            return self.breach(&format!("took {action}"));
        }
        if self.after.dialogue.replies > REPLIES_MAX || rank(self.after) >= rank(self.thread) {
            return self.breach("did not fall in rank");
        }
        Ok(())
    }

    /// Silence resolves the findings that the author named. If it named none, the silence of an lgtm resolves all but a
    /// P0.
    fn silence(&self) -> Result<(), Broken> {
        let may_resolve = report(&self.was.phase).is_some_and(|report| {
            let in_general = self.is_lgtm() && self.thread.severity != Severity::P0;
            report.findings.contains(self.id) || (report.findings.is_empty() && in_general)
        });
        let is_inferred = self.bounds.policy.threads == ThreadMode::Inferred;
        if self.after.is_resolved_by_silence() && may_resolve && is_inferred {
            Ok(())
        } else {
            self.left()
        }
    }

    fn is_lgtm(&self) -> bool {
        self.input.valid.envelope().kind == MessageType::Review(ReviewKind::Lgtm)
    }

    fn is_deferred(&self) -> bool {
        self.is_lgtm() && self.after.state == ThreadState::Deferred && !self.after.blocking
    }

    /// Without an action a thread may only be left as a spent budget or a nit leaves it.
    fn left(&self) -> Result<(), Broken> {
        let is_carried = self.input.carries && self.after.is_open();
        if self.is_deferred() || is_carried {
            Ok(())
        } else {
            self.breach("was given no action")
        }
    }
}

/// A thread that is not open reopens at most once; after that it can only be escalated.
fn settled(id: &FindingId, thread: &Thread, after: &Thread, said: Say) -> Result<(), Broken> {
    let is_final = thread.was_reopened() || thread.was_resolved_by_person();
    if thread.state == after.state {
        return Ok(());
    }
    let may = match (thread.state, after.state) {
        (ThreadState::Resolved, ThreadState::Open) => {
            !is_final && after.was_reopened() && rank(after) < rank(thread)
        }
        (ThreadState::Resolved, ThreadState::Held(_)) => {
            is_final && matches!(said, Say::Act(Action::Escalate, _) | Say::AgainEscalated)
        }
        // Reopened, and covered by a nit at once.
        (ThreadState::Resolved, ThreadState::Deferred) => {
            !is_final && after.was_reopened() && !after.blocking
        }
        (ThreadState::Deferred, ThreadState::Open) => {
            after.blocking && (!thread.blocking || after.severity < thread.severity)
        }
        (ThreadState::Open | ThreadState::Held(_), _)
        | (ThreadState::Resolved, ThreadState::Resolved)
        | (
            ThreadState::Deferred,
            ThreadState::Resolved | ThreadState::Held(_) | ThreadState::Deferred,
        ) => false,
    };
    holds(may, Invariant::LegalActions, || {
        format!("{id}: {thread:?} became {after:?}")
    })
}

/// Returns a thread's rank, which each action lowers.
pub(crate) fn rank(thread: &Thread) -> i32 {
    let unused = 2 * i32::from(!thread.was_reopened());
    let replies = i32::from(REPLIES_MAX) - i32::from(thread.dialogue.replies);
    unused + replies + i32::from(thread.is_open())
}
