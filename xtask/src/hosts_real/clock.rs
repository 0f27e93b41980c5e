//! Clocks that are wrong. A time namespace cannot shift the wall clock, and the daemon has no switch for it, so the daemons
//! run behind the library of Debian's `faketime`: it answers for the wall clock alone, from a file that is read again each
//! second. Clocks of the kernel, and so the times of files, stay as they are: to the daemon they look like those of a file
//! server with another clock.

use std::path::{Path, PathBuf};

use settled_tests::debian;

/// The beginning of a command of a daemon whose clock can be set.
pub(super) fn of(keep: &Path, host: &str) -> Result<Vec<String>, String> {
    let library = debian::faketime();
    set(keep, host, 0)?;
    let file = file(keep, host);
    Ok(vec![
        "env".to_owned(),
        format!("LD_PRELOAD={}", library.display()),
        format!("FAKETIME_TIMESTAMP_FILE={}", file.display()),
        "FAKETIME_CACHE_DURATION=1".to_owned(),
        "FAKETIME_DONT_FAKE_MONOTONIC=1".to_owned(),
        "NO_FAKE_STAT=1".to_owned(),
    ])
}

/// Sets a host's clock by so many seconds ahead of this machine's.
pub(super) fn set(keep: &Path, host: &str, ahead_s: i64) -> Result<(), String> {
    let file = file(keep, host);
    let fresh = file.with_extension("fresh");
    std::fs::write(&fresh, format!("{ahead_s:+}s\n"))
        .and_then(|()| std::fs::rename(&fresh, &file))
        .map_err(|error| format!("{}: {error}", file.display()))
}

fn file(keep: &Path, host: &str) -> PathBuf {
    keep.join(format!("{host}.clock"))
}
