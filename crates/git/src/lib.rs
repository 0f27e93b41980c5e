//! Asks git about a change: its commits, its files, its digest, its diff. Runs the real `git` in such a way that
//! nothing in the repository, its config or the environment can start a program, fetch, change the answer, or keep git
//! running. Also makes and removes a worktree for a commit.

pub mod changes;
mod child;
mod clean;
mod repository;
mod size;
mod store;
mod worktree;

pub use changes::Changes;
pub use repository::{GitError, MergeBase, Repository};
pub use store::Store;
pub use worktree::copy_of;
