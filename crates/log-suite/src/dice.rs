//! Chance that a seed repeats.

/// A generator of numbers that follow from its seed: splitmix64.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Begins with a seed.
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// The next number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is above 0.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).expect("a count fits 64 bits");
        usize::try_from(self.roll() % end).expect("it is below a count")
    }

    /// True in so many of a hundred cases.
    pub fn percent(&mut self, chance: u8) -> bool {
        self.below(100) < usize::from(chance)
    }
}
