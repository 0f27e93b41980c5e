//! Calls of the kernel and the C library that no crate wraps. The workspace forbids unsafe code, so this crate contains
//! only these calls.

mod heap;
mod lease;

pub use heap::{give_back_memory, keep_little_memory};
pub use lease::{Writer, writer};
