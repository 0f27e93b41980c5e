//! Files that are named on the command line, and standard input, which is called `-`.

use std::io::{self, Read as _};
use std::path::Path;

use mailbox::compose::packet::read;
use mailbox::compose::response_file::ResponseFile;
use message_schema::limit::PACKET_BYTES_MAX;
use message_schema::line::escaped;
use serde_json::Value;

use super::failure::Failure;
use crate::exit::Exit;

/// The text of a file of at most 256 KiB.
pub(super) fn text(path: &Path) -> Result<String, Failure> {
    let bytes = if path == Path::new("-") {
        standard_input()
    } else {
        read(path)
    };
    let failed = |why: String| {
        Failure::plain(
            Exit::Failed,
            format!("{}: {why}", escaped(&path.display().to_string())),
        )
    };
    let bytes = bytes.map_err(|error| {
        let is_missing = error.kind() == io::ErrorKind::NotFound;
        let exit = if is_missing {
            Exit::NotFound
        } else {
            Exit::Failed
        };
        Failure {
            exit,
            ..failed(error.to_string())
        }
    })?;
    String::from_utf8(bytes).map_err(|_| failed("it is no UTF-8 text".to_owned()))
}

fn standard_input() -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::stdin()
        .lock()
        .take(PACKET_BYTES_MAX + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > PACKET_BYTES_MAX {
        return Err(io::Error::other(format!(
            "it has more than {PACKET_BYTES_MAX} bytes"
        )));
    }
    Ok(bytes)
}

/// What a reviewer wrote down.
pub(super) fn sheet(path: &Path) -> Result<ResponseFile, Failure> {
    ResponseFile::read(&text(path)?).map_err(|error| {
        let message = format!(
            "{}: {error}; nothing was written",
            escaped(&path.display().to_string())
        );
        Failure::plain(Exit::InvalidMessage, message)
    })
}

/// A list of nits, by itself or as the field `nits` of a mapping.
pub(super) fn nits(path: &Path) -> Result<Value, Failure> {
    let unfit = || {
        let message = format!(
            "{}: expected a list of nits; nothing was written",
            escaped(&path.display().to_string())
        );
        Failure::plain(Exit::InvalidMessage, message)
    };
    let listed = |list: Vec<serde_json::Map<String, Value>>| {
        Value::Array(list.into_iter().map(Value::Object).collect())
    };
    match sheet(path)? {
        ResponseFile::Loose(loose) if !loose.nits.is_empty() => Ok(listed(loose.nits)),
        ResponseFile::Loose(loose) if !loose.findings.is_empty() => Ok(listed(loose.findings)),
        ResponseFile::Loose(_) | ResponseFile::Structured(_) | ResponseFile::Word => Err(unfit()),
    }
}
