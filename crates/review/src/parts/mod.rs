//! The second floor: the state that the records add up to, and the rules that judge one part of it (the threads of a
//! response, the gate, a handoff) without knowing which message or event asks.

pub(crate) mod admission;
pub(crate) mod claims;
pub(crate) mod day_budget;
pub(crate) mod duplicate;
pub(crate) mod evidence;
pub(crate) mod gate;
pub(crate) mod handoff;
pub(crate) mod isolated;
pub(crate) mod loaded;
pub(crate) mod next;
pub(crate) mod open_pair;
pub(crate) mod rank;
pub(crate) mod response;
pub(crate) mod review;
pub(crate) mod reviews;
pub(crate) mod spending;
pub(crate) mod state;
pub(crate) mod waiting;
