//! The program `settled-host` as a person runs it, on hosts that share a ledger in a repository.

mod commands;
#[path = "../../../../tests/executable.rs"]
mod executable;
mod homes;
mod hosts;
mod joining;
mod keys;
mod logs;
mod mail;
mod policy;
#[path = "../../../../tests/sh.rs"]
mod sh;
mod slow_remote;
