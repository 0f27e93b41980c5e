//! Files of rows on a real disk: every row is found by its key, an absent key costs no block, and any changed byte is
//! noticed.

#[path = "../../../tests/threads.rs"]
mod threads;

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use disk::{Disk as _, OpenMode, Os};
use sorted_rows::{Digest, Layer, RowKey, Rows, TakeRow, merged, named, write_layer};
use tempfile::TempDir;

/// The bytes before the rows in the files of these tests.
const HEAD: &[u8] = b"a head of some bytes\n";

/// The sizes of the parts of a file, from the drawing in `layer.rs`.
const BLOCK: u64 = 16 * 1024;
const PAGE: u64 = 512;
const FOOTER: u64 = 512;

type Table = BTreeMap<RowKey, Vec<u8>>;

/// Returns a key in the usual form: one byte for the kind, then a hash.
fn key(kind: u8, number: u32) -> RowKey {
    let hash = Digest::of(&number.to_le_bytes()).bytes();
    let mut key = [kind; 20];
    key[1..].copy_from_slice(&hash[..19]);
    key
}

/// Returns rows of a kind with these numbers and values of 0 to 99 bytes.
fn table(kind: u8, numbers: Range<u32>) -> Table {
    let row = |number: u32| {
        let byte = number.to_le_bytes()[0];
        (key(kind, number), vec![byte; number as usize % 100])
    };
    numbers.map(row).collect()
}

/// A file of rows, and the length that its writer returned.
struct Written {
    directory: TempDir,
    length: u64,
}

impl Written {
    fn new(rows: &Table) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let root = Os.open_root(directory.path()).expect("the root");
        let file = Os.open(&root, Path::new("rows"), OpenMode::New);
        let file = file.expect("a file");
        disk::write_all(&Os, &file, HEAD, 0).expect("the head");
        let head = (HEAD.len() as u64, Digest::of(HEAD));
        let length = write_layer(&Os, &file, head, rows.len() as u64, &mut |put| {
            rows.iter().try_for_each(|(key, value)| put(key, value))
        });
        let length = length.expect("the rows");
        Self { directory, length }
    }

    fn layer(&self, seq: u64) -> std::io::Result<Layer> {
        let root = Os.open_root(self.directory.path()).expect("the root");
        let file = Os.open(&root, Path::new("rows"), OpenMode::Read);
        Layer::open(Arc::new(Os), file.expect("the file"), seq)
    }

    fn rows(&self) -> Rows {
        let layer = self.layer(1).expect("a whole file");
        Rows::new(self.directory.path(), vec![layer])
    }

    fn file(&self) -> File {
        let path = self.directory.path().join("rows");
        let file = File::options().read(true).write(true).open(path);
        file.expect("a file")
    }

    /// Inverts every bit of these bytes.
    fn damage(&self, at: Range<u64>) {
        let file = self.file();
        let mut bytes = vec![0; usize::try_from(at.end - at.start).expect("a few")];
        file.read_exact_at(&mut bytes, at.start).expect("bytes");
        bytes.iter_mut().for_each(|byte| *byte = !*byte);
        file.write_all_at(&bytes, at.start).expect("bytes");
    }
}

/// Returns all rows whose keys begin with `prefix`, in the visited order.
fn found(rows: &Rows, prefix: &[u8]) -> Vec<(RowKey, Vec<u8>)> {
    let mut found = Vec::new();
    rows.visit(prefix, &mut |key, value| found.push((key, value.to_vec())))
        .expect("whole rows");
    found
}

fn beginning_with(table: &Table, prefix: &[u8]) -> Vec<(RowKey, Vec<u8>)> {
    let rows = table.iter().filter(|(key, _)| key.starts_with(prefix));
    rows.map(|(key, value)| (*key, value.clone())).collect()
}

