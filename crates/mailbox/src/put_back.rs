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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use tempfile::TempDir;

    use super::*;

    fn workspace() -> (TempDir, AgentName, PathBuf) {
        let root = tempfile::tempdir().expect("a directory");
        let outbox = root.path().join("agents/codex/outbox");
        fs::create_dir_all(&outbox).expect("an outbox");
        (root, "codex".parse().expect("a name"), outbox)
    }

    fn temporary(outbox: &Path) -> PathBuf {
        outbox.join(format!(".settled-retry-{}.tmp", std::process::id()))
    }

    #[test]
    fn a_message_comes_back_whole_under_its_name_or_the_next_free_one() {
        let (root, codex, outbox) = workspace();
        fs::write(temporary(&outbox), "of a killed process").expect("a file");
        for (file, name) in [
            ("m.yaml", "m.yaml"),
            ("m.yaml", "m-retry1.yaml"),
            ("m.yaml", "m-retry2.yaml"),
            ("m.json", "m.json"),
            ("n", "n.yaml"),
            (".yaml", "message.yaml"),
        ] {
            let text = format!("the text of {name}");
            let put = put_back(root.path(), &codex, file, text.as_bytes());
            assert_eq!(put.expect("it can be put back"), name, "{file}");
            let found = fs::read_to_string(outbox.join(name)).expect("a file");
            assert_eq!(found, text);
        }
        assert!(!temporary(&outbox).exists());
    }

    #[test]
    fn a_failure_names_the_outbox_and_its_cause_and_leaves_nothing() {
        let (root, codex, outbox) = workspace();
        let failed = |file: &str| {
            let put = put_back(root.path(), &codex, file, b"text");
            let failed = put.expect_err("it cannot be put back");
            (failed.to_string(), failed.source.kind())
        };
        let too_long = "m".repeat(254) + ".yaml";
        let (told, kind) = failed(&too_long);
        assert!(told.starts_with("cannot write into agents/codex/outbox: "));
        assert_eq!(kind, io::ErrorKind::InvalidFilename);
        assert_eq!(fs::read_dir(&outbox).expect("an outbox").count(), 0);
        fs::create_dir(temporary(&outbox)).expect("a directory");
        assert_eq!(failed("m.yaml").1, io::ErrorKind::IsADirectory);
        fs::remove_dir_all(&outbox).expect("it is there");
        let (told, kind) = failed("m.yaml");
        assert!(told.starts_with("cannot open agents/codex/outbox: "));
        assert_eq!(kind, io::ErrorKind::NotFound);
    }
}
