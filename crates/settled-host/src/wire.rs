//! A batch as a message: the payload has its lines, byte for byte, and two headers have the judging host and its
//! signature.

use async_nats::HeaderMap;
use message_schema::hex;
use spool::log::{Batch, Head, LogError, Signed};
use spool::{Digest, Entry};

/// The header that names the host.
pub(crate) const HOST: &str = "Settled-Host";

/// The header with the host's signature, in hex.
pub(crate) const SIGNATURE: &str = "Settled-Signature";

/// An upper bound for the headers of a batch in bytes, with the fence and the signature.
pub(crate) const HEADERS_BYTES_MAX: usize = 2048;

/// The headers of a batch.
pub(crate) fn headers(signed: &Signed) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(HOST, signed.host.as_str());
    headers.insert(SIGNATURE, hex::write(&signed.signature).as_str());
    headers
}

/// Reads the batch of a message at place `at`.
pub(crate) fn read(headers: &HeaderMap, payload: &[u8], at: u64) -> Result<Signed, LogError> {
    let text = |name: &str| {
        let value = headers.get(name).map(|value| value.as_str().to_owned());
        value.ok_or_else(|| broken(at, &format!("it has no header `{name}`")))
    };
    let host = text(HOST)?
        .parse()
        .map_err(|error| broken(at, &format!("{HOST}: {error}")))?;
    let signature = hex::read(&text(SIGNATURE)?)
        .ok_or_else(|| broken(at, &format!("{SIGNATURE} is not hexadecimal")))?;
    let batch = batch(payload, at)?;
    Ok(Signed {
        batch,
        host,
        signature,
    })
}

/// Reads a batch without its predecessor: the first record names it, and the caller compares.
fn batch(bytes: &[u8], at: u64) -> Result<Batch, LogError> {
    let line = bytes.split(|byte| *byte == b'\n').next();
    let first = Entry::from_line(line.unwrap_or_default());
    // `Batch::read` reports a line that cannot be parsed.
    let after = first.map_or(Head::EMPTY, |first| Head {
        seq: first.seq.saturating_sub(1),
        digest: first.prev,
    });
    Batch::read(bytes.to_vec(), after)
        .map_err(|error| in_place(error.into(), &format!("message {at}")))
}

fn broken(at: u64, what: &str) -> LogError {
    LogError::Broken {
        what: format!("message {at}: {what}"),
    }
}

/// Adds the place to the error for a damaged batch.
pub(crate) fn in_place(mut error: LogError, place: &str) -> LogError {
    if let LogError::Broken { what } = &mut error {
        *what = format!("{place}: {what}");
    }
    error
}

/// The error for a log that has another record where this host has one.
pub(crate) fn forked(ours: Head, theirs: Digest) -> LogError {
    LogError::Forked {
        at: ours.seq,
        ours: ours.digest,
        theirs,
    }
}

#[cfg(test)]
mod tests {
    use log_suite::fixture::batch as batch_of;

    use super::*;

    #[test]
    fn a_batch_comes_out_of_its_message_as_it_went_in() {
        let first = batch_of(Head::EMPTY, &["one"], "tower");
        let mut second = batch_of(first.batch.head(), &["two", "three"], "laptop");
        second.signature = vec![0, 0x7f, 0xff];
        for sent in [first, second] {
            let read = read(&headers(&sent), sent.batch.bytes(), 1).expect("a batch");
            assert_eq!(read.batch.bytes(), sent.batch.bytes());
            assert_eq!(read.batch.after(), sent.batch.after());
            assert_eq!(read.batch.head(), sent.batch.head());
            assert_eq!((read.host, read.signature), (sent.host, sent.signature));
        }
    }

    #[test]
    fn a_message_that_is_no_batch_is_damage_at_its_place() {
        let sent = batch_of(Head::EMPTY, &["one"], "tower");
        let with = |name: &str, value: &str| {
            let mut headers = headers(&sent);
            headers.insert(name, value);
            headers
        };
        let bytes = sent.batch.bytes();
        let cut = &bytes[..bytes.len() - 9];
        for (headers, payload, told) in [
            (HeaderMap::new(), bytes, "it has no header `Settled-Host`"),
            (with(HOST, "no host"), bytes, "Settled-Host: "),
            (
                with(SIGNATURE, "xy"),
                bytes,
                "Settled-Signature is not hexadecimal",
            ),
            (headers(&sent), cut, ""),
            (headers(&sent), &b""[..], ""),
        ] {
            let error = read(&headers, payload, 7).err();
            let Some(LogError::Broken { what }) = &error else {
                panic!("{told}: {error:?}");
            };
            assert!(what.starts_with(&format!("message 7: {told}")), "{what}");
        }
    }
}
