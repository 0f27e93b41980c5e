//! The program `settled-host` as a person runs it, on hosts that share a ledger in a repository.

mod commands;
mod homes;
mod hosts;
mod joining;
mod keys;
mod logs;
mod mail;
mod policy;
mod slow_remote;
