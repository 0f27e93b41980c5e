//! Asks git about a change: its commits, its files, its digest, its diff. Runs the real `git` so that nothing in the
//! repository, its config or the environment runs a program, fetches, or changes the answer. Also makes and removes a
//! worktree for a commit.

pub mod changes;
mod repository;
mod store;
mod worktree;

pub use changes::Changes;
pub use repository::{GitError, MergeBase, Repository};
pub use store::Store;
