//! The rows of a snapshot and of those beneath it: a new snapshot writes the rows that changed since the one before and
//! names the files that hold the others. Layers of about the same size merge, so that there are few of them and a row
//! is rewritten only when the whole has doubled.

use std::io;
use std::path::{Path, PathBuf};

use crate::Digest;
use crate::layer::{Layer, RowIter, RowKey, TakeRow};

/// The most layers: each is an open file, and a lookup of a row may read all of them.
const LAYERS_MAX: usize = 8;

/// A layer smaller than this, in bytes, is not worth a file.
const LAYER_MIN: u64 = 64 * 1024;

/// All rows of a snapshot, read in place.
#[derive(Debug)]
pub struct Rows {
    root: PathBuf,
    /// The newest first.
    layers: Vec<Layer>,
}

impl Rows {
    /// Takes over the layers, the newest first.
    pub fn new(root: &Path, layers: Vec<Layer>) -> Rows {
        Rows {
            root: root.to_owned(),
            layers,
        }
    }

    /// Returns the root of the workspace.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the last record of the snapshot.
    pub fn seq(&self) -> u64 {
        self.layers.first().map_or(0, |layer| layer.seq)
    }

    /// True if the file of the snapshot at record `seq` holds some of the rows.
    pub fn has(&self, seq: u64) -> bool {
        self.layers.iter().any(|layer| layer.seq == seq)
    }

    /// Passes every row whose key begins with `prefix` to `visit`, in key order. Fails if bytes do not match their
    /// checksum: the caller can rebuild the rows from the records.
    pub fn visit(&self, prefix: &[u8], visit: &mut dyn FnMut(RowKey, &[u8])) -> io::Result<()> {
        merged(
            &self.layers,
            prefix,
            &mut [].into_iter(),
            &mut |key, value| {
                visit(*key, value);
                Ok(())
            },
        )
    }

    /// Fails unless the lines before the rows of the snapshot itself have this checksum.
    pub fn check_head(&self, sum: Digest) -> Result<(), String> {
        let own = self.layers.first().expect("a snapshot has rows of its own");
        own.check_head(sum).map_err(|error| error.to_string())
    }

    /// Compares every byte of the files with its checksum.
    pub fn verify(&self) -> io::Result<()> {
        self.layers.iter().try_for_each(Layer::verify)
    }

    /// Keeps the filters of all layers in memory, for millions of lookups. Fails if one does not match its checksum.
    pub fn keep_filters(&mut self) -> io::Result<()> {
        self.layers.iter_mut().try_for_each(Layer::keep_filter)
    }

    /// Returns how many of the newest layers merge with `new_bytes` of new rows. `seq` names the new layer, and no
    /// layer of the same name may stay beneath it.
    pub fn absorbed(&self, new_bytes: u64, seq: u64) -> usize {
        let sizes: Vec<u64> = self.layers.iter().map(Layer::row_bytes).collect();
        let named = self.layers.iter().position(|layer| layer.seq == seq);
        merging(&sizes, new_bytes, named.map_or(0, |at| at + 1))
    }

    /// Separates the layers that merge from those that stay beneath.
    pub fn split(&self, absorbed: usize) -> (&[Layer], &[Layer]) {
        self.layers.split_at(absorbed)
    }
}

/// Returns how many of the newest layers, of these sizes in bytes, merge with `new_bytes`, at least `least`. A layer stays
/// if it has more than twice the bytes of all that is newer. If there would be too many, the newest merges all the same,
/// and so does each that is not larger than this makes it: else a large newest layer would be written again each time.
fn merging(sizes: &[u64], new_bytes: u64, least: usize) -> usize {
    let mut bytes = new_bytes.max(LAYER_MIN);
    let merge = sizes.iter().enumerate().take_while(|(newer, size)| {
        let is_one_too_many = sizes.len() - newer >= LAYERS_MAX;
        let merges = *newer < least || is_one_too_many || **size <= 2 * bytes;
        bytes += **size;
        merges
    });
    merge.count()
}

/// Returns the layers beneath a snapshot as its head names them.
pub fn named(layers: &[Layer]) -> Vec<(u64, Digest)> {
    layers.iter().map(|layer| (layer.seq, layer.sum)).collect()
}

/// New rows, in key order.
pub type NewRows<'a> = dyn Iterator<Item = (RowKey, &'a [u8])> + 'a;

/// Visits the new rows and the layers' rows whose keys begin with `prefix`, in key order; of several rows with one key
/// only the newest, which is the new row or that of the first layer.
pub fn merged<'a>(
    layers: &[Layer],
    prefix: &[u8],
    new: &mut NewRows<'a>,
    visit: &mut TakeRow<'_>,
) -> io::Result<()> {
    let mut sources: Vec<RowIter<'_>> = layers
        .iter()
        .map(|layer| layer.beginning_with(prefix))
        .collect::<io::Result<_>>()?;
    let mut new = new.peekable();
    loop {
        let stored = sources
            .iter()
            .filter_map(RowIter::row)
            .map(|(key, _)| key)
            .min();
        let added = new.peek().map(|(key, _)| *key);
        let Some(key) = stored.into_iter().chain(added).min() else {
            return Ok(());
        };
        let mut is_visited = false;
        if added == Some(key) {
            let (_, bytes) = new.next().expect("it was there");
            visit(&key, bytes)?;
            is_visited = true;
        }
        for source in &mut sources {
            let Some((_, value)) = source.row().filter(|(of, _)| *of == key) else {
                continue;
            };
            if !is_visited {
                visit(&key, value)?;
                is_visited = true;
            }
            source.advance()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes written for each byte of rows in this many snapshots.
    fn written_for_each(snapshots: u64, new_bytes: impl Fn(u64) -> u64) -> u64 {
        let (mut sizes, mut written, mut all) = (Vec::new(), 0, 0);
        for number in 0..snapshots {
            let new = new_bytes(number);
            let merge = merging(&sizes, new, 0);
            let size = new + sizes.drain(..merge).sum::<u64>();
            sizes.insert(0, size);
            assert!(sizes.len() <= LAYERS_MAX, "{sizes:?}");
            written += size;
            all += new;
        }
        written / all
    }

    #[test]
    fn rows_are_written_again_a_few_times_however_many_snapshots_follow() {
        for snapshots in [100, 1_000, 10_000] {
            assert!(written_for_each(snapshots, |_| 250_000) < 10);
            assert!(written_for_each(snapshots, |number| number * 7_919 % 600_000) < 10);
        }
    }

    #[test]
    fn a_large_layer_above_small_ones_merges_with_them_once() {
        let sizes = [10_000, 600, 600, 600, 600, 600, 600, 3_700].map(|kib| kib * 1024);
        assert_eq!(merging(&sizes, 300 * 1024, 0), 8);
        assert_eq!(merging(&sizes[..7], 300 * 1024, 0), 0);
        assert_eq!(merging(&sizes[..1], 300 * 1024, 1), 1);
    }
}
