//! The commands as processes, in a copy of a recorded workspace or in a new one that `serve --once` judges: what they
//! print, how they end, and what they say to run next. `golden/` has the longer texts; `UPDATE=1` rewrites them.

mod around;
mod desk;
mod mistakes;
mod options;
#[path = "../../../../tests/pseudo_terminal.rs"]
mod pseudo_terminal;
mod reading;
#[path = "../../../../tests/recorded_workspace.rs"]
#[expect(
    dead_code,
    reason = "other rooms also ask for an instant after the record"
)]
mod recorded_workspace;
mod writing;
