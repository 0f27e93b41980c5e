//! The screen of a recorded workspace, drawn on a terminal in memory, and the program on a terminal of its own.

mod recorded;
#[path = "../../../../tests/recorded_workspace.rs"]
mod recorded_workspace;
// Elsewhere there is no `setsid` to start it with.
#[cfg(target_os = "linux")]
mod terminal;
