//! The progress of one lane: which files are prepared, which are delivered, and up to where they survive a power cut.
//!
//! `note` defines the form of a line; this module defines what the four lines of a cursor file mean together.
//!
//! A cursor file is four lines of 128 bytes: two for `durable`, written alternately so that a torn write spares one of
//! them, and one each for the notes `prepared` and `delivered`. Each line carries a checksum, and all four share one
//! disk sector. Notes are plain writes: they survive the process, and only `durable` is trusted after a reboot.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use super::Lane;
use super::note::{CursorNote, LINE, Pos, Slot, is_same, short};
use crate::root::{Dir, OpenRoot};
use crate::{FileName, Mailbox, SpoolError, dirs, layout};
use disk::{self, Handle, OpenMode};

/// The length of a cursor file in bytes.
pub(crate) const LEN: usize = 4 * LINE;

/// The progress of one lane, as its cursor file stores it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Everything up to here survives a power cut.
    pub(crate) durable: Pos,
    /// The line to which `durable` is written next: the older of the two.
    pub(crate) turn: Slot,
    /// Everything up to here is delivered.
    pub(crate) done: Pos,
    /// Everything up to here is complete under its temporary name, or already renamed.
    pub(crate) prepared: Option<Pos>,
    /// Before it makes a file of a record up to this one, delivery looks whether the file exists.
    pub(crate) verify: u64,
}

/// The part of a cursor file that can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    /// All of it.
    Whole,
    /// The notes are void, as always after a reboot or another mount.
    NewBoot,
    /// The notes cannot be read; only `durable` counts.
    NotesLost,
    /// Nothing in it can be read, or it does not exist.
    Lost,
}

impl Progress {
    /// Returns the progress of a lane that no record up to `head` uses.
    pub(crate) fn new_after(head: u64) -> Progress {
        let pos = Pos::end_of(head);
        Progress {
            durable: pos,
            turn: Slot::DurableEven,
            done: pos,
            prepared: None,
            verify: 0,
        }
    }

    /// Reads a cursor file of a ledger that ends with record `head`, in boot `boot`.
    pub(crate) fn read(bytes: &[u8], boot: &str, head: u64) -> (Progress, Trust) {
        let [even, odd, prepared, delivered] = Slot::ALL.map(|slot| {
            let begin = slot.index() * LINE;
            bytes
                .get(begin..begin + LINE)
                .and_then(|line| CursorNote::read(line, slot))
        });
        let [even, odd] = [even, odd].map(|note| note.map(|note| note.pos));
        let boot = short(boot);
        let turn = if even > odd {
            Slot::DurableOdd
        } else {
            Slot::DurableEven
        };
        let known = even.max(odd);
        let durable = known.unwrap_or(Pos::START);
        let unreadable = prepared.is_none() && delivered.is_none();
        let [prepared, delivered] =
            [prepared, delivered].map(|note| note.filter(|note| is_same(&note.boot, &boot)));
        // A note that is behind the other is out of date. A missing note was being written when the process ended:
        // without `prepared` nothing was renamed yet, and without `delivered` the temporary names show what was
        // renamed.
        let prepared = prepared.filter(|note| {
            delivered
                .as_ref()
                .is_none_or(|delivered| delivered.pos < note.pos)
        });
        let trust = match (&prepared, &delivered) {
            (Some(_), _) | (_, Some(_)) => Trust::Whole,
            (None, None) if known.is_none() => Trust::Lost,
            (None, None) if unreadable => Trust::NotesLost,
            (None, None) => Trust::NewBoot,
        };
        let done = delivered.as_ref().map_or(durable, |note| note.pos);
        let verify = prepared.as_ref().or(delivered.as_ref());
        let progress = Progress {
            durable,
            turn,
            done: done.max(durable),
            verify: verify.map_or(head, |note| note.verify),
            // A durable item was delivered, so it no longer waits for its rename.
            prepared: prepared.map(|note| note.pos).filter(|pos| *pos > durable),
        };
        (progress, trust)
    }

    /// Returns the furthest item the cursor names; the ledger must reach it.
    pub(crate) fn furthest(&self) -> Pos {
        self.done
            .max(self.durable)
            .max(self.prepared.unwrap_or(Pos::START))
    }

    /// Returns the bytes of a new cursor file.
    pub(crate) fn file(&self, boot: &str) -> Vec<u8> {
        let durable = CursorNote {
            pos: self.durable,
            verify: 0,
            boot: boot.to_owned(),
        };
        let done = CursorNote {
            pos: self.done,
            verify: self.verify,
            boot: boot.to_owned(),
        };
        [
            durable.line(Slot::DurableEven),
            durable.line(Slot::DurableOdd),
            done.line(Slot::Prepared),
            done.line(Slot::Delivered),
        ]
        .concat()
    }
}

/// The cursor files, read before the ledger, which must hold every record they name.
pub(crate) struct Cursors(BTreeMap<FileName, Vec<u8>>);

