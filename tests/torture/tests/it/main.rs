//! Short forms of what `cargo xtask crash|faults|powerloss|soak` run at length.

mod checker;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod crash;
mod environment;
mod faults;
mod power;
#[cfg(target_os = "linux")]
mod soak;
mod traced;
