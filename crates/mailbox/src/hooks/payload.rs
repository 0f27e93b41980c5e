//! Reads the input that a program gives its hook on standard input. Some programs never close it, so the wait is short.

use std::io::IsTerminal;
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The largest payload to read, in bytes.
pub const PAYLOAD_MAX: u64 = 1024 * 1024;

/// The time a program has to write its payload, in milliseconds.
const PATIENCE_MS: i64 = 200;

/// Reads the program's payload until it ends or nothing arrives for a while. A terminal has none.
pub fn payload(stdin: &(impl AsFd + IsTerminal)) -> Vec<u8> {
    let mut bytes = Vec::new();
    if stdin.is_terminal() {
        return bytes;
    }
    let patience = Timespec {
        tv_sec: 0,
        tv_nsec: PATIENCE_MS * 1_000_000,
    };
    let mut piece = [0; 4096];
    while (bytes.len() as u64) < PAYLOAD_MAX {
        let mut ready = [PollFd::new(stdin, PollFlags::IN)];
        if !poll(&mut ready, Some(&patience)).is_ok_and(|ready| ready > 0) {
            break;
        }
        match rustix::io::read(stdin, &mut piece) {
            Ok(0) | Err(_) => break,
            Ok(count) => bytes.extend_from_slice(&piece[..count]),
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::fd::OwnedFd;
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_program_that_keeps_its_end_open_is_not_waited_for() {
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        writer.write_all(b"{}").expect("somebody reads");
        let (tell, told) = channel();
        // On a thread, so that a read that never ends fails the test instead of blocking it.
        thread::spawn(move || tell.send(payload(&OwnedFd::from(reader))));
        assert_eq!(
            told.recv_timeout(Duration::from_secs(60)),
            Ok(b"{}".to_vec())
        );
        drop(writer);
    }
}