impl Cursors {
    /// Reads all cursor files without changing any. A workspace that was never served has none.
    pub(crate) fn read(root: &OpenRoot) -> Result<Cursors, SpoolError> {
        let Some(dir) = root.dir_if_there(dirs::CURSORS.as_ref())? else {
            return Ok(Cursors(BTreeMap::new()));
        };
        let names = root
            .disk
            .list(&dir.handle)
            .map_err(|source| root.error("list", &dir.path, source))?;
        let mut cursors = BTreeMap::new();
        for name in names.into_iter().filter(layout::is_cursor) {
            // A cursor that is not a readable file counts as lost; its lane reports that.
            let bytes = root.bytes(&dir, &name, LEN as u64)?.unwrap_or_default();
            cursors.insert(name, bytes);
        }
        Ok(Cursors(cursors))
    }

    /// Returns a lane's cursor file; empty if it does not exist.
    pub(super) fn of(&self, name: &FileName) -> &[u8] {
        self.0.get(name).map_or(&[][..], Vec::as_slice)
    }

    /// Returns the name of this pull request's own cursor, as version 0.1 kept one, if it exists.
    pub(super) fn of_one_pull(&self, mailbox: &Mailbox) -> Option<FileName> {
        let name = layout::cursor_name(&mailbox.to_string());
        self.0.contains_key(&name).then_some(name)
    }

    /// Lists the cursors of single pull requests.
    pub(super) fn of_pulls(&self) -> Vec<FileName> {
        let whole = Lane::Pulls.cursor_name();
        let stem = whole
            .as_bytes()
            .strip_suffix(b"cursor")
            .expect("its ending");
        let is_of_one = |name: &&FileName| **name != whole && name.as_bytes().starts_with(stem);
        self.0.keys().filter(is_of_one).cloned().collect()
    }

    /// Fails if a cursor names a record after `head`: the ledger lost that record.
    pub(crate) fn check(&self, root: &OpenRoot, head: u64) -> Result<(), SpoolError> {
        for (name, bytes) in &self.0 {
            let seq = Progress::read(bytes, &root.boot, head).0.furthest().seq;
            if seq > head {
                return Err(SpoolError::Damaged {
                    segment: root.path(dirs::LEDGER.as_ref()),
                    line: head + 1,
                    what: format!(
                        "the ledger ends with record {head}, but {name} speaks of record {seq}"
                    ),
                });
            }
        }
        Ok(())
    }
}

pub(super) struct Cursor<'a> {
    pub(super) root: &'a OpenRoot,
    file: Handle,
    path: PathBuf,
}

impl<'a> Cursor<'a> {
    /// Opens the file, and recreates it from `progress` if somebody removed it while we run; returns whether it did.
    pub(super) fn open(
        root: &'a OpenRoot,
        name: &FileName,
        progress: &Progress,
    ) -> Result<(Cursor<'a>, bool), SpoolError> {
        let dir = root.dir(dirs::CURSORS.as_ref())?;
        let path = dir.path.join(name);
        let open = || disk::if_there(root.disk.open(&dir.handle, name.as_ref(), OpenMode::Write));
        let mut made = false;
        let opened = match open() {
            Ok(None) => {
                make(root, &dir, name, progress)?;
                made = true;
                open().and_then(|file| file.ok_or_else(|| io::ErrorKind::NotFound.into()))
            }
            Ok(Some(file)) => Ok(file),
            Err(error) => Err(error),
        };
        let file = opened.map_err(|source| root.error("open", &path, source))?;
        Ok((Cursor { root, file, path }, made))
    }

    /// Writes one of the four lines.
    pub(super) fn write(&self, slot: Slot, note: &CursorNote) -> Result<(), SpoolError> {
        disk::write_all(
            &*self.root.disk,
            &self.file,
            &note.line(slot),
            slot.offset(),
        )
        .map_err(|source| self.root.error("write", &self.path, source))
    }
}

