//! The rows of one snapshot: values found by their keys and read in place, so that a lookup reads one block and not the
//! whole file.
//!
//! ```text
//! blocks    rows in the order of their keys: 20 bytes of key, 4 of length, the value; each block about 16 KiB
//! filter    pages of 512 bytes that say which keys are not there
//! index     48 bytes for each block: its first key, its place, its length, its checksum; then each page's checksum
//! footer    one line of 512 bytes: the places of all these, the checksums of the index and of the head, and its own
//! ```
//!
//! A checksum covers every byte and is compared before the byte is used.
//!
//! Only the index stays in memory. Each lookup reads its page of the filter from the file, usually from the kernel's
//! cache, because a filter in memory grows with the rows. A caller that looks up millions of rows can keep it in memory.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use serde::{Deserialize, Serialize};

use crate::Digest;
use disk::{self, Disk, Handle};

/// A row's key. Keys behave like hashes: those of one kind begin with the same byte, and the filter covers their first
/// eight bytes.
pub type RowKey = [u8; 20];

/// The number of a key's first bytes that the filter covers.
const FILTERED: usize = 8;

const BLOCK: usize = 16 * 1024;
const PAGE: usize = 512;
const FOOTER: usize = 512;
const KEY: usize = size_of::<RowKey>();
const SUM: usize = 16;
const BLOCK_ENTRY: usize = KEY + 8 + 4 + SUM;

/// Bits of the filter for each row, and how many of them a key sets: about one in a hundred absent keys passes.
const BITS_PER_ROW: usize = 10;
const BITS_SET: u32 = 6;

/// The positions of all parts of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Footer {
    rows: u64,
    blocks: usize,
    pages: usize,
    filter_at: u64,
    index_at: u64,
    /// The checksum of the lines before the rows.
    head: Digest,
    index: Digest,
}

#[derive(Serialize, Deserialize)]
struct FooterLine {
    footer: Footer,
    sum: Digest,
}

impl FooterLine {
    fn of(footer: Footer) -> FooterLine {
        let sum = Digest::of(&serde_json::to_vec(&footer).expect("plain values are JSON"));
        FooterLine { footer, sum }
    }

    /// Returns the only text of this footer, so that no byte of it can differ.
    fn bytes(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).expect("plain values are JSON");
        line.resize(FOOTER - 1, b' ');
        line.push(b'\n');
        line
    }
}

/// The rows of one file.
pub struct Layer {
    disk: Arc<dyn Disk>,
    file: Handle,
    /// The last record of the snapshot.
    pub seq: u64,
    /// The footer's own checksum, by which a later snapshot names this one.
    pub sum: Digest,
    footer: Footer,
    index: Vec<u8>,
    /// All pages, if they are kept.
    filter: Option<Vec<u8>>,
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

fn short_sum(bytes: &[u8]) -> [u8; SUM] {
    let sum = Digest::of(bytes).bytes();
    sum[..SUM].try_into().expect("sixteen of 32 bytes")
}

impl Layer {
    /// Reads the footer and the index of a snapshot's file.
    pub fn open(disk: Arc<dyn Disk>, file: Handle, seq: u64) -> io::Result<Layer> {
        let bytes = disk.stat(&file)?.size;
        let at = bytes
            .checked_sub(FOOTER as u64)
            .ok_or_else(|| wrong("it breaks off"))?;
        let text = read_exact(&*disk, &file, at, FOOTER)?;
        let line: FooterLine = serde_json::from_slice(&text)
            .map_err(|error| wrong(&format!("its last line cannot be read: {error}")))?;
        if FooterLine::of(line.footer.clone()).bytes() != text {
            return Err(wrong("its last line is not as it was written"));
        }
        let FooterLine { footer, sum } = line;
        let length = footer.blocks * BLOCK_ENTRY + footer.pages * SUM;
        let index = read_exact(&*disk, &file, footer.index_at, length)?;
        if Digest::of(&index) != footer.index || footer.index_at + length as u64 != at {
            return Err(wrong("the checksum of its index does not match its bytes"));
        }
        Ok(Layer {
            disk,
            file,
            seq,
            sum,
            footer,
            index,
            filter: None,
        })
    }

    /// Fails unless the lines before the rows have this checksum.
    pub fn check_head(&self, sum: Digest) -> io::Result<()> {
        if self.footer.head == sum {
            Ok(())
        } else {
            Err(wrong("its rows belong to another head"))
        }
    }

