//! Creates one file in one mailbox, whole and without replacing another; finds or repairs what a power cut left of it.

use std::io;

use crate::root::{Dir, OpenRoot};
use crate::{FileName, SpoolError};

/// The remains of a file that was delivered before a power cut.
pub(crate) enum Remains {
    /// All its bytes.
    Whole,
    /// An empty, zero-filled or truncated file, in the `usize`-th directory under this name.
    Damaged(usize, FileName),
    /// Nothing.
    Absent,
}

/// Renames a complete temporary file to its final name, or to a numbered one if other bytes have the name. If the same
/// bytes already have it, that file counts as the delivery.
pub(crate) fn publish(
    root: &OpenRoot,
    dir: &Dir,
    temporary: &FileName,
    file: &FileName,
    seq: u64,
    bytes: &[u8],
) -> Result<FileName, SpoolError> {
    if rename(root, dir, temporary, file)? || take_as_delivery(root, dir, temporary, file, bytes)? {
        return Ok(file.clone());
    }
    for name in &file.variants(seq)[1..] {
        if rename(root, dir, temporary, name)?
            || take_as_delivery(root, dir, temporary, name, bytes)?
        {
            return Ok(name.clone());
        }
    }
    Err(root.no_free_name(dir, file))
}

/// Renames without replacing; false if the name is taken.
fn rename(root: &OpenRoot, dir: &Dir, from: &FileName, to: &FileName) -> Result<bool, SpoolError> {
    match root
        .disk
        .rename_new(&dir.handle, from.as_ref(), &dir.handle, to.as_ref())
    {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(source) => Err(root.error_at("deliver", dir, to, source)),
    }
}

fn take_as_delivery(
    root: &OpenRoot,
    dir: &Dir,
    temporary: &FileName,
    name: &FileName,
    bytes: &[u8],
) -> Result<bool, SpoolError> {
    let same = root.holds(dir, name, bytes)?;
    if same {
        root.remove(dir, temporary)?;
    }
    Ok(same)
}

/// Looks for a file in its mailbox and in every place its reader may have moved it to.
pub(crate) fn find(
    root: &OpenRoot,
    places: &[Dir],
    file: &FileName,
    seq: u64,
    bytes: &[u8],
) -> Result<Remains, SpoolError> {
    let mut damaged = None;
    for (at, dir) in places.iter().enumerate() {
        for name in file.variants(seq) {
            match root.bytes(dir, &name, bytes.len() as u64)? {
                Some(found) if found == bytes => return Ok(Remains::Whole),
                Some(found) if is_remains(&found, bytes) => {
                    damaged.get_or_insert((at, name));
                }
                Some(_) | None => {}
            }
        }
    }
    Ok(damaged.map_or(Remains::Absent, |(at, name)| Remains::Damaged(at, name)))
}

/// Replaces a damaged file with the complete bytes.
pub(crate) fn repair(
    root: &OpenRoot,
    dir: &Dir,
    temporary: &FileName,
    name: &FileName,
    bytes: &[u8],
) -> Result<(), SpoolError> {
    root.write_new(dir, temporary, bytes)?;
    root.disk
        .rename_over(&dir.handle, temporary.as_ref(), name.as_ref())
        .map_err(|source| root.error_at("fix", dir, name, source))
}

/// Disks write this many bytes atomically.
const SECTOR: usize = 512;

/// Returns whether `found` is what a power cut can leave of `bytes`: an empty file, or sectors that each hold zeros or
/// a prefix followed by zeros. Sectors arrive in any order, so one may be missing in the middle.
pub(crate) fn is_remains(found: &[u8], bytes: &[u8]) -> bool {
    let is_left = |(found, bytes): (&[u8], &[u8])| {
        let written = found
            .iter()
            .rposition(|byte| *byte != 0)
            .map_or(0, |last| last + 1);
        bytes.starts_with(&found[..written])
    };
    let mut sectors = found.chunks(SECTOR).zip(bytes.chunks(SECTOR));
    found.len() <= bytes.len() && found != bytes && sectors.all(is_left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_cut_leaves_beginnings_and_zeros() {
        let remains = ["", "ab", "ab\0\0", "\0\0\0\0\0\0"];
        let others = ["abcdef", "abX", "x", "abcdefg", "\0\0\0\0\0\0\0"];
        assert!(
            remains
                .iter()
                .all(|found| is_remains(found.as_bytes(), b"abcdef"))
        );
        assert!(
            !others
                .iter()
                .any(|found| is_remains(found.as_bytes(), b"abcdef"))
        );
    }

    #[test]
    fn a_sector_may_be_missing_in_the_middle() {
        let bytes = [[b'a'; SECTOR], [b'b'; SECTOR], [b'c'; SECTOR]].concat();
        let hole = [[b'a'; SECTOR], [0; SECTOR], [b'c'; SECTOR]].concat();
        let front = [[0; SECTOR], [b'b'; SECTOR]].concat();
        let other = [[0; SECTOR], [b'x'; SECTOR]].concat();
        assert!(
            is_remains(&hole, &bytes) && is_remains(&front, &bytes) && !is_remains(&other, &bytes)
        );
    }
}
