//! Random numbers that a seed reproduces.

/// A generator whose numbers follow from its seed: splitmix64.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Begins with a seed.
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// Returns the next number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`, which must be above 0.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).expect("a count fits 64 bits");
        usize::try_from(self.roll() % end).expect("it is below a count")
    }

    /// True in `chance` of a hundred cases.
    pub fn percent(&mut self, chance: u8) -> bool {
        self.below(100) < usize::from(chance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of the reference program for this seed.
    #[test]
    fn the_numbers_are_those_of_splitmix64() {
        let mut dice = Dice::new(1_234_567);
        let rolled: Vec<u64> = std::iter::repeat_with(|| dice.roll()).take(5).collect();
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(rolled, expected);
    }

    #[test]
    fn what_comes_in_so_many_of_a_hundred_cases_does() {
        let mut dice = Dice::new(7);
        let mut seen = [0; 4];
        (0..4_000).for_each(|_| seen[dice.below(4)] += 1);
        assert!(
            seen.iter().all(|count| (900..1_100).contains(count)),
            "{seen:?}"
        );
        let hits = (0..10_000).filter(|_| dice.percent(20)).count();
        assert!((1_800..2_200).contains(&hits), "{hits}");
        assert!((0..1_000).all(|_| !dice.percent(0) && dice.percent(100)));
    }
}
