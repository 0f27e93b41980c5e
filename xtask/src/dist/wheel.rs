//! The Python wheel. It has no Python code: an installer copies `NAME.data/scripts` to an environment's programs.

use super::stage::{PROGRAMS, Stage};
use super::{VERSION, copy, sha256, write};
use settled_tests::repository;

/// Packs the wheel of this platform.
pub(super) fn pack(stage: &Stage) -> Result<(), String> {
    let root = stage.work.join("wheel");
    let mut programs = Vec::new();
    for name in PROGRAMS {
        let program = stage.root.join("bin").join(name);
        let bytes =
            std::fs::read(&program).map_err(|error| format!("{}: {error}", program.display()))?;
        programs.push(bytes);
        copy(
            &program,
            &root.join(format!("settled-{VERSION}.data/scripts/{name}")),
        )?;
    }
    let tag = stage.platform.wheel(&programs);
    let info = root.join(format!("settled-{VERSION}.dist-info"));
    let readme = std::fs::read_to_string(repository().join("packaging/python/README.md"))
        .map_err(|error| format!("packaging/python/README.md: {error}"))?;
    write(
        info.join("METADATA"),
        format!(
            "Metadata-Version: 2.4\nName: settled\nVersion: {VERSION}\n\
             Summary: A mail daemon for AI coding agents that review each other's pull requests\n\
             License-Expression: MIT OR Apache-2.0\nLicense-File: LICENSE-MIT\nLicense-File: LICENSE-APACHE\n\
             License-File: LICENSES-THIRD-PARTY.txt\nRequires-Python: >=3.8\n\
             Description-Content-Type: text/markdown\n\n{readme}"
        ),
    )?;
    let tags: String = tag
        .split('.')
        .map(|tag| format!("Tag: py3-none-{tag}\n"))
        .collect();
    write(
        info.join("WHEEL"),
        format!("Wheel-Version: 1.0\nGenerator: xtask dist\nRoot-Is-Purelib: false\n{tags}"),
    )?;
    for licence in stage.licences() {
        let name = licence.file_name().unwrap_or_default();
        copy(&licence, &info.join("licenses").join(name))?;
    }
    write(info.join("RECORD"), record(&root)?)?;
    let name = format!("settled-{VERSION}-py3-none-{tag}.whl");
    super::pack(stage, "zip", &root, &name)
}

/// Lists every file with its digest and size; the list itself has none.
fn record(root: &std::path::Path) -> Result<String, String> {
    let mut text = String::new();
    for path in super::files(root)? {
        let name = path
            .strip_prefix(root)
            .expect("it is below")
            .to_string_lossy();
        let size = path.metadata().map_or(0, |metadata| metadata.len());
        text.push_str(&format!(
            "{name},sha256={},{size}\n",
            base64(&sha256(&path)?)
        ));
    }
    Ok(text + &format!("settled-{VERSION}.dist-info/RECORD,,\n"))
}

/// Base64 for URLs without padding, as RECORD wants it.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let group = chunk
            .iter()
            .fold(0u32, |sum, byte| sum << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for letter in 0..=chunk.len() {
            let index = group >> (18 - 6 * letter) & 63;
            text.push(char::from(LETTERS[index as usize]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn base64_is_that_of_the_standard_without_padding() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg"),
            ("fo", "Zm8"),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
            ("\u{ff}>?", "w78-Pw"),
        ] {
            assert_eq!(super::base64(bytes.as_bytes()), text);
        }
    }
}
