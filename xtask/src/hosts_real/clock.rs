//! Wrong clocks. A time namespace cannot shift the wall clock, and the daemon has no option for it, so the daemons run
//! behind the library of Debian's `faketime`, which fakes only the wall clock, from a file that it rereads each second.
//! The kernel's clocks, and so the times of files, stay as they are: to the daemon they look like those of a file
//! server with another clock.

use std::path::{Path, PathBuf};

use settled_tests::debian;

/// Returns the first words of a command for a daemon with a settable clock.
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

/// Sets a host's clock `ahead_s` seconds ahead of this machine's.
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
