//! The spend of an agent's program, as the program itself reports it: tokens and money. In whole numbers, so that a sum
//! does not depend on the order of addition.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Micro-dollars in a dollar.
const MICRO: f64 = 1_000_000.0;

/// Tokens and money. An amount that a program does not report counts as zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Spend {
    /// Tokens read and written, including those of a cache.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub tokens: u64,
    /// Money, in millionths of a US dollar.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub micro_usd: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Spend {
    /// Returns a spend of this many tokens.
    pub fn tokens(tokens: u64) -> Self {
        Self {
            tokens,
            micro_usd: 0,
        }
    }

    /// True if both amounts are zero.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            micro_usd: self.micro_usd.saturating_add(other.micro_usd),
        }
    }

    /// Returns the excess over the other, for each amount; zero if the other is more.
    #[must_use]
    pub fn beyond(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_sub(other.tokens),
            micro_usd: self.micro_usd.saturating_sub(other.micro_usd),
        }
    }

    /// Returns the larger amount of tokens and the larger amount of money.
    #[must_use]
    pub fn most(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.max(other.tokens),
            micro_usd: self.micro_usd.max(other.micro_usd),
        }
    }
}

/// Converts dollars to whole micro-dollars; `None` if it is no amount of money.
pub fn micro_usd(dollars: f64) -> Option<u64> {
    // Far beyond any bill, and far below where a float loses micro-dollars.
    let is_amount = (0.0..=1_000_000_000.0).contains(&dollars);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    is_amount.then(|| (dollars * MICRO).round() as u64)
}

/// Formats an amount in dollars for people: with cents, or with more digits if cents would hide it.
pub fn usd(micro_usd: u64) -> String {
    let (dollars, micro) = (micro_usd / 1_000_000, micro_usd % 1_000_000);
    if micro.is_multiple_of(10_000) || micro_usd >= 1_000_000 {
        return format!("{dollars}.{:02}", micro / 10_000);
    }
    let digits = format!("{micro:06}");
    format!("{dollars}.{:0<2}", digits.trim_end_matches('0'))
}

impl fmt::Display for Spend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self {
                tokens,
                micro_usd: 0,
            } => write!(f, "{tokens} tokens"),
            Self { tokens, micro_usd } => write!(f, "{tokens} tokens, {} USD", usd(*micro_usd)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_counted_in_whole_numbers_and_shown_as_people_read_it() {
        for (dollars, micro, shown) in [
            (0.000_140_000_000_000_000_01, 140, "0.00014"),
            (0.000_105, 105, "0.000105"),
            (0.5, 500_000, "0.50"),
            (12.345_678, 12_345_678, "12.34"),
            (0.0, 0, "0.00"),
        ] {
            assert_eq!(micro_usd(dollars), Some(micro), "{dollars}");
            assert_eq!(usd(micro), shown);
        }
        for none in [-0.1, f64::NAN, f64::INFINITY, 1e12] {
            assert_eq!(micro_usd(none), None, "{none}");
        }
    }

    #[test]
    fn what_is_known_is_not_counted_again() {
        let [first, all] =
            [(5, 10), (7, 10)].map(|(tokens, micro_usd)| Spend { tokens, micro_usd });
        assert_eq!(all.beyond(first), Spend::tokens(2));
        assert!(first.beyond(all).is_nothing());
        assert_eq!(first.plus(all.beyond(first)), all.most(first));
    }
}
