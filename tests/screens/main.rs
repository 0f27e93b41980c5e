//! The live screen, `settled-watch`: its frames in each state of a review at every width, its speed, and that it
//! restores a real terminal. The frames are compared with `tests/golden/`; `UPDATE=1` rewrites them.

#![expect(
    clippy::print_stdout,
    reason = "the runner keeps it, and shows it with a failure or on request"
)]

mod frames;
mod pictures;
#[path = "../pseudo_terminal.rs"]
mod pseudo_terminal;
mod speed;
mod stage;
mod states;
mod terminal;
