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

/// Adds up these fields; a missing one counts as 0.
pub(super) fn sum(value: &Value, fields: &[&str]) -> u64 {
    let numbers = fields.iter().filter_map(|field| value[*field].as_u64());
    numbers.fold(0, u64::saturating_add)
}

/// Reads an amount in dollars as micro-dollars; 0 if it is missing.
pub(super) fn dollars(value: &Value) -> u64 {
    value.as_f64().and_then(micro_usd).unwrap_or(0)
}
