//! Short forms of what `cargo xtask crash|faults|powerloss` run at length.

mod checker;
mod environment;
mod faults;
