//! How far one lane is: which of its files were begun, which are there, and up to where they survive a power cut.
//!
//! A cursor file is four lines of 128 bytes: two for `durable`, written in turn so that a torn write spares one of them,
//! and one each for the notes `prepared` and `delivered`. Each line carries a checksum. All four share one disk sector.
//! Notes are plain writes: they survive the process, and only `durable` is trusted in another boot of the kernel.

use std::fmt;
use std::str::FromStr;

use crate::Digest;

const LINE: usize = 128;
const SUM_DIGITS: usize = 16;
/// A boot id longer than a UUID is cut; the beginning tells boots apart.
const BOOT_MAX: usize = 36;

/// The length of a cursor file in bytes.
pub(crate) const LEN: usize = 4 * LINE;

/// The place of one file in its lane: the `n`-th (from 0) that record `seq` makes there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pos {
    pub(crate) seq: u64,
    pub(crate) n: u32,
}

impl Pos {
    /// Before every file.
    pub(crate) const START: Pos = Pos { seq: 0, n: 0 };

    /// After every file of record `seq`.
    pub(crate) fn end_of(seq: u64) -> Pos {
        Pos { seq, n: 999_999 }
    }
}

impl fmt::Display for Pos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:020}.{:06}", self.seq, self.n)
    }
}

impl FromStr for Pos {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Pos, Self::Err> {
        let (seq, n) = text.split_once('.').unwrap_or((text, "x"));
        Ok(Pos { seq: seq.parse()?, n: n.parse()? })
    }
}

/// Which of the four lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    /// Everything up to here was synced, files and directories; the even turns.
    DurableEven,
    /// The same; the odd turns.
    DurableOdd,
    /// The file at this place is complete under its temporary name, and everything before it is delivered.
    Prepared,
    /// Everything up to this place is delivered.
    Delivered,
}

impl Slot {
    const ALL: [Slot; 4] = [Slot::DurableEven, Slot::DurableOdd, Slot::Prepared, Slot::Delivered];

    /// Where the line begins in the file.
    pub(crate) fn offset(self) -> u64 {
        self.index() as u64 * LINE as u64
    }

    /// The other line for `durable`.
    pub(crate) fn other(self) -> Slot {
        if self == Slot::DurableEven { Slot::DurableOdd } else { Slot::DurableEven }
    }

    fn index(self) -> usize {
        match self {
            Slot::DurableEven => 0,
            Slot::DurableOdd => 1,
            Slot::Prepared => 2,
            Slot::Delivered => 3,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Slot::DurableEven | Slot::DurableOdd => "durable",
            Slot::Prepared => "prepared",
            Slot::Delivered => "delivered",
        }
    }
}

/// One line's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) pos: Pos,
    /// Files of records up to this one may have been delivered in a boot whose notes are void: each is looked for
    /// before it is made.
    pub(crate) verify: u64,
    /// The boot in which the note was made.
    pub(crate) boot: String,
}

impl Note {
    pub(crate) fn line(&self, slot: Slot) -> [u8; LINE] {
        let boot = short(&self.boot);
        let text =
            format!("{:<9} {} verify {:020} boot {boot:<BOOT_MAX$} ", slot.word(), self.pos, self.verify);
        let mut line = [b' '; LINE];
        line[..text.len()].copy_from_slice(text.as_bytes());
        line[text.len()..text.len() + SUM_DIGITS].copy_from_slice(&sum(text.as_bytes()));
        line[LINE - 1] = b'\n';
        line
    }

    fn read(line: &[u8], slot: Slot) -> Option<Note> {
        let text = std::str::from_utf8(line).ok()?.strip_suffix('\n')?.trim_end();
        let (text, found) = text.split_at_checked(text.len().checked_sub(SUM_DIGITS)?)?;
        if found.as_bytes() != sum(text.as_bytes()) {
            return None;
        }
        let mut words = text.split_ascii_whitespace();
        let known = [words.next()?, words.next()?, words.next()?, words.next()?, words.next()?];
        let [word, pos, "verify", verify, "boot"] = known else { return None };
        if word != slot.word() {
            return None;
        }
        let boot = words.next().unwrap_or_default().to_owned();
        Some(Note { pos: pos.parse().ok()?, verify: verify.parse().ok()?, boot })
    }
}