#[test]
fn each_row_is_found_by_its_key_and_each_kind_by_its_first_byte() {
    let mut all = table(3, 0..900);
    all.extend(table(5, 900..1_800));
    all.extend(table(9, 1_800..2_700));
    let written = Written::new(&all);
    let rows = written.rows();
    assert_eq!(rows.seq(), 1);
    assert_eq!(found(&rows, &[]), beginning_with(&all, &[]));
    for kind in 0..=10 {
        let of_kind = beginning_with(&all, &[kind]);
        assert_eq!(found(&rows, &[kind]), of_kind, "{kind}");
    }
    for key in all.keys() {
        for known in [8, 12, 20] {
            let row = vec![(*key, all[key].clone())];
            assert_eq!(found(&rows, &key[..known]), row);
        }
    }
    for number in 2_700..3_700 {
        assert_eq!(found(&rows, &key(5, number)), [], "{number}");
    }
    let layer = written.layer(1).expect("a whole file");
    let may_have = |key: &RowKey| layer.may_have_row(key).expect("a filter");
    assert!(all.keys().all(may_have));
    assert!(!may_have(&key(5, 2_700)));
    assert!(rows.verify().is_ok());
}

#[test]
fn a_value_may_be_longer_than_a_block() {
    let mut all = table(1, 0..3);
    all.insert([7; 20], vec![b'x'; 3 * 16 * 1024]);
    all.extend(table(8, 3..6));
    let written = Written::new(&all);
    assert_eq!(found(&written.rows(), &[]), beginning_with(&all, &[]));
}

#[test]
fn no_rows_are_a_file_too() {
    let written = Written::new(&Table::new());
    assert_eq!(written.length, HEAD.len() as u64 + FOOTER);
    let rows = written.rows();
    assert_eq!(found(&rows, &[]), []);
    assert_eq!(found(&rows, &key(1, 1)), []);
    assert!(rows.verify().is_ok() && rows.check_head(Digest::of(HEAD)).is_ok());
}

/// Returns the offsets at which the parts of a file begin: blocks, filter, index, footer; and its end.
fn parts(written: &Written, rows: &Table) -> [u64; 5] {
    // A block ends with the row that fills it.
    let (mut blocks, mut block, mut all) = (0, 0, 0);
    for value in rows.values() {
        let bytes = 20 + 4 + value.len() as u64;
        (block, all) = (block + bytes, all + bytes);
        if block >= BLOCK {
            (blocks, block) = (blocks + 1, 0);
        }
    }
    blocks += u64::from(block > 0);
    // Ten bits for each row.
    let pages = (rows.len() as u64 * 10).div_ceil(8 * PAGE);
    let filter = HEAD.len() as u64 + all;
    let index = filter + pages * PAGE;
    let footer = index + blocks * 48 + pages * 16;
    assert_eq!(written.length, footer + FOOTER);
    [HEAD.len() as u64, filter, index, footer, footer + FOOTER]
}

#[test]
fn the_file_is_as_long_as_its_writer_says_and_as_its_drawing_gives() {
    for count in [1, 10, 400, 3_300, 7_000] {
        let all = table(1, 0..count);
        let written = Written::new(&all);
        let [.., end] = parts(&written, &all);
        let layer = written.layer(4).expect("a whole file");
        assert_eq!(layer.seq, 4);
        assert_eq!(layer.rows(), u64::from(count));
        assert_eq!(written.file().metadata().expect("a file").len(), end);
    }
}

#[test]
fn many_rows_are_written_by_two_threads_like_few_by_one() {
    let all = table(1, 0..70_000);
    let file = Written::new(&Table::new());
    let root = Os.open_root(file.directory.path()).expect("the root");
    let handle = Os.open(&root, Path::new("rows"), OpenMode::Write);
    let head = (HEAD.len() as u64, Digest::of(HEAD));
    let rows = |put: &mut TakeRow<'_>| {
        all.iter().try_for_each(|(key, value)| put(key, value))?;
        // A new thread gives itself its name. This one has done so, since few of these hundreds of blocks can wait for it.
        assert!(threads::has_thread("layer-writer"));
        Ok(())
    };
    let count = all.len() as u64;
    let length = write_layer(&Os, &handle.expect("it"), head, count, &mut { rows });
    let written = Written {
        length: length.expect("the rows"),
        ..file
    };
    parts(&written, &all);
    let rows = written.rows();
    assert!(rows.verify().is_ok() && rows.check_head(Digest::of(HEAD)).is_ok());
    assert!(found(&rows, &[]) == beginning_with(&all, &[]));
    assert_eq!(found(&rows, &key(1, 70_000)), []);
}

