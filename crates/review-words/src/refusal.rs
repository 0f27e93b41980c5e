//! A refusal: what is wrong with a correct message at this point, and what it costs.

use message_schema::Code;
use message_schema::id::FindingId;
use serde::{Deserialize, Serialize};

use crate::key::ReviewKey;

/// Why a message moves nothing. All faults of one message are named at once; the first is the
/// one the refusal is filed under.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// At least one.
    pub faults: Vec<Fault>,
    /// The review it concerns, if that could be told.
    pub review: Option<Box<ReviewKey>>,
    /// Whether the same message, corrected, can be sent again.
    pub retryable: bool,
    /// What can be sent next and by whom.
    pub legal_next: Vec<String>,
    /// What it costs the reviewer.
    pub costs: Costs,
}

/// What a refusal costs the reviewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Costs {
    /// Nothing: the state stays as it was.
    Nothing,
    /// One of its attempts.
    Attempt,
    /// Its invocation: the budget is spent.
    Invocation,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// Its code.
    pub code: Code,
    /// The field it is about, dotted: `body.round`, `to`; in the packet `findings[2].action`.
    pub field: Option<String>,
    /// The thread it is about.
    pub thread: Option<FindingId>,
    /// The clause of the quality gate it breaks.
    pub clause: Option<Clause>,
    /// One sentence.
    pub message: String,
    /// What the message says.
    pub found: Option<String>,
    /// What would have been accepted.
    pub expected: Option<String>,
    /// What to do.
    pub fix: Option<String>,
}

impl Fault {
    /// A fault with its sentence; details are added by the methods below.
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

    /// Says in which finding of the packet, from 0, the field stands.
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
    /// Says what was found.
    pub fn found(self, found: impl std::fmt::Display) -> Self {
        Self {
            found: Some(found.to_string()),
            ..self
        }
    }
    /// Says what would have been accepted.
    pub fn expected(self, expected: impl Into<String>) -> Self {
        Self {
            expected: Some(expected.into()),
            ..self
        }
    }
    /// Says what to do.
    pub fn fix(self, fix: impl Into<String>) -> Self {
        Self {
            fix: Some(fix.into()),
            ..self
        }
    }

    /// The refusal this one fault makes, outside any review.
    pub fn refuses(self) -> Refusal {
        outside_review(vec![self])
    }
}

/// The refusal these faults make, outside any review.
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
    /// The code the refusal is filed under.
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
    /// No P0 is open or with a person.
    P0,
    /// No P1 and no blocking P2 is open or with a person.
    Blocking,
    /// Every open P2 or P3 is covered by a nit.
    Nits,
    /// Every validation command passed.
    Validation,
    /// The lgtm itself says pass.
    Contradiction,
    /// The approval shows that its change was read.
    Evidence,
    /// Author and reviewer are of two vendors.
    ReviewerOtherVendor,
    /// Nothing changes that only a person approves.
    HumanPaths,
    /// The approval names the commit that was reviewed.
    Head,
}

impl Clause {
    /// The word in reports.
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
