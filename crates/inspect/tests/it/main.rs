//! The state of recorded and changed workspaces as the room shows it, in one program.

mod approvals;
mod hosts;
mod outboxes;
mod outcomes;
mod patches;
mod recorded;
#[path = "../../../../tests/recorded_workspace.rs"]
mod recorded_workspace;
mod refused;
mod reviews;
mod rewritten;
#[path = "../../../../tests/sh.rs"]
mod sh;
mod states;
mod traces;
mod verdicts;
