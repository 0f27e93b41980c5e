//! The live screen, `settled-watch`: what it shows in each state of a review at every width, how fast it draws, and that it
//! leaves a real terminal as it was. The frames are kept under `tests/golden/`; `UPDATE=1` rewrites them.

#![expect(
    clippy::print_stdout,
    reason = "the runner keeps it, and shows it with a failure or on request"
)]

mod frames;
mod pictures;
mod speed;
mod stage;
mod states;
mod terminal;
