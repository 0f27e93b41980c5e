//! Reads no more of a file than shows that it is too large.

use std::io::{self, Read};

use message_schema::limit::MESSAGE_BYTES_MAX;

/// One byte more than a message may have, which shows that it is too large.
pub(crate) const READ_MAX: u64 = MESSAGE_BYTES_MAX + 1;

/// The initial capacity: with it two calls read most messages, without it five.
const ROOM: usize = 8 * 1024;

/// Reads to the end, but at most [`READ_MAX`] bytes.
pub(crate) fn read(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(ROOM);
    from.take(READ_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}
