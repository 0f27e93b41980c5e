//! A terminal for the tests of programs that draw on one. Rooms include this file by its path, because no room depends on
//! the tests of the whole.

use std::fs::File;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// Opens a terminal of this size: the end at which a person sits, and the one for a program.
pub(crate) fn open(columns: u16, rows: u16) -> (File, File) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let near = openpt(flags).expect("a terminal");
    grantpt(&near).expect("granted");
    unlockpt(&near).expect("unlocked");
    tcsetwinsize(&near, size(columns, rows)).expect("a size");
    let name = ptsname(&near, Vec::new()).expect("a name");
    // Not as the terminal of this process, whose end would then be ours.
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let far = rustix::fs::open(name.as_c_str(), flags, Mode::empty()).expect("the other end");
    (File::from(near), File::from(far))
}

pub(crate) fn size(columns: u16, rows: u16) -> Winsize {
    Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}
