//! A small random number generator, so that a failing run can be repeated from its seed.

/// Random numbers from a seed.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Makes a generator; the same seed gives the same numbers.
    pub fn new(seed: u64) -> Dice {
        // From zero, xorshift would stay at zero forever.
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a number below `sides`; 0 if `sides` is 0.
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.checked_rem(sides).unwrap_or_default()
    }

    /// Returns any number, for example as another seed.
    pub fn any(&mut self) -> u64 {
        self.roll(u64::MAX)
    }

    /// Returns an index into something of this length, which is at least 1.
    pub fn below(&mut self, len: usize) -> usize {
        usize::try_from(self.roll(len as u64)).expect("less than a length")
    }

    /// Shuffles the items.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}
