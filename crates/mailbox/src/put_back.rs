//! Puts a refused message back into its outbox, unchanged and atomically. Its dead letter stays in place.

use std::io;
use std::path::Path;

use message_schema::id::AgentName;
use spool::{Disk as _, FileName, OpenMode, Os};

/// The number of names to try before giving up.
const NAMES_MAX: u32 = 1_000;

/// The reason why nothing was put back.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what}: {source}")]
pub struct NotPutBack {
    /// The operation that failed.
    what: String,
    /// The cause.
    pub source: io::Error,
}

/// Puts the bytes into the outbox they came from, under `file` or the next free name, and returns that name. The file
/// appears whole or not at all; a kill before that leaves a hidden file.
pub fn put_back(
    root: &Path,
    agent: &AgentName,
    file: &str,
    original: &[u8],
) -> Result<String, NotPutBack> {
    let outbox = spool::dirs::of_agent(agent.as_str(), spool::dirs::OUTBOX);
    let failed = |what: &str| {
        let what = format!("{what} {outbox}");
        move |source| NotPutBack { what, source }
    };
    let at = Os
        .open_root(root)
        .map_err(failed("open the workspace of"))?;
    let dir = Os
        .open_dir(&at, Path::new(&outbox))
        .map_err(failed("open"))?;
    let temporary = format!(".settled-retry-{}.tmp", std::process::id());
    let temporary = Path::new(&temporary);
    // A killed process with our pid may have left one.
    match Os.remove(&dir, temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(failed("write into")(error));
        }
        Ok(()) | Err(_) => {}
    }
    let written = || -> io::Result<String> {
        let opened = Os.open(&dir, temporary, OpenMode::New)?;
        let mut filled = 0;
        while filled < original.len() {
            filled += Os.write_at(&opened, &original[filled..], filled as u64)?;
        }
        Os.sync_data(&opened)?;
        drop(opened);
        for n in 0..NAMES_MAX {
            let name = name(file, n);
            match Os.rename_new(&dir, temporary, &dir, Path::new(&name)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                result => {
                    result?;
                    Os.sync_dir(&dir)?;
                    return Ok(name);
                }
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    };
    written().map_err(|error| {
        // If this fails, it stays hidden, and nobody takes it for a message.
        let _ = Os.remove(&dir, temporary);
        failed("write into")(error)
    })
}

/// The `n`-th name to try; a name without a message's extension gets one.
fn name(file: &str, n: u32) -> String {
    let (stem, ending) = file.rsplit_once('.').unwrap_or((file, "yaml"));
    let stem = if FileName::new(stem).is_ok() {
        stem
    } else {
        "message"
    };
    if n == 0 {
        format!("{stem}.{ending}")
    } else {
        format!("{stem}-retry{n}.{ending}")
    }
}
