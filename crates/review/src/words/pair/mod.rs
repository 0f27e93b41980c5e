//! A pair of commands, an author and perhaps a reviewer, that work and review in turn: the states of
//! a run, what moves a pair through them, and what the ledger records of it.

pub(crate) mod machine;
pub(crate) mod record;
pub(crate) mod state;
