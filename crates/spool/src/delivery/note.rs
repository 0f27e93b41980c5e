//! One line of a cursor file: a position in the ledger, the boot in which it was noted, and a checksum.

use std::fmt;
use std::str::FromStr;

use crate::Digest;

/// The length of a line in bytes, newline included.
pub(super) const LINE: usize = 128;
const SUM_DIGITS: usize = 16;
/// Longer boot ids than a UUID are cut; their beginning still tells boots apart.
const BOOT_MAX: usize = 36;

/// The position of one file in its lane: the `n`-th (from 0) that record `seq` makes there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pos {
    pub(crate) seq: u64,
    pub(crate) n: u32,
}

impl Pos {
    /// Before every file.
    pub(crate) const START: Pos = Pos { seq: 0, n: 0 };
    /// After every file.
    pub(crate) const END: Pos = Pos::end_of(u64::MAX);

    /// After every file of record `seq`.
    pub(crate) const fn end_of(seq: u64) -> Pos {
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
        Ok(Pos {
            seq: seq.parse()?,
            n: n.parse()?,
        })
    }
}

/// One of the four lines of a cursor file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    /// Everything up to here was synced, files and directories; the line of even turns.
    DurableEven,
    /// Everything up to here was synced; the line of odd turns.
    DurableOdd,
    /// Everything up to here is complete under its temporary name, or already renamed.
    Prepared,
    /// Everything up to here is delivered.
    Delivered,
}

impl Slot {
    pub(super) const ALL: [Slot; 4] = [
        Slot::DurableEven,
        Slot::DurableOdd,
        Slot::Prepared,
        Slot::Delivered,
    ];

    /// The offset of the line in the file, in bytes.
    pub(crate) fn offset(self) -> u64 {
        self.index() as u64 * LINE as u64
    }

    /// The other line for `durable`.
    pub(crate) fn other(self) -> Slot {
        if self == Slot::DurableEven {
            Slot::DurableOdd
        } else {
            Slot::DurableEven
        }
    }

    /// The line's place among the four, from 0.
    pub(super) fn index(self) -> usize {
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CursorNote {
    pub(crate) pos: Pos,
    /// Files of records up to this one may have been delivered in an earlier boot, whose notes are void, so delivery
    /// looks for each before it makes it.
    pub(crate) verify: u64,
    /// The boot in which the note was made.
    pub(crate) boot: String,
}

impl CursorNote {
    /// Writes the line with its checksum.
    pub(crate) fn line(&self, slot: Slot) -> [u8; LINE] {
        let boot = short(&self.boot);
        let text = format!(
            "{:<9} {} verify {:020} boot {boot:<BOOT_MAX$} ",
            slot.word(),
            self.pos,
            self.verify
        );
        let mut line = [b' '; LINE];
        line[..text.len()].copy_from_slice(text.as_bytes());
        line[text.len()..text.len() + SUM_DIGITS].copy_from_slice(&sum(text.as_bytes()));
        line[LINE - 1] = b'\n';
        line
    }

    /// Reads a line back; `None` if its checksum or form is wrong or it belongs to another slot.
    pub(super) fn read(line: &[u8], slot: Slot) -> Option<CursorNote> {
        let text = std::str::from_utf8(line)
            .ok()?
            .strip_suffix('\n')?
            .trim_end();
        let (text, found) = text.split_at_checked(text.len().checked_sub(SUM_DIGITS)?)?;
        if found.as_bytes() != sum(text.as_bytes()) {
            return None;
        }
        let mut words = text.split_ascii_whitespace();
        let known = [
            words.next()?,
            words.next()?,
            words.next()?,
            words.next()?,
            words.next()?,
        ];
        let [word, pos, "verify", verify, "boot"] = known else {
            return None;
        };
        if word != slot.word() {
            return None;
        }
        let boot = words.next().unwrap_or_default().to_owned();
        Some(CursorNote {
            pos: pos.parse().ok()?,
            verify: verify.parse().ok()?,
            boot,
        })
    }
}

/// Cuts a boot id to the length that fits a line.
pub(super) fn short(boot: &str) -> String {
    boot.chars()
        .filter(char::is_ascii_graphic)
        .take(BOOT_MAX)
        .collect()
}

/// Returns whether two names are of one boot and, if both say it, of one mount. A process that does not see `/sys` does not
/// know the mount.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    let beginning = |name| str::split_once(name, '.').map(|(boot, _)| boot);
    match (beginning(one), beginning(other)) {
        (Some(_), Some(_)) | (None, None) => one == other,
        (Some(boot), None) => !boot.is_empty() && other.starts_with(boot),
        (None, Some(boot)) => !boot.is_empty() && one.starts_with(boot),
    }
}

fn sum(text: &[u8]) -> [u8; SUM_DIGITS] {
    let shown = Digest::of(text).to_string();
    let mut sum = [0; SUM_DIGITS];
    sum.copy_from_slice(&shown.as_bytes()[shown.len() - SUM_DIGITS..]);
    sum
}
