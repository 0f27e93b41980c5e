//! Signs the content of a webhook: HMAC-SHA256 (RFC 2104) over id, time and body.

use message_schema::hex;
use sha2::{Digest as _, Sha256};

/// The block of SHA-256, in bytes.
const BLOCK: usize = 64;

/// Returns the value of `Settled-Signature`: the HMAC of the id, the seconds and the body, joined by full stops.
pub fn signature(secret: &[u8], id: &str, seconds: i64, body: &str) -> String {
    let signed = format!("{id}.{seconds}.{body}");
    let digest = hmac(secret, signed.as_bytes());
    format!("sha256={}", hex::write(&digest))
}

fn hmac(secret: &[u8], text: &[u8]) -> [u8; 32] {
    let mut key = [0; BLOCK];
    if secret.len() > BLOCK {
        key[..32].copy_from_slice(&Sha256::digest(secret));
    } else {
        key[..secret.len()].copy_from_slice(secret);
    }
    let padded = |with: u8| key.map(|byte| byte ^ with);
    let inner = Sha256::new().chain_update(padded(0x36)).chain_update(text);
    let outer = Sha256::new()
        .chain_update(padded(0x5c))
        .chain_update(inner.finalize());
    outer.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed with the `hmac` module of Python.
    #[test]
    fn id_seconds_and_body_are_signed_with_a_key_of_any_length() {
        assert_eq!(
            signature(b"s3cret", "id-1", 1_700_000_000, r#"{"a":1}"#),
            "sha256=a6d07f071eae41b4e06ecc5d2ee34ba4d22b07450dc78c242c50c6ffc30d725c"
        );
        // A key as long as a block is used as it is.
        assert_eq!(
            hex::write(&hmac(&[0xaa; BLOCK], b"A key of one block")),
            "b5b86f81df168468b268232499050165f50178f034d3e22b81c4e2d7b6623d15"
        );
    }

    /// Test cases 1, 2 and 6 of RFC 4231: a short key, a key of letters, and one longer than a block.
    #[test]
    fn the_vectors_of_the_rfc_come_out() {
        for (key, text, expected) in [
            (
                vec![0x0b; 20],
                "Hi There",
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
            ),
            (
                b"Jefe".to_vec(),
                "what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                vec![0xaa; 131],
                "Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
        ] {
            assert_eq!(hex::write(&hmac(&key, text.as_bytes())), expected, "{text}");
        }
    }
}