#[test]
fn a_disk_that_fails_and_rows_that_cannot_be_read_are_errors_for_few_and_for_many() {
    let written = Written::new(&Table::new());
    let root = Os.open_root(written.directory.path()).expect("the root");
    let open = |how| Os.open(&root, Path::new("rows"), how).expect("the file");
    let unreadable = || std::io::Error::other("a row that cannot be read");
    for count in [100, 70_000] {
        let all = table(1, 0..count);
        let write = |how, fails: bool| {
            let mut rows = |put: &mut TakeRow<'_>| {
                all.iter().try_for_each(|(key, value)| put(key, value))?;
                if fails { Err(unreadable()) } else { Ok(()) }
            };
            let head = (HEAD.len() as u64, Digest::of(HEAD));
            let written = write_layer(&Os, &open(how), head, u64::from(count), &mut rows);
            written.map_err(|error| error.to_string())
        };
        let refused = write(OpenMode::Read, false).expect_err("a file that is only read");
        assert!(refused.contains("Bad file descriptor"), "{refused}");
        assert_eq!(
            write(OpenMode::Write, true),
            Err(unreadable().to_string()),
            "{count}"
        );
    }
}

#[test]
fn whatever_byte_is_damaged_it_is_noticed() {
    let written = Written::new(&table(1, 0..700));
    let [blocks, _, _, footer, end] = parts(&written, &table(1, 0..700));
    for at in (blocks..footer).step_by(97).chain(footer..end) {
        written.damage(at..at + 1);
        let noticed = written.layer(1).and_then(|layer| layer.verify());
        let error = noticed.expect_err("a damaged byte");
        let kind = error.kind();
        assert_eq!(kind, std::io::ErrorKind::InvalidData, "{at}: {error}");
        written.damage(at..at + 1);
    }
    assert!(written.rows().verify().is_ok());
}

#[test]
fn a_file_that_breaks_off_is_no_file_of_rows() {
    let written = Written::new(&table(1, 0..700));
    for shorter in [1, FOOTER, written.length - FOOTER + 1, written.length] {
        let written = Written::new(&table(1, 0..700));
        let cut = written.file().set_len(written.length - shorter);
        cut.expect("a shorter file");
        assert!(written.layer(1).is_err(), "{shorter} bytes less");
    }
}

#[test]
fn a_key_that_is_not_there_is_known_without_its_block() {
    let all = table(1, 0..6_550);
    let written = Written::new(&all);
    let [blocks, filter, ..] = parts(&written, &all);
    written.damage(blocks..filter);
    let rows = written.rows();
    let is_read = |key: RowKey| rows.visit(&key, &mut |_, _| {}).is_err();
    let in_vain = (10_000..20_000).filter(|&number| is_read(key(1, number)));
    let in_vain = in_vain.count();
    // The filter promises one in a hundred.
    assert!((20..=150).contains(&in_vain), "{in_vain} of 10000");
    assert!(all.keys().all(|key| is_read(*key)), "a row is not sought");
}

#[test]
fn a_filter_is_read_from_the_file_at_each_lookup_unless_it_is_kept() {
    let all = table(1, 0..2_000);
    let written = Written::new(&all);
    let [_, filter, index, _, _] = parts(&written, &all);
    let (mut kept, read) = (written.rows(), written.rows());
    kept.keep_filters().expect("a whole filter");
    written.damage(filter..index);
    for (key, value) in &all {
        assert_eq!(found(&kept, key), [(*key, value.clone())]);
        assert!(read.visit(key, &mut |_, _| {}).is_err());
    }
    // What is kept does not hide what became of the file.
    assert!(kept.verify().is_err());
    assert!(written.rows().keep_filters().is_err());
}

