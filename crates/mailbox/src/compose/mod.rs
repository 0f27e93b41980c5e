//! From what an agent wants to say to a message in its outbox, and to what became of it: one way for every command
//! that writes as an agent.
//!
//! - `letter` fills in what was not said; `draft` holds the fields and the text made of them, and has them checked;
//! - `packet` gives a findings packet its place in the workspace;
//! - `post` goes the whole way, and `outbox` writes the checked message, once and whole;
//! - `verdict` tells by the files alone what the daemon made of it;
//! - `known` finds what was sent before under the same id;
//! - `ask` says what a reviewer is asked, `sheet` reads what it wrote down, `gaps` names what that leaves unsaid, and
//!   `response` makes packet and body of it;
//! - `settles` tells which letters in hand a message dealt with;
//! - `standing` says where an agent's reviews stand, as far as it may read that.
//!
//! Nothing here decides about a review: a message written here is judged like any other file.

pub mod ask;
pub mod draft;
pub mod gaps;
pub mod known;
pub mod letter;
pub mod outbox;
pub mod packet;
pub mod post;
pub mod response;
pub mod settles;
pub mod sheet;
pub mod standing;
pub mod verdict;