    /// Keeps the filter in memory: ten bits a row.
    pub(crate) fn keep_filter(&mut self) -> io::Result<()> {
        let pages: Vec<_> = (0..self.footer.pages)
            .map(|page| self.page(page))
            .collect::<io::Result<_>>()?;
        self.filter = Some(pages.concat());
        Ok(())
    }

    /// Compares every byte of the file with its checksum.
    pub fn verify(&self) -> io::Result<()> {
        (0..self.footer.pages).try_for_each(|page| self.page(page).map(drop))?;
        (0..self.footer.blocks).try_for_each(|block| self.block(block).map(drop))
    }

    /// Returns the number of its rows.
    pub fn rows(&self) -> u64 {
        self.footer.rows
    }

    /// Returns the bytes of its blocks; a head may be larger than the rows of a snapshot.
    pub(crate) fn row_bytes(&self) -> u64 {
        let lengths = (0..self.footer.blocks).map(|block| u64::from(self.place(block).1));
        lengths.sum()
    }

    /// Returns the rows whose keys begin with `prefix`, in order.
    pub(crate) fn beginning_with<'a>(&'a self, prefix: &[u8]) -> io::Result<RowIter<'a>> {
        let mut low = [0; KEY];
        low[..prefix.len()].copy_from_slice(prefix);
        if let Some(known) = prefix.first_chunk()
            && !self.may_have(*known)?
        {
            return RowIter::new(self, self.footer.blocks, low, prefix.len());
        }
        // The block before the first that begins after it may hold it.
        let (mut from, mut to) = (0, self.footer.blocks);
        while from < to {
            let middle = usize::midpoint(from, to);
            if self.first_key(middle) <= low {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        RowIter::new(self, from.saturating_sub(1), low, prefix.len())
    }

    fn entry(&self, block: usize) -> &[u8] {
        &self.index[block * BLOCK_ENTRY..][..BLOCK_ENTRY]
    }

    fn first_key(&self, block: usize) -> RowKey {
        *self.entry(block).first_chunk().expect("a key's bytes")
    }

    /// Returns the place of a block in the file, and its length.
    fn place(&self, block: usize) -> (u64, u32) {
        let entry = &self.entry(block)[KEY..];
        let at = u64::from_le_bytes(*entry.first_chunk().expect("eight bytes"));
        let len = u32::from_le_bytes(*entry[8..].first_chunk().expect("four bytes"));
        (at, len)
    }

    fn block(&self, block: usize) -> io::Result<Vec<u8>> {
        let (at, len) = self.place(block);
        let bytes = read_exact(&*self.disk, &self.file, at, len as usize)?;
        if short_sum(&bytes) == self.entry(block)[KEY + 12..] {
            Ok(bytes)
        } else {
            Err(wrong("the checksum of a block does not match its bytes"))
        }
    }

    fn page(&self, page: usize) -> io::Result<Vec<u8>> {
        let at = self.footer.filter_at + (page * PAGE) as u64;
        let bytes = read_exact(&*self.disk, &self.file, at, PAGE)?;
        if short_sum(&bytes) == self.index[self.footer.blocks * BLOCK_ENTRY + page * SUM..][..SUM] {
            Ok(bytes)
        } else {
            Err(wrong("the checksum of the filter does not match its bytes"))
        }
    }

    /// Returns false if there is surely no row with this key.
    pub fn may_have_row(&self, key: &RowKey) -> io::Result<bool> {
        self.may_have(*key.first_chunk().expect("a key is longer"))
    }

    fn may_have(&self, known: [u8; FILTERED]) -> io::Result<bool> {
        if self.footer.pages == 0 {
            return Ok(false);
        }
        let (page, bits) = places(known, self.footer.pages);
        let page = match &self.filter {
            Some(filter) => Cow::Borrowed(&filter[page * PAGE..][..PAGE]),
            None => Cow::Owned(self.page(page)?),
        };
        Ok(bits
            .into_iter()
            .all(|bit| page[bit / 8] >> (bit % 8) & 1 == 1))
    }
}

impl std::fmt::Debug for Layer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the rows of snapshot {}", self.seq)
    }
}

