//! Short forms of what `cargo xtask crash|faults|powerloss|soak|fuzz daemon` run at length.

mod checker;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod crash;
mod environment;
mod faults;
mod fuzz;
mod power;
#[cfg(target_os = "linux")]
mod soak;
mod traced;
