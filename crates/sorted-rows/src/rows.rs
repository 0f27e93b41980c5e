//! The rows of a snapshot and of those beneath it: a new snapshot writes the rows that changed since the one before and
//! names the files that hold the others. Layers of about the same size merge, so that there are few of them and a row
//! is rewritten only when the whole has doubled.

use std::io;
use std::path::{Path, PathBuf};

use crate::Digest;
use crate::layer::{Layer, RowIter, RowKey};

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

    /// Compares every byte with its checksum.
    pub fn verify(&self) -> io::Result<()> {
        self.layers.iter().try_for_each(Layer::verify)
    }

    /// Returns how many of the newest layers merge with `new_bytes` of new rows. `seq` names the new layer, and no
    /// layer of the same name may stay beneath it.
    pub fn absorbed(&self, new_bytes: u64, seq: u64) -> usize {
        let mut bytes = new_bytes.max(LAYER_MIN);
        let grown = self.layers.iter().take_while(|layer| {
            let is_small = layer.bytes <= 2 * bytes || layer.seq == seq;
            bytes += layer.bytes;
            is_small
        });
        grown
            .count()
            .max((self.layers.len() + 1).saturating_sub(LAYERS_MAX))
    }

    /// Separates the layers that merge from those that stay beneath.
    pub fn split(&self, absorbed: usize) -> (&[Layer], &[Layer]) {
        self.layers.split_at(absorbed)
    }
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
    visit: &mut dyn FnMut(&RowKey, &[u8]) -> io::Result<()>,
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
