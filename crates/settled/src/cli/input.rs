//! Reads files given on the command line; `-` is standard input.

use std::io::{self, Read as _};
use std::path::Path;

use mailbox::compose::packet::read_given;
use mailbox::compose::response_file::{NotAResponseFile, ResponseFile};
use message_schema::limit::PACKET_BYTES_MAX;
use message_schema::line::escaped;
use serde_json::Value;

use super::failure::Failure;
use crate::exit::Exit;

/// Reads a file of at most 256 KiB as text.
pub(super) fn text(path: &Path) -> Result<String, Failure> {
    let bytes = if path == Path::new("-") {
        standard_input()
    } else {
        read_given(path)
    };
    let bytes = bytes.map_err(|error| unreadable(path, &error))?;
    String::from_utf8(bytes).map_err(|_| failed(Exit::Failed, path, "it is not UTF-8 text"))
}

/// The failure to read a file that the command line names.
pub(super) fn unreadable(path: &Path, error: &io::Error) -> Failure {
    let exit = if error.kind() == io::ErrorKind::NotFound {
        Exit::NotFound
    } else {
        Exit::Failed
    };
    failed(exit, path, &error.to_string())
}

fn failed(exit: Exit, path: &Path, why: &str) -> Failure {
    let path = escaped(&path.display().to_string());
    Failure::plain(exit, format!("{path}: {why}"))
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

/// Reads a reviewer's response from a file, and its text.
pub(super) fn sheet(path: &Path) -> Result<(ResponseFile, String), Failure> {
    let text = text(path)?;
    let sheet = ResponseFile::read(&text).map_err(|error| {
        let place = match &error {
            NotAResponseFile::Malformed(malformed) => malformed.place,
            NotAResponseFile::Response(_) | NotAResponseFile::Unknown(_) => None,
        };
        let place = place.map_or_else(String::new, |place| {
            let (line, column) = ResponseFile::own_place(&text, place);
            format!(":{line}:{column}")
        });
        let expected = match &error {
            NotAResponseFile::Malformed(_) => {
                "\nexpected as in: findings: [{severity: P1, title: ..., file: src/a.rs, line: 40}]"
            }
            NotAResponseFile::Response(_) | NotAResponseFile::Unknown(_) => "",
        };
        let message = format!(
            "{}{place}: {error}; nothing was written{expected}",
            escaped(&path.display().to_string())
        );
        Failure::plain(Exit::InvalidMessage, message)
    })?;
    Ok((sheet, text))
}

/// Reads a list of nits, alone or in the field `nits` of a mapping.
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
    match sheet(path)?.0 {
        ResponseFile::Loose(loose) if !loose.nits.is_empty() => Ok(listed(loose.nits)),
        ResponseFile::Loose(loose) if !loose.findings.is_empty() => Ok(listed(loose.findings)),
        ResponseFile::Loose(_) | ResponseFile::Structured(_) | ResponseFile::Word => Err(unfit()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nits_are_a_list_by_itself_or_the_field_of_a_mapping() {
        let home = tempfile::tempdir().expect("a directory");
        let file = home.path().join("nits.yaml");
        let read = |text: &str| {
            std::fs::write(&file, text).expect("a file");
            nits(&file).map_err(|failure| (failure.exit, failure.message))
        };
        let one = serde_json::json!([{"summary": "a typo"}]);
        assert_eq!(read("- summary: a typo\n"), Ok(one.clone()));
        assert_eq!(read("nits:\n- summary: a typo\n"), Ok(one));
        let message = format!(
            "{}: expected a list of nits; nothing was written",
            file.display()
        );
        for text in ["nits: []\n", "findings: []\n"] {
            let unfit = Err((Exit::InvalidMessage, message.clone()));
            assert_eq!(read(text), unfit, "{text}");
        }
    }
}
