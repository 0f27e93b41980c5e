//! Lets an agent work with its own mail: read it, take it, answer it, wait for more, and tell its own program about it.
//! Never takes the lock and never decides anything.

pub mod alerts;
pub mod answers;
pub mod awaiting;
pub mod compose;
pub mod hooks;
mod in_order;
pub mod in_transit;
pub mod judged_packet;
pub mod mailboxes;
pub mod managed_block;
pub mod my_reviews;
pub mod put_back;
mod receipts;
pub mod said;
pub mod served;
pub mod shown;
pub mod wakeup;
