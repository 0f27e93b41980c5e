//! From what an agent wants to say to a message in its outbox, and to what became of it: one way for every command
//! that writes as an agent.
//!
//! - `change` says of a request what git knows of its change;
//! - `draft` fills in what its sender left out; `message` holds the fields and their text, and has them checked;
//! - `packet` gives a findings packet its place in the workspace;
//! - `post` goes the whole way, and `outbox` writes the checked message, once and whole;
//! - `forecast` says what the daemon would say about a checked message now, and writes nothing;
//! - `lookout` waits for the daemon's verdict, by the files alone;
//! - `sent_before` finds the message that was sent under the same id;
//! - `ask` reads the requests to a reviewer, `response_file` reads its answer, `omissions` names what that leaves open,
//!   and `response` makes packet and body of it;
//! - `words_from` names what is wrong with a message by what its author wrote: a flag, a line of a file;
//! - `review_status` says where an agent's reviews are, as far as it may read that.
//!
//! Nothing here decides about a review: a message written here is judged like any other file.

pub mod ask;
pub mod change;
pub mod draft;
pub mod forecast;
pub mod lookout;
pub mod message;
pub mod omissions;
pub mod outbox;
pub mod packet;
pub mod post;
pub mod response;
pub mod response_file;
pub mod review_status;
pub mod sent_before;
pub mod words_from;
