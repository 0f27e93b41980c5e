//! The check of a response's turns against those its request allows.

use message_schema::Code;
use message_schema::body::Telemetry;

use super::context::MessageContext;
use crate::words::alert::Alert;
use crate::words::phase::Invocation;
use crate::words::refusal::Fault;

/// A response declares more turns than the round has.
pub(super) struct Overdrawn {
    declared: u64,
    allowed: u16,
}

/// Reads the turns a response declares, in its envelope or its telemetry: the larger number counts. It is the number of
/// turns of the whole round.
pub(super) fn overdrawn(
    context: &MessageContext<'_>,
    telemetry: Option<&Telemetry>,
    invocation: &Invocation,
) -> Option<Overdrawn> {
    let declared = context
        .envelope()
        .turns
        .max(telemetry.and_then(|telemetry| telemetry.turns))?;
    let allowed = invocation.turns.get();
    (declared > u64::from(allowed)).then_some(Overdrawn { declared, allowed })
}

impl Overdrawn {
    pub(super) fn fault(&self) -> Fault {
        Fault::new(
            Code::TurnBudgetExceeded,
            format!(
                "the approval took {} turns, the request allows {}",
                self.declared, self.allowed
            ),
        )
        .field("turns")
        .found(self.declared)
        .expected(format!("at most {} turns in this round", self.allowed))
        .fix(
            "a person decides; send review_feedback with what was found before the turns are spent",
        )
    }

    pub(super) fn alert(&self) -> Alert {
        Alert::TurnsOverdrawn {
            declared: self.declared,
            allowed: self.allowed,
        }
    }
}