/// Returns the page of the filter that covers a key, and the key's bits in it.
fn places(known: [u8; FILTERED], pages: usize) -> (usize, [usize; BITS_SET as usize]) {
    // The first byte is the kind, the others are those of a hash.
    let hash = u64::from_le_bytes(known).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let page = (u128::from(hash) * pages as u128) >> 64;
    let (one, other) = (
        hash.rotate_left(21),
        hash.wrapping_mul(0xd6e8_feb8_6659_fd93) | 1,
    );
    let mut bits = [0; BITS_SET as usize];
    for (n, bit) in (0u64..).zip(&mut bits) {
        let place = one.wrapping_add(other.wrapping_mul(n)) >> 40;
        *bit = usize::try_from(place).expect("24 bits") % (PAGE * 8);
    }
    (usize::try_from(page).expect("less than all pages"), bits)
}

/// Rows of one layer, in key order.
pub(crate) struct RowIter<'a> {
    layer: &'a Layer,
    next_block: usize,
    block: Vec<u8>,
    /// The position of the current row in the block; the block's end after the last row.
    at: usize,
    /// The first wanted key, and the length of the prefix that all wanted keys share.
    low: RowKey,
    common: usize,
}

impl<'a> RowIter<'a> {
    /// Begins with the first wanted row, in this block or a later one.
    fn new(
        layer: &'a Layer,
        next_block: usize,
        low: RowKey,
        common: usize,
    ) -> io::Result<RowIter<'a>> {
        let mut rows = RowIter {
            layer,
            next_block,
            block: Vec::new(),
            at: 0,
            low,
            common,
        };
        rows.seek()?;
        Ok(rows)
    }

    /// Returns the current row, unless there are no more.
    pub(crate) fn row(&self) -> Option<(RowKey, &[u8])> {
        row(&self.block[self.at..])
    }

    /// Moves to the next row.
    pub(crate) fn advance(&mut self) -> io::Result<()> {
        self.skip();
        self.seek()
    }

    fn skip(&mut self) {
        self.at += self.row().map_or(0, |(_, value)| KEY + 4 + value.len());
    }

    /// Skips rows before the wanted ones, and ends after them.
    fn seek(&mut self) -> io::Result<()> {
        loop {
            if self.at == self.block.len() {
                if self.next_block == self.layer.footer.blocks {
                    return Ok(());
                }
                self.block = self.layer.block(self.next_block)?;
                (self.next_block, self.at) = (self.next_block + 1, 0);
            }
            let (key, _) = self
                .row()
                .ok_or_else(|| wrong("a block does not hold whole rows"))?;
            if key[..self.common] > self.low[..self.common] {
                (self.next_block, self.at) = (self.layer.footer.blocks, self.block.len());
                return Ok(());
            }
            if key >= self.low {
                return Ok(());
            }
            self.skip();
        }
    }
}

fn row(bytes: &[u8]) -> Option<(RowKey, &[u8])> {
    let (key, rest) = bytes.split_first_chunk()?;
    let (len, rest) = rest.split_first_chunk()?;
    Some((*key, rest.get(..u32::from_le_bytes(*len) as usize)?))
}

fn read_exact(disk: &dyn Disk, file: &Handle, at: u64, len: usize) -> io::Result<Vec<u8>> {
    let bytes = disk::read_part(disk, file, at, len)?;
    if bytes.len() == len {
        Ok(bytes)
    } else {
        Err(wrong("it breaks off"))
    }
}

/// Takes rows in key order.
pub type TakeRow<'a> = dyn FnMut(&RowKey, &[u8]) -> io::Result<()> + 'a;

/// From this number of rows on, another thread sums up and writes a block while the next one is filled.
const MANY: u64 = 1 << 16;

/// The blocks that may wait for that thread.
const WAITING: usize = 16;

