//! Runs the processes of agents: starts one, reads its output, counts its turns, and ends it with everything it
//! started. It knows neither the ledger, nor the purpose of a run, nor the meaning of its output.
//!
//! `launch` starts a `keeper`, the process that keeps one agent; `tree` ends every process below it and in its
//! `cgroup`; `stream` reads its output; `checkout` gives it a worktree and `sandbox` walls around it; `folder` has the
//! record of a run and its output.

pub mod cgroup;
pub mod checkout;
mod drain;
pub mod folder;
pub mod keeper;
pub mod launch;
pub mod orphans;
pub mod program;
pub mod prompt;
pub mod sandbox;
pub mod shell;
pub mod stream;
pub mod tree;
pub mod validation;
