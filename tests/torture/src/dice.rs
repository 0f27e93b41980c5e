//! A small generator, so that a failing run can be had again from its seed.

/// Random numbers from a seed.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// The same seed gives the same rolls.
    pub fn new(seed: u64) -> Dice {
        // The generator would stay at zero forever.
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `sides`, 0 for no sides.
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.checked_rem(sides).unwrap_or_default()
    }

    /// Any number, to make other dice of.
    pub fn any(&mut self) -> u64 {
        self.roll(u64::MAX)
    }

    /// A place in something of this length, which is at least 1.
    pub fn below(&mut self, len: usize) -> usize {
        usize::try_from(self.roll(len as u64)).expect("less than a length")
    }

    /// Another order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}
