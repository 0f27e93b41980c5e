//! Whether a review holds for a commit: what a gate check asks of a workspace, and what a file of records
//! proves without one. Looks and answers; the ledger is never changed.
//!
//! Begin with `standing` (the question, and every reason for a no), then `file` (the format), `export` (which
//! records concern a pull request), `proof` (the records judged again), `patch` (the same change on another base).

mod export;
mod file;
mod patch;
mod proof;
mod standing;

pub use export::{ExportError, Exported, export};
pub use file::{Anchor, Damaged, Header, PolicyThen, Role, VerdictFile};
pub use patch::{Comparison, GitError, Patches};
pub use proof::{Proof, Unfounded, prove};
pub use standing::{Asked, Checked, NoAnswer, Reason, Remap, Verdict};
