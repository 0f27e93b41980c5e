//! What an agent may do with its own mail, in recorded workspaces and real repositories, in one program.

mod change;
mod recorded;
#[path = "../../../../tests/recorded_workspace.rs"]
mod recorded_workspace;
mod sent;
#[path = "../../../../tests/sh.rs"]
mod sh;
