//! A refusal: the faults of a message that is correct but not legal now, and the cost to the reviewer.

use message_schema::Code;
use message_schema::id::FindingId;
use serde::{Deserialize, Serialize};

use crate::key::ReviewKey;

/// The refusal of a message. It names all faults of the message at once; the code of the first is the refusal's code.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// At least one.
    pub faults: Vec<Fault>,
    /// The review it concerns, if it is known.
    pub review: Option<Box<ReviewKey>>,
    /// True if the sender can correct the message and send it again.
    pub retryable: bool,
    /// The messages that can be sent next, each with its sender.
    pub legal_next: Vec<String>,
    /// The cost to the reviewer.
    pub costs: Costs,
}

/// The cost of a refusal to the reviewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Costs {
    /// Nothing: the state stays as it was.
    Nothing,
    /// One of its attempts.
    Attempt,
    /// Its invocation: the budget is spent.
    Invocation,
}

/// One fault of a message.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// Its code.
    pub code: Code,
    /// The dotted field it is about: `body.round`, `to`; in the packet `findings[2].action`.
    pub field: Option<String>,
    /// The thread it is about.
    pub thread: Option<FindingId>,
    /// The clause of the quality gate it breaks.
    pub clause: Option<Clause>,
    /// One sentence.
    pub message: String,
    /// The value in the message.
    pub found: Option<String>,
    /// The values that would have been accepted.
    pub expected: Option<String>,
    /// The remedy.
    pub fix: Option<String>,
}

impl Fault {
    /// Makes a fault from its sentence; the methods below add details.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            field: None,
            thread: None,
            clause: None,
            message: message.into(),
            found: None,
            expected: None,
            fix: None,
        }
    }
    /// Names the field.
    pub fn field(self, field: &str) -> Self {
        Self {
            field: Some(field.to_owned()),
            ..self
        }
    }

    /// Names the packet's finding, from 0, that has the field.
    pub fn in_finding(self, index: usize) -> Self {
        let field = self
            .field
            .map_or_else(String::new, |field| format!(".{field}"));
        Self {
            field: Some(format!("findings[{index}]{field}")),
            ..self
        }
    }
    /// Names the thread.
    pub fn thread(self, thread: &FindingId) -> Self {
        Self {
            thread: Some(thread.clone()),
            ..self
        }
    }
    /// Names the clause of the gate.
    pub fn clause(self, clause: Clause) -> Self {
        Self {
            clause: Some(clause),
            ..self
        }
    }
    /// Adds the value that was found.
    pub fn found(self, found: impl std::fmt::Display) -> Self {
        Self {
            found: Some(found.to_string()),
            ..self
        }
    }
    /// Adds the values that would have been accepted.
    pub fn expected(self, expected: impl Into<String>) -> Self {
        Self {
            expected: Some(expected.into()),
            ..self
        }
    }
    /// Adds the remedy.
    pub fn fix(self, fix: impl Into<String>) -> Self {
        Self {
            fix: Some(fix.into()),
            ..self
        }
    }

    /// Makes a refusal of this one fault, outside any review.
    pub fn refuses(self) -> Refusal {
        outside_review(vec![self])
    }
}

/// Makes a refusal of these faults, outside any review.
pub fn outside_review(faults: Vec<Fault>) -> Refusal {
    Refusal {
        retryable: faults.iter().all(|fault| fault.code.is_retryable()),
        faults,
        review: None,
        legal_next: Vec::new(),
        costs: Costs::Nothing,
    }
}

impl Refusal {
    /// Returns the code under which the refusal is filed.
    pub fn code(&self) -> Code {
        self.faults
            .first()
            .expect("a refusal names at least one fault")
            .code
    }
}

/// Files faults under the review they concern.
pub fn in_review(
    faults: Vec<Fault>,
    key: &ReviewKey,
    legal_next: Vec<String>,
    costs: Costs,
) -> Refusal {
    let retryable = faults.iter().all(|fault| fault.code.is_retryable());
    Refusal {
        faults,
        review: Some(Box::new(key.clone())),
        retryable,
        legal_next,
        costs,
    }
}

/// A condition of the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clause {
    /// No P0 is open or escalated.
    P0,
    /// No P1 and no blocking P2 is open or escalated.
    Blocking,
    /// Every open P2 or P3 is covered by a nit.
    Nits,
    /// Every validation command passed.
    Validation,
    /// The lgtm itself does not say `fail`.
    Contradiction,
    /// The approval shows that its change was read.
    Evidence,
    /// Author and reviewer are of two vendors.
    ReviewerOtherVendor,
    /// The change has no path that only a person may approve.
    HumanPaths,
    /// The approval names the commit that was reviewed.
    Head,
}

impl Clause {
    /// Returns the word in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::P0 => "p0",
            Self::Blocking => "blocking",
            Self::Nits => "nits",
            Self::Validation => "validation",
            Self::Contradiction => "contradiction",
            Self::Evidence => "evidence",
            Self::ReviewerOtherVendor => "reviewer_other_vendor",
            Self::HumanPaths => "human_paths",
            Self::Head => "head",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_holds_every_detail_that_is_added() {
        let thread = FindingId::new("F-001").expect("an id");
        let fault = Fault::new(Code::RoundLimitExceeded, "no round is left")
            .field("action")
            .in_finding(2)
            .thread(&thread)
            .clause(Clause::Blocking)
            .found(3)
            .expected("at most 2")
            .fix("resolve it");
        let expected = Fault {
            code: Code::RoundLimitExceeded,
            field: Some("findings[2].action".to_owned()),
            thread: Some(thread),
            clause: Some(Clause::Blocking),
            message: "no round is left".to_owned(),
            found: Some("3".to_owned()),
            expected: Some("at most 2".to_owned()),
            fix: Some("resolve it".to_owned()),
        };
        assert_eq!(fault, expected);
    }
}
