//! Tests of the whole, one binary: the real daemon, real files, the real peer.

mod agree;
mod backlog;
mod briefs;
mod cli;
mod codes;
mod docs;
mod edges;
mod events;
mod fair;
mod first_review;
mod hooks;
mod hostile;
mod housekeeping;
mod log;
mod oacp;
mod once;
mod orders;
mod outbox;
mod readers;
mod replay;
mod scenarios;
mod templates;
mod unproven;
mod users;
mod verdicts;
mod writers;
