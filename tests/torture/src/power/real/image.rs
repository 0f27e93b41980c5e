//! The contents of a mostly empty disk: stores only blocks that are not zero, which copies share.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// The size of the blocks that copies share, in bytes.
pub(crate) const BLOCK: usize = 4096;

type Block = Arc<[u8; BLOCK]>;

/// A disk's bytes.
#[derive(Clone)]
pub(crate) struct Image {
    size: u64,
    blocks: BTreeMap<u64, Block>,
}

impl Image {
    /// Reads a file; its zeros take no memory.
    pub(crate) fn load(path: &Path) -> io::Result<Image> {
        let file = File::open(path)?;
        let size = file.metadata()?.len();
        let mut blocks = BTreeMap::new();
        let mut block = [0; BLOCK];
        for number in 0..size / BLOCK as u64 {
            file.read_exact_at(&mut block, number * BLOCK as u64)?;
            if block.iter().any(|byte| *byte != 0) {
                blocks.insert(number, Arc::new(block));
            }
        }
        Ok(Image { size, blocks })
    }

    /// Returns the disk's size in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Writes bytes at `offset`.
    pub(crate) fn write(&mut self, mut offset: u64, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (number, within) = place(offset);
            let taken = bytes.len().min(BLOCK - within);
            let block = self
                .blocks
                .entry(number)
                .or_insert_with(|| Arc::new([0; BLOCK]));
            Arc::make_mut(block)[within..within + taken].copy_from_slice(&bytes[..taken]);
            offset += taken as u64;
            bytes = &bytes[taken..];
        }
    }

    /// Reads bytes from `offset`.
    pub(crate) fn read(&self, mut offset: u64, into: &mut [u8]) {
        let mut rest = into;
        while !rest.is_empty() {
            let (number, within) = place(offset);
            let taken = rest.len().min(BLOCK - within);
            let (now, later) = rest.split_at_mut(taken);
            match self.blocks.get(&number) {
                Some(block) => now.copy_from_slice(&block[within..within + taken]),
                None => now.fill(0),
            }
            offset += taken as u64;
            rest = later;
        }
    }

    /// Writes exactly this disk into a file.
    pub(crate) fn save(&self, file: &File) -> io::Result<()> {
        file.set_len(0)?;
        file.set_len(self.size)?;
        for (number, block) in &self.blocks {
            file.write_all_at(&block[..], number * BLOCK as u64)?;
        }
        Ok(())
    }
}

fn place(offset: u64) -> (u64, usize) {
    let within = usize::try_from(offset % BLOCK as u64).expect("less than a block");
    (offset / BLOCK as u64, within)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_over_the_edge_of_a_block_is_read_and_saved() {
        let path = tempfile::NamedTempFile::new().expect("a file");
        path.as_file().set_len(3 * BLOCK as u64).expect("room");
        let mut image = Image::load(path.path()).expect("an image");
        let before = image.clone();
        image.write(4000, &[7; 200]);
        let mut read = [0; 300];
        image.read(3950, &mut read);
        assert_eq!(
            (&read[..50], &read[50..250], &read[250..]),
            (&[0; 50][..], &[7; 200][..], &[0; 50][..])
        );
        image.save(path.as_file()).expect("a saved image");
        let again = Image::load(path.path()).expect("an image");
        assert_eq!((again.blocks, again.size), (image.blocks, image.size));
        assert!(
            before.blocks.is_empty(),
            "a copy was changed with its original"
        );
    }
}
