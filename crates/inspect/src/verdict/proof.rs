//! What a file proves: its records judged again by the rules under the policy in it, and where that leads.

use std::path::Path;

use message_schema::line::escaped;
use review::State;
use simulate::{Divergence, Rejudge};
use workspace::config::{Config, ConfigError};

use super::file::{RecordUse, VerdictFile};

/// Records that follow from each other, and the state they lead to.
pub struct Proof {
    again: Rejudge,
    /// How many records were judged again.
    pub judged: usize,
    /// How many were taken as they stand, for the tasks in them.
    pub given: usize,
}

/// Why a file proves nothing.
#[derive(Debug, thiserror::Error)]
pub enum Unfounded {
    /// Its policy cannot be used.
    #[error("the policy in the file cannot be used")]
    Policy(#[source] ConfigError),
    /// A recorded decision does not follow from those before it.
    #[error("record {seq} does not follow: it says `{recorded}`, and the rules say `{judged}`")]
    Unlike {
        /// The record's number in the ledger.
        seq: u64,
        /// What it says.
        recorded: String,
        /// What the rules say.
        judged: String,
    },
}

/// Judges the records of a file again.
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
        let (taken, count) = match role {
            RecordUse::Judged => (proof.again.judge(entry), &mut proof.judged),
            RecordUse::Given => (proof.again.take_tasks(entry), &mut proof.given),
        };
        *count += 1;
        taken.map_err(|Divergence { recorded, judged }| Unfounded::Unlike {
            seq: entry.seq,
            recorded: escaped(&recorded),
            judged: escaped(&judged),
        })?;
    }
    Ok(proof)
}

impl Proof {
    /// Where every review of the file stands.
    pub fn state(&self) -> &State {
        self.again.state()
    }
}
