//! The proof in a file: its records judged again by the rules under its own policy, and the resulting state.

use std::collections::BTreeMap;
use std::path::Path;

use message_schema::line::escaped;
use review::{RULES, State};
use simulate::{Divergence, Rejudge};
use workspace::config::{Config, ConfigError};

use super::approval;
use super::file::{Header, RecordUse, VerdictFile};
use super::summary::EvidenceSummary;

/// Records that follow from each other, and the state they lead to.
pub struct Proof {
    again: Rejudge,
    /// The number of records that were judged again.
    pub judged: usize,
    /// The number of records taken unchanged, for their tasks.
    pub given: usize,
}

/// The reason why a file proves nothing.
#[derive(Debug, thiserror::Error)]
pub enum Unfounded {
    /// The evidence in its header differs from that of its records.
    #[error(
        "the header shows other evidence than the records lead to: found {found}, expected {expected}"
    )]
    OtherEvidence {
        /// The evidence in the header.
        found: String,
        /// The evidence that the records lead to.
        expected: String,
    },
    /// The file's policy cannot be used.
    #[error("cannot use the policy in the file")]
    Policy(#[source] ConfigError),
    /// Rules newer than this program's decided a record.
    #[error(
        "record {seq} was judged by version {rules} of the rules, and this program has up to {RULES}: use a newer settled"
    )]
    NewerRules {
        /// The record's number in the ledger.
        seq: u64,
        /// The version that decided it.
        rules: u32,
    },
    /// A recorded decision does not follow from those before it.
    #[error(
        "record {seq} does not follow: it says `{recorded}`, and the rules say `{judged}`{}", other_rules(*.rules)
    )]
    Unlike {
        /// The record's number in the ledger.
        seq: u64,
        /// The version of the rules that decided it.
        rules: u32,
        /// The recorded decision.
        recorded: String,
        /// The decision by the rules.
        judged: String,
    },
}

impl Unfounded {
    /// True if another version of the rules may be the cause.
    pub fn is_of_other_rules(&self) -> bool {
        match self {
            Self::Policy(_) | Self::OtherEvidence { .. } => false,
            Self::NewerRules { .. } => true,
            Self::Unlike { rules, .. } => *rules != RULES,
        }
    }
}

fn other_rules(rules: u32) -> String {
    if rules == RULES {
        return String::new();
    }
    format!("; it was judged by version {rules} of the rules, and this program has {RULES}")
}

/// Judges the records of a file again by this program's rules. A record that older rules decided otherwise counts as
/// unfounded.
pub fn prove(file: &VerdictFile) -> Result<Proof, Unfounded> {
    let toml = file.header.policy.toml.as_deref().unwrap_or_default();
    let config = Config::parse(toml, Path::new("settled.toml")).map_err(Unfounded::Policy)?;
    let again = Rejudge::new(config.policy(file.header.agents.iter().cloned()));
    let mut proof = Proof {
        again,
        judged: 0,
        given: 0,
    };
    for (role, entry) in &file.records {
        let (seq, rules) = (entry.seq, simulate::rules(entry));
        if rules > RULES {
            return Err(Unfounded::NewerRules { seq, rules });
        }
        let (taken, count) = match role {
            RecordUse::Judged => (proof.again.judge(entry), &mut proof.judged),
            RecordUse::Given => (proof.again.take_tasks(entry), &mut proof.given),
        };
        *count += 1;
        taken.map_err(|Divergence { recorded, judged }| Unfounded::Unlike {
            seq,
            rules,
            recorded: escaped(&recorded),
            judged: escaped(&judged),
        })?;
    }
    let (found, expected) = (&file.header.evidence, proof.evidence(&file.header));
    if !found.is_empty() && *found != expected {
        return Err(Unfounded::OtherEvidence {
            found: json(found),
            expected: json(&expected),
        });
    }
    Ok(proof)
}

fn json(evidence: &BTreeMap<String, EvidenceSummary>) -> String {
    escaped(&serde_json::to_string(evidence).expect("text keys and plain values are JSON"))
}

impl Proof {
    /// The evidence of each review that counts.
    pub(super) fn evidence(&self, header: &Header) -> BTreeMap<String, EvidenceSummary> {
        let Header {
            pr,
            repo,
            reviewers,
            ..
        } = header;
        let found = approval::find(self.state(), pr, repo.as_ref(), reviewers);
        found
            .unwrap_or_default()
            .into_iter()
            .map(|(key, review)| (key.to_string(), EvidenceSummary::of(review)))
            .collect()
    }

    /// Returns the state after the records; it has every review of the file.
    pub fn state(&self) -> &State {
        self.again.state()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_of_the_rules_may_be_why_a_record_does_not_follow() {
        let unlike = |rules| Unfounded::Unlike {
            seq: 7,
            rules,
            recorded: "accepted".to_owned(),
            judged: "refused".to_owned(),
        };
        let said = "record 7 does not follow: it says `accepted`, and the rules say `refused`";
        assert_eq!(unlike(RULES).to_string(), said);
        assert!(!unlike(RULES).is_of_other_rules());
        let other = format!(
            "{said}; it was judged by version 1 of the rules, and this program has {RULES}"
        );
        assert_eq!(unlike(1).to_string(), other);
        assert!(unlike(1).is_of_other_rules());
        let newer = Unfounded::NewerRules {
            seq: 7,
            rules: RULES + 1,
        };
        assert!(newer.is_of_other_rules());
        let evidence = Unfounded::OtherEvidence {
            found: String::new(),
            expected: String::new(),
        };
        assert!(!evidence.is_of_other_rules());
    }
}
