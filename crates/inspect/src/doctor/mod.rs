//! Checks a workspace for problems, each with its fix. A new check is one function in `CHECKS`.

mod hosts;
mod ledger;
mod machine;
mod result;
mod tools;
mod tree;

use self::result::{CheckOutcome, Checked};

pub use self::result::{CheckContext, CheckResult, CheckState};

type CheckFn = (&'static str, fn(&CheckContext<'_>) -> Checked);

/// Every check, ordered so that causes come before their effects.
const CHECKS: &[CheckFn] = &[
    ("workspace", tree::complete),
    ("config", tree::config),
    ("access", tree::access),
    ("users", tree::users),
    ("leftovers", tree::leftovers),
    ("file_system", machine::file_system),
    ("room", machine::room),
    ("clock", machine::clock),
    ("events", machine::events),
    ("ledger", ledger::whole),
    ("snapshot", ledger::snapshot),
    ("sent", ledger::sent),
    ("serving", ledger::serving),
    ("alerts", ledger::alerts),
    ("hosts", hosts::hosts),
    ("service", tools::service),
    ("sandbox", tools::sandbox),
    ("tools", tools::tools),
];

/// Runs every check.
pub fn examine(case: &CheckContext<'_>) -> Vec<CheckResult> {
    let run = |(check, run): &CheckFn| {
        let said = run(case).unwrap_or_else(|why| {
            vec![CheckOutcome {
                state: CheckState::Failed,
                what: why,
                fix: None,
            }]
        });
        said.into_iter()
            .map(|CheckOutcome { state, what, fix }| CheckResult {
                check,
                state,
                what,
                fix,
            })
            .collect::<Vec<_>>()
    };
    CHECKS.iter().flat_map(run).collect()
}

#[cfg(test)]
mod tests;
