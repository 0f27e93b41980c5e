//! Stores who signed each batch of a mirror, one line a batch, beside the ledger: the ledger's lines are the same on
//! every host, and a batch can be put back into a log only with its signature.
//!
//! A line holds the batch's first record, its last line's digest, the host and the signature in hex. It is durable
//! before the batch is written to the mirror. Lines that no mirrored batch followed are overwritten; a kill, or a refused
//! batch behind a mirrored one, leaves some. If two lines have the same record, the later one counts, and only for the
//! batch that ends with its digest.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use super::{Batch, HostName, Signed};
use crate::root::OpenRoot;
use crate::{Digest, SpoolError, dirs};
use disk::{self, Handle, OpenMode};

/// The file's name in the daemon's own directory.
const FILE: &str = "signatures";

/// The signatures of a mirror, open for appending.
pub(crate) struct Signatures {
    file: Handle,
    len: u64,
    /// The first record of the lines added last, and the length before them.
    last: (u64, u64),
}

/// The host that signed the batch ending with this digest, and its signature.
pub(crate) struct Signature {
    last: Digest,
    host: HostName,
    bytes: Vec<u8>,
}

impl Signatures {
    /// Opens or creates the file. The next line overwrites what a kill left of a last line.
    pub(crate) fn open(root: &OpenRoot) -> Result<Signatures, SpoolError> {
        let path = root.path(&Path::new(dirs::OWN).join(FILE));
        let own = root.dir(dirs::OWN.as_ref())?;
        let name = FILE.as_ref();
        let disk = &*root.disk;
        let file = match disk::if_there(disk.open(&own.handle, name, OpenMode::Write))
            .map_err(SpoolError::io("open", &path))?
        {
            Some(file) => file,
            None => {
                let file = disk
                    .open(&own.handle, name, OpenMode::New)
                    .map_err(SpoolError::io("create", &path))?;
                disk.sync_dir(&own.handle)
                    .map_err(SpoolError::io("sync", &path))?;
                file
            }
        };
        let bytes =
            disk::read_up_to(disk, &file, 0, u64::MAX).map_err(SpoolError::io("read", &path))?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n');
        let len = whole.map_or(0, |at| at as u64 + 1);
        let last = (0, len);
        Ok(Signatures { file, len, last })
    }

    /// Makes the signatures of these batches durable with one sync.
    pub(crate) fn add(&mut self, root: &OpenRoot, batches: &[Signed]) -> Result<(), SpoolError> {
        let path = root.path(&Path::new(dirs::OWN).join(FILE));
        let mut lines = String::new();
        let first = batches
            .first()
            .map_or(u64::MAX, |it| it.batch.after().seq + 1);
        if first <= self.last.0 {
            // None of the last batches was mirrored.
            self.len = self.last.1;
        }
        self.last = (first, self.len);
        for signed in batches {
            let (first, last) = (signed.batch.after().seq + 1, signed.batch.head().digest);
            let hex = signed.signature.iter().map(|byte| format!("{byte:02x}"));
            let hex: String = hex.collect();
            writeln!(lines, "{first} {last} {} {hex}", signed.host)
                .expect("text takes every write");
        }
        let disk = &*root.disk;
        disk.truncate(&self.file, self.len)
            .and_then(|()| disk::write_all(disk, &self.file, lines.as_bytes(), self.len))
            .and_then(|()| disk.sync_data(&self.file))
            .map_err(SpoolError::io("write", &path))?;
        self.len += lines.len() as u64;
        Ok(())
    }

    /// Reads all signatures, keyed by the first record of their batches. Empty in a workspace with one host.
    pub(crate) fn read(root: &OpenRoot) -> Result<BTreeMap<u64, Signature>, SpoolError> {
        let own = root.dir(dirs::OWN.as_ref())?;
        let name = FILE.parse().expect("it is a file's name");
        let bytes = root.bytes(&own, &name, u64::MAX - 1)?.unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        Ok(text.split_inclusive('\n').filter_map(read_line).collect())
    }
}

impl Signature {
    /// Attaches the signature to the batch it belongs to.
    pub(crate) fn signed(&self, batch: Batch) -> Option<Signed> {
        (batch.head().digest == self.last).then(|| Signed {
            batch,
            host: self.host.clone(),
            signature: self.bytes.clone(),
        })
    }
}

fn read_line(line: &str) -> Option<(u64, Signature)> {
    let mut words = line.strip_suffix('\n')?.split(' ');
    let first = words.next()?.parse().ok()?;
    let last = words.next()?.parse().ok()?;
    let host = words.next()?.parse().ok()?;
    let digits = words.next()?.as_bytes().chunks(2);
    let bytes = digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    let bytes = bytes.collect::<Option<Vec<u8>>>()?;
    Some((first, Signature { last, host, bytes }))
}
