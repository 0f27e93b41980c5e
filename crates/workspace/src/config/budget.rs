//! Reads `[budget]`: how many tokens and how much money agents' commands may use.

use std::fmt;

use message_schema::spend::micro_usd;
use review::{SpendBudget, SpendLimit};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

use super::field;

/// The largest limit on tokens.
const TOKENS_MAX: u64 = 1_000_000_000_000;

/// The largest limit on dollars.
const USD_MAX: f64 = 1_000_000.0;

/// `[budget]`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct BudgetSection {
    /// For one generation of a review.
    pub per_review: LimitSection,
    /// For one day in UTC, all agents together.
    pub per_day: LimitSection,
    /// For one day in UTC, each agent.
    pub per_agent: LimitSection,
}

/// A limit; a missing key does not limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(
    default,
    deny_unknown_fields,
    expecting = "a table with `tokens`, `usd` or both"
)]
pub struct LimitSection {
    /// Tokens: 1 to 10^12.
    #[serde(deserialize_with = "tokens")]
    tokens: Option<u64>,
    /// Dollars, from a millionth to a million; stored in millionths.
    #[serde(rename = "usd", deserialize_with = "usd")]
    micro_usd: Option<u64>,
}

impl BudgetSection {
    /// The budget for the rules.
    pub fn policy(&self) -> SpendBudget {
        let limit = |section: LimitSection| SpendLimit {
            tokens: section.tokens,
            micro_usd: section.micro_usd,
        };
        SpendBudget {
            per_review: limit(self.per_review),
            per_day: limit(self.per_day),
            per_agent: limit(self.per_agent),
        }
    }
}

fn tokens<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    field::within(deserializer, "tokens", 1..=TOKENS_MAX).map(Some)
}

fn usd<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let expected = "a number of dollars, 0.000001 to 1000000";
    let dollars = deserializer
        .deserialize_any(Dollars)
        .map_err(|_| Error::custom(format!("usd is not a number, expected {expected}")))?;
    let micro = micro_usd(dollars).filter(|micro| *micro > 0 && dollars <= USD_MAX);
    micro
        .map(Some)
        .ok_or_else(|| Error::custom(format!("usd is {dollars}, expected {expected}")))
}

/// Accepts 5 as well as 5.0, which TOML distinguishes and people do not.
struct Dollars;

impl Visitor<'_> for Dollars {
    type Value = f64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_f64<E>(self, dollars: f64) -> Result<f64, E> {
        Ok(dollars)
    }

    fn visit_i64<E: Error>(self, dollars: i64) -> Result<f64, E> {
        // Larger numbers are out of range anyway.
        Ok(i32::try_from(dollars).map_or(f64::INFINITY, f64::from))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Config;

    fn budget(text: &str) -> Result<SpendBudget, String> {
        Config::parse(text, Path::new("settled.toml"))
            .map(|config| config.budget.policy())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_limit_is_of_tokens_of_money_or_of_both() {
        let read = "[budget]\nper_review = { tokens = 5, usd = 0.25 }\nper_day = { usd = 50 }\n";
        let limit = |tokens, micro_usd| SpendLimit { tokens, micro_usd };
        let expected = SpendBudget {
            per_review: limit(Some(5), Some(250_000)),
            per_day: limit(None, Some(50_000_000)),
            per_agent: limit(None, None),
        };
        assert_eq!(budget(read), Ok(expected));
    }

    #[test]
    fn what_is_no_limit_is_told_in_words() {
        for (value, said) in [
            ("{ tokens = 0 }", "tokens is 0, expected 1 to 1000000000000"),
            ("{ usd = 0 }", "usd is 0, expected a number of dollars"),
            (
                "{ usd = 0.0000001 }",
                "usd is 0.0000001, expected a number of dollars, 0.000001 to 1000000",
            ),
            ("{ usd = -1.5 }", "usd is -1.5, expected"),
            ("{ usd = nan }", "usd is NaN, expected"),
            ("{ usd = \"5\" }", "usd is not a number, expected"),
            ("{ eur = 5 }", "unknown field `eur`"),
            ("5", "expected a table with `tokens`, `usd` or both"),
        ] {
            let error = budget(&format!("[budget]\nper_day = {value}\n")).expect_err(value);
            assert!(error.contains(said), "{error}");
        }
    }
}
