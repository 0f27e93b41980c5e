//! Reads an output to its end, so that the program that prints it never blocks.

use std::io::{self, Read};

/// Hands each piece of the output to `take`, until its end or an error.
pub(crate) fn drain(mut output: impl Read, mut take: impl FnMut(&[u8])) {
    let mut buffer = [0; 65_536];
    loop {
        match output.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => take(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}
