//! What is written in a Settled file: ids, limits, the envelope, the four review bodies, the
//! findings packet, and the reader that turns bytes into them with a place for every value.
//!
//! Pure: no disk, no clock, no environment. Whether a message is *correct* is the question of
//! `validate-message`; what it *does* is the question of `review`.

pub mod body;
pub mod code;
pub mod envelope;
pub mod id;
pub mod limit;
pub mod packet;

pub use code::Code;
