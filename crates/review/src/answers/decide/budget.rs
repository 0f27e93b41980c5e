//! The check of a response's turns against those its request allows.

use message_schema::Code;

use review_words::alert::Alert;
use review_words::phase::Invocation;
use review_words::refusal::Fault;

/// A response declares more turns than the round has.
pub(super) struct Overdrawn {
    declared: u64,
    allowed: u16,
}

/// Compares the turns that a response declares for the whole round with those of its request.
pub(super) fn overdrawn(declared: Option<u64>, invocation: &Invocation) -> Option<Overdrawn> {
    let (declared, allowed) = (declared?, invocation.turns.get());
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
