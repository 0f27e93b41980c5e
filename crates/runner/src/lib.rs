//! Processes of agents: starts one, reads its output, counts its turns, and ends it with everything
//! it started. Knows no ledger: what a run is for and what its words are worth is others' business.
//!
//! `launch` starts a `keeper`, the process that keeps one agent; `tree` ends all that runs below it, and what is in its `cgroup`;
//! `stream` reads what it prints; `checkout` gives it a tree of its own and `sandbox` walls around it; `folder` is where a
//! run leaves what it was and what it said.

pub mod cgroup;
pub mod checkout;
pub mod folder;
pub mod keeper;
pub mod launch;
pub mod orphans;
pub mod program;
pub mod prompt;
pub mod sandbox;
pub mod stream;
pub mod tree;
pub mod validation;