/// Writes a whole cursor file, replacing any file of its name.
pub(crate) fn make(
    root: &OpenRoot,
    dir: &Dir,
    name: &FileName,
    progress: &Progress,
) -> Result<(), SpoolError> {
    let temporary = layout::cursor_temporary(name);
    root.write_new(dir, &temporary, &progress.file(&root.boot))?;
    root.disk
        .rename_over(&dir.handle, temporary.as_ref(), name.as_ref())
        .map_err(|source| root.error_at("write", dir, name, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOT: &str = "0a1b2c3d-0000-4000-8000-0123456789ab";

    fn pos(seq: u64, n: u32) -> Pos {
        Pos { seq, n }
    }

    /// Returns a cursor file with these notes of this boot.
    fn file(durable: [Pos; 2], prepared: Pos, delivered: Pos) -> Vec<u8> {
        let note = |pos| CursorNote {
            pos,
            verify: 3,
            boot: BOOT.to_owned(),
        };
        [
            note(durable[0]).line(Slot::DurableEven),
            note(durable[1]).line(Slot::DurableOdd),
            note(prepared).line(Slot::Prepared),
            note(delivered).line(Slot::Delivered),
        ]
        .concat()
    }

    fn spoil(mut bytes: Vec<u8>, slots: &[Slot]) -> Vec<u8> {
        for slot in slots {
            bytes[slot.index() * LINE + 20] ^= 1;
        }
        bytes
    }

    #[test]
    fn a_cursor_is_readable_and_fits_a_sector() {
        let bytes = file([pos(4, 0), pos(2, 0)], pos(7, 1), pos(7, 0));
        assert_eq!(bytes.len(), 512);
        let text = String::from_utf8(bytes).expect("text");
        let prepared = text.lines().nth(2).expect("four lines");
        assert!(prepared.starts_with(
            "prepared  00000000000000000007.000001 verify 00000000000000000003 boot 0a1b2c3d"
        ));
    }

    #[test]
    fn the_notes_of_this_boot_say_what_is_done() {
        let read = |prepared, delivered| {
            let bytes = file([pos(4, 0), pos(2, 0)], prepared, delivered);
            let (progress, trust) = Progress::read(&bytes, BOOT, 9);
            assert_eq!(
                (trust, progress.durable, progress.turn),
                (Trust::Whole, pos(4, 0), Slot::DurableOdd)
            );
            (progress.done, progress.prepared)
        };
        assert_eq!(read(pos(7, 1), pos(7, 0)), (pos(7, 0), Some(pos(7, 1))));
        assert_eq!(read(pos(7, 0), pos(7, 0)), (pos(7, 0), None));
        assert_eq!(read(pos(3, 0), pos(3, 0)), (pos(4, 0), None));
    }

    #[test]
    fn either_note_alone_is_enough() {
        let bytes = file([pos(4, 0), pos(2, 0)], pos(8, 0), pos(7, 0));
        let (progress, trust) = Progress::read(&spoil(bytes.clone(), &[Slot::Delivered]), BOOT, 9);
        assert_eq!(
            (progress.done, progress.prepared, trust),
            (pos(4, 0), Some(pos(8, 0)), Trust::Whole)
        );
        let (progress, trust) = Progress::read(&spoil(bytes, &[Slot::Prepared]), BOOT, 9);
        assert_eq!(
            (progress.done, progress.prepared, trust),
            (pos(7, 0), None, Trust::Whole)
        );
    }

    #[test]
    fn a_stale_prepared_note_alone_prepares_nothing() {
        let bytes = spoil(
            file([pos(8, 0), pos(2, 0)], pos(8, 0), pos(8, 0)),
            &[Slot::Delivered],
        );
        let (progress, trust) = Progress::read(&bytes, BOOT, 9);
        assert_eq!(
            (progress.done, progress.prepared, trust),
            (pos(8, 0), None, Trust::Whole)
        );
    }

    #[test]
    fn in_another_boot_only_durable_counts() {
        let bytes = file([pos(4, 0), pos(2, 0)], pos(8, 0), pos(7, 0));
        let (progress, trust) = Progress::read(&bytes, "another", 9);
        assert_eq!(
            (progress.done, progress.verify, trust),
            (pos(4, 0), 9, Trust::NewBoot)
        );
    }

    #[test]
    fn a_mount_that_nobody_names_is_no_other_one() {
        let cut = &BOOT[..16];
        let [one, other] = ["1f", "20"].map(|mount| format!("{cut}.{mount}"));
        let trust = |noted: &str, now: &str| {
            let note = CursorNote {
                pos: pos(7, 0),
                verify: 3,
                boot: noted.to_owned(),
            };
            let slots = [Slot::DurableEven, Slot::DurableOdd, Slot::Delivered];
            let mut bytes = vec![b' '; 4 * LINE];
            for slot in slots {
                bytes[slot.index() * LINE..][..LINE].copy_from_slice(&note.line(slot));
            }
            Progress::read(&bytes, now, 9).1
        };
        for (noted, now) in [(&*one, &*one), (BOOT, &one), (&one, BOOT), (BOOT, BOOT)] {
            assert_eq!(trust(noted, now), Trust::Whole, "{noted} {now}");
        }
        let elsewhere = "another boot.1f";
        for (noted, now) in [
            (&*one, &*other),
            (&one, elsewhere),
            (BOOT, elsewhere),
            (elsewhere, BOOT),
            (BOOT, ".1f"),
        ] {
            assert_eq!(trust(noted, now), Trust::NewBoot, "{noted} {now}");
        }
    }

    #[test]
    fn a_torn_durable_leaves_the_one_before() {
        let bytes = file([pos(4, 0), pos(2, 0)], pos(8, 0), pos(7, 0));
        let read = |slots: &[Slot]| Progress::read(&spoil(bytes.clone(), slots), "another", 9);
        assert_eq!(read(&[Slot::DurableEven]).0.durable, pos(2, 0));
        let (progress, trust) = read(&[Slot::DurableEven, Slot::DurableOdd]);
        assert_eq!(
            (progress.durable, progress.verify, trust),
            (Pos::START, 9, Trust::Lost)
        );
        assert_eq!(read(&[Slot::Prepared, Slot::Delivered]).1, Trust::NotesLost);
        assert_eq!(Progress::read(b"", BOOT, 9).1, Trust::Lost);
    }
}
