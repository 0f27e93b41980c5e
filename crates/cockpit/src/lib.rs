//! One model of the whole mailroom, for every front end: who must move, how long they have, what is missing and the one
//! command that brings it; then each review in detail, the ledger's head, the agents' commands and the history.
//!
//! `follow` reads the ledger once and then only what is new. `overview` and `detail` are functions of what it read.
//! Every time in the model is an instant, so a model changes only when something happens. Texts are as agents wrote
//! them: a front end escapes what it shows.
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
