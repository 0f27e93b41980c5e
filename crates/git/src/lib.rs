//! What does git say of a change: its commits, its files, its digest, its diff. Answers for asking the real `git` so that
//! nothing in the repository, its config or the environment runs a program, fetches, or changes the answer.

pub mod changes;
mod repository;

pub use changes::Changes;
pub use repository::{GitError, MergeBase, Repository};
