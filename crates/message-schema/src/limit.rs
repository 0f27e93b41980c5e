//! Limits as types: a value out of range cannot exist past the reader. The lengths of texts and files, which every room
//! that reads or writes one needs, are plain numbers.

use serde::{Deserialize, Serialize};

/// The largest message, in bytes.
pub const MESSAGE_BYTES_MAX: u64 = 256 * 1024;

/// The largest packet, in bytes: packets have the same reader as messages.
pub const PACKET_BYTES_MAX: u64 = MESSAGE_BYTES_MAX;

/// The longest body, in characters.
pub const BODY_CHARS_MAX: usize = 20_000;

/// The longest subject, in characters.
pub const SUBJECT_CHARS_MAX: usize = 200;

/// The most messages of one outbox that wait for a packet, or behind one that does. An honest writer has one, for
/// milliseconds.
pub const HELD_MAX: usize = 256;

/// Names the range of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found} is out of range, expected {min} to {max}")]
pub struct OutOfRange {
    /// The number that was given.
    pub found: u64,
    /// The smallest number admitted.
    pub min: u64,
    /// The largest number admitted.
    pub max: u64,
}

macro_rules! limit_type {
    ($(#[$doc:meta])* $name:ident($repr:ty), $min:literal ..= $max:literal, default $default:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "u64", into = "u64")]
        pub struct $name($repr);

        impl $name {
            /// The smallest value.
            pub const MIN: Self = Self($min);
            /// The largest value.
            pub const MAX: Self = Self($max);

            /// Admits a number in range; the error names the range.
            pub fn new(number: u64) -> Result<Self, OutOfRange> {
                match <$repr>::try_from(number) {
                    Ok(n) if ($min..=$max).contains(&n) => Ok(Self(n)),
                    Ok(_) | Err(_) => Err(OutOfRange { found: number, min: $min, max: $max }),
                }
            }

            /// Returns the number.
            pub fn get(self) -> $repr {
                self.0
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self($default)
            }
        }

        impl TryFrom<u64> for $name {
            type Error = OutOfRange;
            fn try_from(number: u64) -> Result<Self, OutOfRange> {
                Self::new(number)
            }
        }

        impl From<$name> for u64 {
            fn from(value: $name) -> Self {
                value.0.into()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

limit_type!(
    /// The most rounds one generation of a review may take: 2 unless the project says otherwise, never above 3.
    Rounds(u8), 1..=3, default 2
);

limit_type!(
    /// The turns a reviewer may take in one round, shared by retries: 8 unless the request says otherwise ("Budgets" in
    /// `docs/protocol.md`).
    TurnBudget(u16), 1..=1000, default 8
);

limit_type!(
    /// The seconds a reviewer may run in one round, shared by retries: 600 unless the request says otherwise ("Budgets"
    /// in `docs/protocol.md`).
    RuntimeBudget(u32), 1..=86400, default 600
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_hold_their_defaults_and_ranges() {
        assert_eq!(Rounds::default().get(), 2);
        assert_eq!(TurnBudget::default().get(), 8);
        assert_eq!(RuntimeBudget::default().get(), 600);
        assert!(Rounds::new(0).is_err() && Rounds::new(4).is_err() && Rounds::new(3).is_ok());
        assert!(Rounds::new(1 << 40).is_err());
    }

    #[test]
    fn a_limit_out_of_range_is_refused_by_serde_too() {
        assert!(serde_json::from_str::<TurnBudget>("1001").is_err());
        assert_eq!(
            serde_json::from_str::<TurnBudget>("1000").expect("in range"),
            TurnBudget::MAX
        );
    }
}
