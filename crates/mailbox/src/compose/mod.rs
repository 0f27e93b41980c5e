//! Turns an agent's words into a message in its outbox and finds its outcome, for every command that writes as an
//! agent.
//!
//! - `change` adds what git knows about the change of a request;
//! - `draft` fills in what the sender left out; `message` holds the fields and has their text checked;
//! - `packet` gives a findings packet its place in the workspace;
//! - `post` does all of it, and `outbox` writes the checked message once and whole; `send` also finds its outcome;
//! - `forecast` tells how the daemon would judge a checked message now, and writes nothing;
//! - `lookout` waits for the daemon's verdict, using the files alone;
//! - `sent_before` finds an earlier message with the same id;
//! - `ask` reads the requests to a reviewer, `response_file` reads its answer, `omissions` finds what that leaves open,
//!   and `response` makes packet and body of it;
//! - `words_from` reports an error at the place where the author made it: a flag, a line of a file;
//! - `review_status` reports the state of an agent's reviews, as far as it may read that.
//!
//! Nothing here decides about a review: the daemon judges a message written here like any other file.

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
pub mod send;
pub mod sent_before;
pub mod words_from;
