//! A path as text, for JSON and the log: every name in it as [`FileName`](crate::FileName) shows it. A path need not be
//! UTF-8, and an agent chooses the names of its files.
//!
//! For a field that is a path: `#[serde(with = "spool::path_text")]`.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serializer, de};

use crate::name::{Shown, bytes_of_shown};

/// Returns the path with `%`, control characters, characters that reorder a line and bytes that are not UTF-8
/// percent-encoded.
pub fn shown(path: &Path) -> String {
    Shown(path.as_os_str().as_bytes()).to_string()
}

/// Writes the shown form. Serde's own form of a path is an error if the path is not UTF-8.
pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&Shown(path.as_os_str().as_bytes()))
}

/// Reads the shown form back.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    let bytes = bytes_of_shown(&String::deserialize(deserializer)?);
    let bytes = bytes.ok_or_else(|| de::Error::custom("`%` without two hexadecimal digits"))?;
    Ok(OsString::from_vec(bytes).into())
}

/// Writes the shown form of an optional path.
pub fn serialize_if_any<S: Serializer>(
    path: &Option<PathBuf>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => serializer.serialize_some(&shown(path)),
        None => serializer.serialize_none(),
    }
}

/// Writes the shown form of each path.
pub fn serialize_all<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(paths.iter().map(|path| shown(path)))
}

/// Reads the shown form of each path back.
pub fn deserialize_all<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<PathBuf>, D::Error> {
    #[derive(Deserialize)]
    struct One(#[serde(with = "crate::path_text")] PathBuf);
    let paths = Vec::<One>::deserialize(deserializer)?;
    Ok(paths.into_iter().map(|One(path)| path).collect())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use serde::Serialize;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Paths {
        #[serde(with = "crate::path_text")]
        one: PathBuf,
        #[serde(serialize_with = "serialize_all", deserialize_with = "deserialize_all")]
        more: Vec<PathBuf>,
    }

    #[test]
    fn every_path_is_json_and_is_read_back() {
        let odd = PathBuf::from(OsStr::from_bytes(b"/100%/a\n\x1b[1m\xff.yaml"));
        let paths = Paths {
            one: odd.clone(),
            more: vec![odd, PathBuf::from("/\u{e9}/\u{202e}lmay")],
        };
        let json = serde_json::to_string(&paths).expect("every path is JSON");
        assert_eq!(
            json,
            r#"{"one":"/100%25/a%0A%1B[1m%FF.yaml","more":["/100%25/a%0A%1B[1m%FF.yaml","/é/%E2%80%AElmay"]}"#
        );
        assert_eq!(
            serde_json::from_str::<Paths>(&json).expect("its own form"),
            paths
        );
        assert!(serde_json::from_str::<Paths>(r#"{"one":"/50%","more":[]}"#).is_err());
    }
}
