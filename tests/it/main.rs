//! Tests of the whole, one binary: the real daemon, real files, the real peer.

mod agree;
mod backlog;
mod briefs;
mod cli;
mod codes;
mod docs;
mod edges;
mod events;
mod first_review;
mod housekeeping;
mod kill;
mod oacp;
mod once;
mod orders;
mod outbox;
mod replay;
mod scenarios;
mod writers;
