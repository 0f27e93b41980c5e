//! Adds up the spend that a program reports: for each answer of the model, for each step, or once for the whole run. A
//! figure reported twice counts once.

use std::collections::BTreeMap;

use message_schema::spend::{Spend, micro_usd};
use serde_json::Value;

/// The most conversations whose last answer is remembered.
const CONVERSATIONS_MAX: usize = 1_000;

/// The spend that one line reports.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SpendReport {
    /// An answer of the model in a conversation; the same id again is the same answer, further on.
    Answer {
        /// The call that started the helper; empty for the main conversation.
        helper: String,
        id: String,
        spend: Spend,
    },
    /// Another step.
    Step(Spend),
    /// Everything so far: the main conversation alone, and with its helpers as far as the program reports them.
    Total { own: Spend, whole: Spend },
}

/// The spend of a program so far, which never falls.
#[derive(Debug, Default)]
pub(super) struct SpendMeter {
    own: Spend,
    helpers: Spend,
    whole: Spend,
    /// The last answer of each conversation.
    last: BTreeMap<String, (String, Spend)>,
}

impl SpendMeter {
    pub(super) fn add(&mut self, report: SpendReport) {
        match report {
            SpendReport::Answer { helper, id, spend } => {
                let known = self.last.get(&helper).filter(|(last, _)| *last == id);
                let known = known.map_or_else(Spend::default, |(_, known)| *known);
                let sum = if helper.is_empty() {
                    &mut self.own
                } else {
                    &mut self.helpers
                };
                *sum = sum.plus(spend.beyond(known));
                if self.last.len() < CONVERSATIONS_MAX || self.last.contains_key(&helper) {
                    self.last.insert(helper, (id, known.most(spend)));
                }
            }
            SpendReport::Step(spend) => self.own = self.own.plus(spend),
            SpendReport::Total { own, whole } => {
                self.own = self.own.most(own);
                self.whole = self.whole.most(whole);
            }
        }
    }

    pub(super) fn total(&self) -> Spend {
        self.own.plus(self.helpers).most(self.whole)
    }
}

/// The largest amount that is counted, in tokens and in dollars: beyond any limit, and far from where numbers end. A
/// program that reports more has used up every budget.
const TOKENS_MAX: u64 = 1_000_000_000_000_000;
const DOLLARS_MAX: f64 = 1_000_000_000.0;

/// Adds up these fields; a missing or negative one counts as 0.
pub(super) fn sum(value: &Value, fields: &[&str]) -> u64 {
    let number = |value: &Value| {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let whole = value.as_u64().or(value.as_f64().map(|it| it as u64));
        whole.map(|it| it.min(TOKENS_MAX))
    };
    let numbers = fields.iter().filter_map(|field| number(&value[*field]));
    numbers.fold(0, u64::saturating_add)
}

/// Reads an amount in dollars as micro-dollars; 0 if it is missing or negative.
pub(super) fn dollars(value: &Value) -> u64 {
    let dollars = value.as_f64().map(|dollars| dollars.min(DOLLARS_MAX));
    dollars.and_then(micro_usd).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_beyond_all_limits_is_not_counted_as_nothing() {
        let read = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
        assert_eq!(dollars(&read("1e308")), 1_000_000_000_000_000);
        assert_eq!(dollars(&read("-1e308")), 0);
        let tokens = |text: &str| sum(&read(text), &["a", "b"]);
        assert_eq!(tokens(r#"{"a":1e30,"b":2}"#), TOKENS_MAX + 2);
        assert_eq!(tokens(r#"{"a":18446744073709551615}"#), TOKENS_MAX);
        assert_eq!(tokens(r#"{"a":-5,"b":2}"#), 2);
    }
}
