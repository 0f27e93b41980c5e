//! When: the loop that serves a workspace, what wakes it, the commands of agents it starts, and what
//! it tells supervisors and metrics. No rule of reviews, no parsing of arguments, no printing.

mod docket;
pub mod gc;
pub mod invocation;
pub mod logs;
pub mod mailroom;
mod metrics;
mod schedule;
pub mod serve;
pub mod service;
mod stderr;
mod supervisor;
pub mod tell;
mod unproven;
pub mod watch;
