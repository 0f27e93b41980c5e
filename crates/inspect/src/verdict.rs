//! Decides whether a review holds for a commit: the answer of a gate check in a workspace, and the proof from a file of
//! records without one. Never changes the ledger.
//!
//! Begin with `approval` (the question, and every reason for a no), then `file` (the format), `export` (which records
//! concern a pull request), `proof` (the records judged again), `patch` (the same change on another base), `summary`
//! (the evidence).

mod approval;
mod export;
mod file;
mod patch;
mod proof;
mod summary;

pub use approval::{ApprovalQuestion, ApprovalVerdict, CheckedReview, NoAnswer, Reason, Remap};
pub use export::{ExportError, Exported, export};
pub use file::{Anchor, Damaged, Header, PolicyThen, RecordUse, VerdictFile};
pub use git::GitError;
pub use patch::{Comparison, Patches};
pub use proof::{Proof, Unfounded, prove};
pub use summary::EvidenceSummary;