#[test]
fn a_row_is_read_from_its_block_alone() {
    let all = table(1, 0..6_550);
    let written = Written::new(&all);
    let [blocks, filter, ..] = parts(&written, &all);
    written.damage(blocks..filter - BLOCK);
    let rows = written.rows();
    let (key, value) = all.last_key_value().expect("rows");
    assert_eq!(found(&rows, key), [(*key, value.clone())]);
    assert!(rows.verify().is_err());
}

#[test]
fn rows_belong_to_one_head() {
    let written = Written::new(&table(1, 0..10));
    let rows = written.rows();
    assert_eq!(rows.check_head(Digest::of(HEAD)), Ok(()));
    let other = rows.check_head(Digest::of(b"another"));
    assert_eq!(other, Err("its rows belong to another head".to_owned()));
}

#[test]
fn of_several_rows_with_one_key_the_newest_counts() {
    let valued = |numbers: Range<u32>, value: &str| -> Table {
        let row = |number| (key(2, number), value.as_bytes().to_vec());
        numbers.map(row).collect()
    };
    let files = [
        Written::new(&valued(200..400, "newer")),
        Written::new(&valued(0..300, "older")),
    ];
    let [newer, older] = [files[0].layer(9), files[1].layer(4)].map(|layer| layer.expect("it"));
    let names = [(9, newer.sum), (4, older.sum)];
    let rows = Rows::new(files[0].directory.path(), vec![newer, older]);
    assert!(rows.has(9) && rows.has(4) && !rows.has(5));
    assert_eq!(rows.seq(), 9);
    assert_eq!(rows.root(), files[0].directory.path());
    let (above, beneath) = rows.split(1);
    assert_eq!([named(above), named(beneath)].concat(), names);

    let mut stored = valued(0..300, "older");
    stored.extend(valued(200..400, "newer"));
    assert_eq!(found(&rows, &[]), beginning_with(&stored, &[]));

    let new = valued(350..500, "new");
    stored.extend(valued(350..500, "new"));
    let mut visited = Vec::new();
    let mut new = new.iter().map(|(key, value)| (*key, value.as_slice()));
    let (layers, _) = rows.split(2);
    let merging = merged(layers, &[], &mut new, &mut |key, value| {
        visited.push((*key, value.to_vec()));
        Ok(())
    });
    merging.expect("whole rows");
    assert_eq!(visited, beginning_with(&stored, &[]));
}

#[test]
fn layers_of_about_the_same_size_become_one() {
    let [large, small] = [8_000, 10].map(|count| table(1, 0..count));
    let [large_bytes, small_bytes] = [&large, &small].map(|rows| {
        let bytes = rows.values().map(|value| 20 + 4 + value.len() as u64);
        bytes.sum::<u64>()
    });
    let [large, small] = [large, small].map(|rows| Written::new(&rows));
    assert!(large_bytes > 4 * 64 * 1024 && small_bytes < 8 * 1024);
    let rows = |layers: &[(&Written, u64)]| {
        let layers = layers.iter();
        let layers = layers.map(|(written, seq)| written.layer(*seq).expect("it"));
        Rows::new(Path::new("/"), layers.collect())
    };
    // A few bytes are not worth a file of their own: the small layer merges, the large one stays.
    let both = rows(&[(&small, 9), (&large, 8)]);
    assert_eq!(both.absorbed(0, 10), 1);
    let half = large_bytes.div_ceil(2) - small_bytes;
    assert_eq!(both.absorbed(half, 10), 2);
    assert_eq!(both.absorbed(half - 1, 10), 1);
    // A layer with the new one's name cannot stay beneath it.
    assert_eq!(both.absorbed(0, 8), 2);
    assert_eq!(rows(&[(&large, 9)]).absorbed(0, 10), 0);
    assert_eq!(rows(&[]).absorbed(0, 10), 0);
    // Eight files at most. What makes room merges with all that is no larger than it.
    let many: Vec<(&Written, u64)> = (0..10).map(|n| (&large, 100 - n)).collect();
    assert_eq!(rows(&many[..7]).absorbed(0, 200), 0);
    assert_eq!(rows(&many[..8]).absorbed(0, 200), 8);
    assert_eq!(rows(&many).absorbed(0, 200), 10);
}