/// Writes the rows that `rows` passes on, at most `rows_max`, after a head of `offset` bytes with this checksum. Returns
/// the length of the file in bytes.
pub fn write_layer(
    disk: &dyn Disk,
    file: &Handle,
    (offset, head): (u64, Digest),
    rows_max: u64,
    rows: &mut dyn FnMut(&mut TakeRow<'_>) -> io::Result<()>,
) -> io::Result<u64> {
    let new = || LayerWriter::new(disk, file, offset, rows_max);
    std::thread::scope(|scope| {
        let (send, receive) = sync_channel::<Vec<u8>>(WAITING);
        let writing = (rows_max >= MANY).then(|| {
            let mut layer = new();
            let thread = std::thread::Builder::new().name(WRITER.to_owned());
            thread.spawn_scoped(scope, move || {
                let mut blocks = receive.into_iter();
                blocks.try_for_each(|block| layer.block(&block))?;
                Ok(layer)
            })
        });
        // A single thread does both, also if no other can be started.
        let Some(Ok(writing)) = writing else {
            let mut layer = new();
            in_blocks(rows, &mut |block| layer.block(&block))?;
            return layer.finish(head);
        };
        let passed = in_blocks(rows, &mut |block| {
            send.send(block).map_err(|_| wrong("its writer has ended"))
        });
        drop(send);
        let written: io::Result<LayerWriter<'_>> = writing
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // A writer that has ended early knows why.
        let layer = written?;
        passed?;
        layer.finish(head)
    })
}

/// The name of the thread that writes blocks.
const WRITER: &str = "layer-writer";

/// Collects the rows into blocks; each but the last has at least [`BLOCK`] bytes.
fn in_blocks(
    rows: &mut dyn FnMut(&mut TakeRow<'_>) -> io::Result<()>,
    take: &mut dyn FnMut(Vec<u8>) -> io::Result<()>,
) -> io::Result<()> {
    let mut block = Vec::new();
    rows(&mut |key, value| {
        let len = u32::try_from(value.len()).map_err(|_| wrong("a row of 4 GiB"))?;
        if block.is_empty() {
            block.reserve(2 * BLOCK);
        }
        block.extend_from_slice(key);
        block.extend_from_slice(&len.to_le_bytes());
        block.extend_from_slice(value);
        if block.len() < BLOCK {
            return Ok(());
        }
        take(std::mem::take(&mut block))
    })?;
    match block.is_empty() {
        true => Ok(()),
        false => take(block),
    }
}

/// Writes blocks of rows after a head, in key order.
struct LayerWriter<'a> {
    disk: &'a dyn Disk,
    file: &'a Handle,
    offset: u64,
    rows: u64,
    index: Vec<u8>,
    filter: Vec<u8>,
}

impl<'a> LayerWriter<'a> {
    /// Begins after the head; there are at most `rows_max` rows.
    fn new(disk: &'a dyn Disk, file: &'a Handle, offset: u64, rows_max: u64) -> LayerWriter<'a> {
        let bytes = usize::try_from(rows_max).expect("rows fit memory") * BITS_PER_ROW / 8;
        let bytes = bytes
            .next_multiple_of(PAGE)
            .max(PAGE * usize::from(rows_max > 0));
        LayerWriter {
            disk,
            file,
            offset,
            rows: 0,
            index: Vec::new(),
            filter: vec![0; bytes],
        }
    }

    /// Appends a block of whole rows, whose keys must be greater than all earlier ones.
    fn block(&mut self, block: &[u8]) -> io::Result<()> {
        let mut rest = block;
        while let Some((key, value)) = row(rest) {
            let known = key.first_chunk().expect("a key is longer");
            let (page, bits) = places(*known, self.filter.len() / PAGE);
            for bit in bits {
                self.filter[page * PAGE + bit / 8] |= 1 << (bit % 8);
            }
            self.rows += 1;
            rest = &rest[KEY + 4 + value.len()..];
        }
        let len = u32::try_from(block.len()).map_err(|_| wrong("a block of 4 GiB"))?;
        self.index.extend_from_slice(&block[..KEY]);
        self.index.extend_from_slice(&self.offset.to_le_bytes());
        self.index.extend_from_slice(&len.to_le_bytes());
        self.index.extend_from_slice(&short_sum(block));
        disk::write_all(self.disk, self.file, block, self.offset)?;
        self.offset += u64::from(len);
        Ok(())
    }

    /// Ends the file, whose head has this checksum; returns its length in bytes.
    fn finish(mut self, head: Digest) -> io::Result<u64> {
        let blocks = self.index.len() / BLOCK_ENTRY;
        for page in self.filter.chunks(PAGE) {
            self.index.extend_from_slice(&short_sum(page));
        }
        let filter_at = self.offset;
        let index_at = filter_at + self.filter.len() as u64;
        let footer = FooterLine::of(Footer {
            rows: self.rows,
            blocks,
            pages: self.filter.len() / PAGE,
            filter_at,
            index_at,
            head,
            index: Digest::of(&self.index),
        });
        let footer_at = index_at + self.index.len() as u64;
        disk::write_all(self.disk, self.file, &self.filter, filter_at)?;
        disk::write_all(self.disk, self.file, &self.index, index_at)?;
        disk::write_all(self.disk, self.file, &footer.bytes(), footer_at)?;
        Ok(footer_at + FOOTER as u64)
    }
}
