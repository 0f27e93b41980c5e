//! Adds up the spend that a program reports. Programs report it in different ways: for each answer of the model, for
//! each step, or once for the whole run. A figure reported twice counts once.

use std::collections::BTreeMap;

use message_schema::spend::{Spend, micro_usd};
use serde_json::Value;

/// The most conversations whose last answer is remembered at a time.
const CONVERSATIONS_MAX: usize = 1_000;

/// The spend that one line reports.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SpendReport {
    /// An answer of the model in a conversation; told again with the same id it is the same answer, further on.
    Answer {
        /// The call by which a helper came; empty for the conversation itself.
        helper: String,
        id: String,
        spend: Spend,
    },
    /// One more step.
    Step(Spend),
    /// All so far: of the conversation without its helpers, and with them as far as the program says it.
    Total { own: Spend, whole: Spend },
}

/// The spend of a program so far; it never falls.
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

/// The sum of these fields, as far as they are there.
pub(super) fn sum(value: &Value, fields: &[&str]) -> u64 {
    let numbers = fields.iter().filter_map(|field| value[*field].as_u64());
    numbers.fold(0, u64::saturating_add)
}

/// An amount of dollars; nothing if the program does not name one.
pub(super) fn dollars(value: &Value) -> u64 {
    value.as_f64().and_then(micro_usd).unwrap_or(0)
}
