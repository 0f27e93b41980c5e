//! Finds the pair that the caller means, and checks that this process may run its commands: nobody else runs its
//! agents, and no signal word can be taken for another.

use std::path::Path;

use review::{OpenPair, PairId, PairMember, PairSetup, SignalWords};
use workspace::config::Config;
use workspace::index::LedgerIndex;
use workspace::remote_agent::RemoteAgent;

use super::PairError;

/// The pair to use, with its set-up; fails rather than guess between several. A name becomes part of a path, so one
/// that the ledger does not know must not create a folder.
pub(super) fn find(root: &Path, named: Option<&PairId>) -> Result<(PairId, PairSetup), PairError> {
    let (index, _) = LedgerIndex::read(root)?;
    let mut open: Vec<(&PairId, &OpenPair)> = index.state().pairs().collect();
    if let Some(named) = named {
        open.retain(|(id, _)| *id == named);
    }
    match (open.as_slice(), named) {
        ([], Some(id)) => Err(PairError::Unknown(id.clone())),
        ([], None) => Err(PairError::NoneOpen),
        ([(id, only)], _) => Ok(((*id).clone(), only.setup.clone())),
        ([.., (newest, _)], _) => Err(PairError::Several {
            count: open.len(),
            newest: (*newest).clone(),
        }),
    }
}

/// Fails if two signal words can be confused, or if we may not run the agents' commands.
pub(super) fn check(root: &Path, config: &Config, setup: &PairSetup) -> Result<(), PairError> {
    words(&setup.words)?;
    for member in setup.members() {
        // An agent's mail is judged only on its home host.
        if let Some(away) = RemoteAgent::of(root, &member.agent) {
            return Err(PairError::Away(away));
        }
        is_free(config, member)?;
    }
    Ok(())
}

fn words(words: &SignalWords) -> Result<(), PairError> {
    let is_line = |word: &String| word.trim() == word && !word.is_empty() && !word.contains('\n');
    let why = if ![&words.done, &words.pass, &words.fail]
        .into_iter()
        .all(is_line)
    {
        "a signal word must be one line without white space around it"
    } else if !words.are_distinct() {
        "two of the signal words are the same, expected three different ones"
    } else {
        return Ok(());
    };
    Err(PairError::Words(why))
}

/// Fails for an agent that the daemon starts or that runs as another user.
fn is_free(config: &Config, member: &PairMember) -> Result<(), PairError> {
    let section = config.agents.get(&member.agent);
    let why = if section.is_some_and(|section| !section.command.is_empty()) {
        "has a command in settled.toml, and would be run twice"
    } else if section.is_some_and(|section| section.uid.is_some()) {
        "has a user of its own, and the pair would run as another"
    } else {
        return Ok(());
    };
    Err(PairError::Taken {
        agent: member.agent.clone(),
        why,
    })
}
