//! SHA-256 in its only spelling here: `sha256:<64 hex digits>`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

const PREFIX: &str = "sha256:";
const HEX: &[u8; 16] = b"0123456789abcdef";

/// The SHA-256 of some bytes; equal digests count as equal bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest before the first record of a ledger: all zeros.
    pub const ZERO: Digest = Digest([0; 32]);

    /// Computes the digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(Sha256::digest(bytes).into())
    }

    /// Returns the 32 bytes.
    pub fn bytes(&self) -> [u8; 32] {
        self.0
    }
}

/// The digest of bytes that are added in parts.
#[derive(Clone, Default)]
pub struct Hasher(Sha256);

impl Hasher {
    /// Adds bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the digest of everything added.
    pub fn digest(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0; 64];
        for (pair, byte) in text.chunks_exact_mut(2).zip(self.0) {
            pair[0] = HEX[usize::from(byte >> 4)];
            pair[1] = HEX[usize::from(byte & 15)];
        }
        f.write_str(PREFIX)?;
        f.write_str(std::str::from_utf8(&text).expect("hex digits are ASCII"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text was read where `sha256:` and 64 lower-case hex digits were expected.
#[derive(Debug, thiserror::Error)]
#[error("a digest is `sha256:` and 64 lower-case hex digits")]
pub struct NotADigest;

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Digest, NotADigest> {
        let hex = text.strip_prefix(PREFIX).ok_or(NotADigest)?.as_bytes();
        if hex.len() != 64 {
            return Err(NotADigest);
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
            let (high, low) = (NIBBLES[usize::from(pair[0])], NIBBLES[usize::from(pair[1])]);
            if high == NO_NIBBLE || low == NO_NIBBLE {
                return Err(NotADigest);
            }
            *byte = high << 4 | low;
        }
        Ok(Digest(bytes))
    }
}

const NO_NIBBLE: u8 = 0xff;

/// The value of each lower-case hex digit, as a table because every record names at least two digests.
const NIBBLES: [u8; 256] = {
    let mut nibbles = [NO_NIBBLE; 256];
    let mut value = 0;
    while value < 16 {
        nibbles[HEX[value as usize] as usize] = value;
        value += 1;
    }
    nibbles
};

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
        disk::from_text(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_survives_its_text() {
        let digest = Digest::of(b"abc");
        let text = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest.to_string(), text);
        assert_eq!(text.parse::<Digest>().ok(), Some(digest));
    }

    #[test]
    fn a_digest_of_parts_is_that_of_the_whole() {
        let mut hasher = Hasher::default();
        for part in [&b"a"[..], b"", b"bc"] {
            hasher.add(part);
        }
        assert_eq!(hasher.digest(), Digest::of(b"abc"));
    }

    #[test]
    fn what_is_not_a_digest_is_refused() {
        for text in [
            "",
            "sha256:",
            "md5:00",
            &format!("sha256:{}", "A".repeat(64)),
            &"0".repeat(71),
        ] {
            assert!(
                text.parse::<Digest>().is_err(),
                "{text} was read as a digest"
            );
        }
    }
}