fn short(boot: &str) -> String {
    boot.chars().filter(char::is_ascii_graphic).take(BOOT_MAX).collect()
}

fn sum(text: &[u8]) -> [u8; SUM_DIGITS] {
    let shown = Digest::of(text).to_string();
    let mut sum = [0; SUM_DIGITS];
    sum.copy_from_slice(&shown.as_bytes()[shown.len() - SUM_DIGITS..]);
    sum
}

/// What a lane knows about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Everything up to here survives a power cut.
    pub(crate) durable: Pos,
    /// The line to which `durable` is written next: the older of the two.
    pub(crate) turn: Slot,
    /// Everything up to here is delivered.
    pub(crate) done: Pos,
    /// This file is complete under its temporary name, or was already renamed.
    pub(crate) prepared: Option<Pos>,
    /// Files of records up to this one are looked for before they are made.
    pub(crate) verify: u64,
}

/// What a cursor file was good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    /// All of it.
    Whole,
    /// The notes are void, as they always are in a new boot.
    NewBoot,
    /// The notes cannot be read; only `durable` counts.
    NotesLost,
    /// Nothing in it can be read, or there is no file.
    Lost,
}

impl Progress {
    /// What a lane knows that was never used before record `head + 1`.
    pub(crate) fn new_after(head: u64) -> Progress {
        let pos = Pos::end_of(head);
        Progress { durable: pos, turn: Slot::DurableEven, done: pos, prepared: None, verify: 0 }
    }

    /// Reads a cursor file of a ledger that ends with record `head`, in boot `boot`.
    pub(crate) fn read(bytes: &[u8], boot: &str, head: u64) -> (Progress, Trust) {
        let [even, odd, prepared, delivered] = Slot::ALL.map(|slot| {
            let begin = slot.index() * LINE;
            bytes.get(begin..begin + LINE).and_then(|line| Note::read(line, slot))
        });
        let [even, odd] = [even, odd].map(|note| note.map(|note| note.pos));
        let boot = short(boot);
        let turn = if even > odd { Slot::DurableOdd } else { Slot::DurableEven };
        let Some(durable) = even.max(odd) else {
            return (
                Progress { durable: Pos::START, turn, done: Pos::START, prepared: None, verify: head },
                Trust::Lost,
            );
        };
        let lost = prepared.is_none() && delivered.is_none();
        let [prepared, delivered] = [prepared, delivered].map(|note| note.filter(|note| note.boot == boot));
        // A note that is behind the other was overtaken; a note that is gone was being written when the process ended.
        let before = delivered.as_ref().map(|delivered| delivered.pos);
        let prepared = prepared.filter(|prepared| before.is_none_or(|before| before < prepared.pos));
        let done = before.unwrap_or(durable).max(durable);
        match (prepared, delivered) {
            (Some(Note { pos, verify, .. }), _) => {
                (Progress { durable, turn, done, prepared: Some(pos), verify }, Trust::Whole)
            }
            (None, Some(Note { verify, .. })) => {
                (Progress { durable, turn, done, prepared: None, verify }, Trust::Whole)
            }
            (None, None) => {
                let trust = if lost { Trust::NotesLost } else { Trust::NewBoot };
                (Progress { durable, turn, done, prepared: None, verify: head }, trust)
            }
        }
    }

    /// The furthest place the cursor speaks of; the ledger must reach it.
    pub(crate) fn furthest(&self) -> Pos {
        self.done.max(self.durable).max(self.prepared.unwrap_or(Pos::START))
    }

    /// Says whether the file at `pos` still has work to do, given what the notes prove.
    pub(crate) fn is_open(&self, pos: Pos) -> bool {
        // Everything before a prepared file is delivered, even if the note that said so was torn.
        pos > self.done && self.prepared.is_none_or(|prepared| pos >= prepared)
    }

    /// Gives a whole new cursor file.
    pub(crate) fn file(&self, boot: &str) -> Vec<u8> {
        let durable = Note { pos: self.durable, verify: 0, boot: boot.to_owned() };
        let done = Note { pos: self.done, verify: self.verify, boot: boot.to_owned() };
        [
            durable.line(Slot::DurableEven),
            durable.line(Slot::DurableOdd),
            done.line(Slot::Prepared),
            done.line(Slot::Delivered),
        ]
        .concat()
    }
}
