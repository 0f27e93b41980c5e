//! What an agent may do with its own mail: read it, take it, answer it, wait for more, and have its
//! own program told. Never takes the lock and never decides anything.

pub mod awaited;
pub mod bell;
pub mod compose;
pub mod hooks;
pub mod mailbag;
pub mod managed;
pub mod mine;
