//! What the daemon writes to agents, delivered by a real spool.

mod notice_files;
mod room;
