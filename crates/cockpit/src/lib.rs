//! One model of the whole mailroom, for every front end: who must move, how long they have, what is missing and the one
//! command that brings it; then each review in detail, the ledger's head, the agents' commands and the history.
//!
//! `follow` reads: it takes up the ledger once and goes on from there at next to no cost. `overview` and `detail` are
//! functions of what it read. Every time in the model is an instant, so that a model changes only when something happens.
//! Texts are as agents wrote them: the front end that shows one escapes it.
//!
//! Nothing is computed twice: rows, gates, threads, problems and commands are those of `settled status`, `gate check`,
//! `threads`, `problems` and `why`.

pub mod agents;
pub mod detail;
pub mod follow;
pub mod gate;
pub mod history;
pub mod needs;
pub mod overview;
pub mod supply;
pub mod tasks;
pub mod timeline;
pub mod urgency;
pub mod words;

pub use detail::ReviewDetail;
pub use follow::Follower;
pub use overview::Overview;
pub use urgency::Urgency;
