//! The states that a power cut may leave: everything up to the last flush, and of the later writes none, all, or any
//! part, down to single sectors.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::image::{BLOCK, Image};
use super::recorder::Event;
use crate::dice::Dice;

const SECTOR: usize = 512;

/// The fate of the writes since the last flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// None of them arrived.
    Lost,
    /// All of them arrived.
    Kept,
    /// A random selection of their blocks arrived.
    Some(u64),
    /// A random selection of their blocks arrived, and some sectors of one more.
    Torn(u64),
}

/// One state that a cut may leave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// The number of events before it.
    pub(crate) at: usize,
    /// The fate of the unflushed writes.
    pub(crate) fate: Fate,
}

/// Chooses up to `count` cuts from `ready` on, sorted by position: each position in turn, then more random fates for
/// each.
pub(crate) fn choose(
    events: &[Event],
    ready: usize,
    end: usize,
    count: usize,
    dice: &mut Dice,
) -> Vec<Cut> {
    let mut cuts: Vec<Cut> = Vec::new();
    let mut met = BTreeSet::new();
    let places: Vec<usize> = (ready..=end).collect();
    // Enough rounds that even a short log gives `count` cuts if it can.
    for turn in 0..64 {
        let mut order = places.clone();
        dice.shuffle(&mut order);
        for at in order {
            if cuts.len() >= count {
                break;
            }
            let fate = match turn {
                0 => [
                    Fate::Some(dice.any()),
                    Fate::Lost,
                    Fate::Torn(dice.any()),
                    Fate::Kept,
                ][at % 4],
                1 => Fate::Lost,
                2 => Fate::Kept,
                3.. => [Fate::Some(dice.any()), Fate::Torn(dice.any())][turn % 2],
            };
            let cut = Cut { at, fate };
            let mut hasher = DefaultHasher::new();
            (flushed(events, at), pieces(events, &cut, u64::MAX)).hash(&mut hasher);
            if met.insert(hasher.finish()) {
                cuts.push(cut);
            }
        }
    }
    cuts.sort_by_key(|cut| cut.at);
    cuts
}

/// The position of the last flush before `at`, as a number of events.
pub(crate) fn flushed(events: &[Event], at: usize) -> usize {
    events[..at]
        .iter()
        .rposition(|event| matches!(event, Event::Flush))
        .map_or(0, |last| last + 1)
}

/// Applies the writes between two positions.
pub(crate) fn advance(image: &mut Image, events: &[Event], from: usize, to: usize) {
    for event in &events[from..to] {
        if let Event::Write(offset, bytes) = event {
            image.write(*offset, bytes);
        }
    }
}

/// Applies the unflushed writes that arrived.
pub(crate) fn strike(image: &mut Image, events: &[Event], cut: &Cut, superblock: u64) {
    for (event, from, to) in pieces(events, cut, superblock) {
        if let Event::Write(offset, bytes) = &events[event] {
            image.write(offset + from as u64, &bytes[from..to]);
        }
    }
}

/// The pieces that arrived: the event, and the range within its bytes.
fn pieces(events: &[Event], cut: &Cut, superblock: u64) -> Vec<(usize, usize, usize)> {
    let mut all = Vec::new();
    for (index, event) in events
        .iter()
        .enumerate()
        .take(cut.at)
        .skip(flushed(events, cut.at))
    {
        let Event::Write(offset, bytes) = event else {
            continue;
        };
        for from in (0..bytes.len()).step_by(BLOCK) {
            all.push((
                index,
                from,
                bytes.len().min(from + BLOCK),
                *offset + from as u64,
            ));
        }
    }
    let part = |seed: u64, is_torn: bool| {
        let mut dice = Dice::new(seed);
        let percent = [15, 50, 85][dice.below(3)];
        let torn = if all.is_empty() || !is_torn {
            usize::MAX
        } else {
            dice.below(all.len())
        };
        let mut kept = Vec::new();
        for (number, (index, from, to, offset)) in all.iter().copied().enumerate() {
            if number == torn && offset != superblock {
                let sectors = (from..to).step_by(SECTOR).filter(|_| dice.below(2) == 0);
                kept.extend(sectors.map(|sector| (index, sector, to.min(sector + SECTOR))));
            } else if dice.below(100) < percent {
                kept.push((index, from, to));
            }
        }
        kept
    };
    match cut.fate {
        Fate::Lost => Vec::new(),
        Fate::Kept => all
            .iter()
            .map(|(index, from, to, _)| (*index, *from, *to))
            .collect(),
        Fate::Some(seed) => part(seed, false),
        Fate::Torn(seed) => part(seed, true),
    }
}
