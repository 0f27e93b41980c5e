//! Reads no more of a file than shows that it is too large, and waits for no writer that never comes.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

use message_schema::limit::MESSAGE_BYTES_MAX;
use rustix::fs::{OFlags, fcntl_setfl};

/// One byte more than a message may have, which shows that it is too large.
pub(crate) const READ_MAX: u64 = MESSAGE_BYTES_MAX + 1;

/// The initial capacity: with it two calls read most messages, without it five.
const ROOM: usize = 8 * 1024;

/// The longest wait for somebody to open the other end of a FIFO.
const WRITER_MAX: Duration = Duration::from_secs(1);

/// Reads to the end, but at most [`READ_MAX`] bytes.
pub(crate) fn read(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(ROOM);
    from.take(READ_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a file, a pipe or a device like [`read`]. A FIFO that nobody opens for writing is an error.
pub(crate) fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).expect("the flags of an opening are few");
    let mut file = File::options().read(true).custom_flags(flags).open(path)?;
    let mut bytes = Vec::with_capacity(ROOM);
    match (&file).take(READ_MAX).read_to_end(&mut bytes) {
        // A file that gave bytes and ended is read whole; asking for its kind would cost a call for each of many files.
        Ok(count) if count > 0 => return Ok(bytes),
        Ok(_) if file.metadata()?.file_type().is_fifo() => bytes = first_of_pipe(&mut file, path)?,
        Ok(_) => return Ok(bytes),
        // The writer of a pipe has nothing more to say yet.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
        Err(error) => return Err(error),
    }
    fcntl_setfl(&file, OFlags::empty())?;
    read(bytes.as_slice().chain(file))
}

/// Waits for a writer of the pipe, and returns what can be read at once.
fn first_of_pipe(pipe: &mut File, path: &Path) -> io::Result<Vec<u8>> {
    let began = Instant::now();
    let mut bytes = vec![0; ROOM];
    loop {
        match pipe.read(&mut bytes) {
            // Nobody can open a pipe without a name, such as that of `<(command)`: this is its end.
            Ok(0) if path.canonicalize().is_err() => return Ok(Vec::new()),
            Ok(0) if began.elapsed() < WRITER_MAX => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Ok(0) => {
                let why = "it is a FIFO that nobody has open for writing; expected a file, or `-` for standard input";
                return Err(io::Error::other(why));
            }
            Ok(count) => {
                bytes.truncate(count);
                return Ok(bytes);
            }
            // Its writer has nothing to say yet.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Vec::new()),
            Err(error) => return Err(error),
        }
    }
}
