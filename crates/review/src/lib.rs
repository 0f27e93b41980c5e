//! The rules of what happens next in a review, pure and on values: the state, a checked message and the time
//! go in; a decision or a refusal comes out.
//!
//! ```text
//! decide(state, policy, posted, now) -> Decision | Refusal      looks and answers, changes nothing
//! refuse(state, refused, now) -> RefusedMessage                 what a refusal costs
//! on_event(state, policy, reported, now, ids) -> EventRecord    what an event does: a person, a pull request, a turn
//! due(state, policy, now, ids) -> Option<EventRecord>           what the daemon does when a deadline has come
//! apply(state, record, at)                                      changes, cannot fail
//! Undo::of(state, record, at), undo.revert(state)               takes a record back that was not committed
//! ```
//!
//! The crate has two floors, and a part imports nothing from an answer:
//!
//! ```text
//! answers   decide, refuse, on_event, apply, undo, persist: what a caller asks for; looks at the whole state
//! parts     review, threads of a response, gate, handoff, pulls, the state: the fold of the records,
//!           and the rules that judge one part of it
//! ```
//!
//! `review-words` has what a record says, as plain values. A record names threads and phases as they are after it, so
//! those are words too; a rule that compares two of them is a part.
//!
//! [`threads`] and [`gate`] judge one part alone, for callers that try it out.
//!
//! The ledger keeps the records; folding them through [`apply`] rebuilds the state. Nothing here
//! reads a clock, a disk or the environment, and nothing is random.

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod answers;
mod parts;

pub use answers::apply::apply;
pub use answers::decide::{
    Decision, Posted, decide, feedback_is_empty, gate_faults, repeated, sender_fault,
};
pub use answers::on_event::{ReportedEvent, due, on_event};
pub use answers::persist::{Restore, RestoreError};
pub use answers::refuse::{Refused, always_costs, refuse};
pub use answers::undo::Undo;
pub use pair_machine::{ITERATIONS, Pair, PairEvent, PairFailure, Signal, SignalWords};
pub use pair_machine::{InvalidTransition, RunState};
pub use pair_machine::{
    PairId, PairMember, PairReport, PairSetup, PairStatus, PairStep, TASK_MAX, TRANSCRIPT_MAX,
    Transcript,
};
pub use parts::evidence::approval_barred;
pub use parts::gate::{commands_so_far, nit_cover, required_commands};
pub use parts::isolated::{Cycle, gate, resembles, threads};
pub use parts::open_pair::OpenPair;
pub use parts::rank::{Rank, messages_max};
pub use parts::response::Silence;
pub use parts::review::{FIX_REVIEWS_MAX, GENERATIONS_MAX, GIVEN_BACK_PER_DAY, Review};
pub use parts::state::State;
pub use parts::waiting::is_removal_of_review;
pub use policy::{
    EvidenceMode, FilesPerHour, GatePolicy, HandoffMode, HandoffPolicy, HumanPaths, LateFindings,
    MessagesPerHour, OpenReviews, Policy, Profile, Role, RuntimeClock, SpendBudget, SpendLimit,
    ThreadMode,
};
pub use review_words::alert::{Alert, Late, NoClaim, ToldAlert};
pub use review_words::deadline::{Deadline, patience};
pub use review_words::event::{
    Act, Event, LedgerAccepted, PersonsDecision, PullAction, PullEvent, SentDiffers, Which,
};
pub use review_words::failure::{FailedStart, FailureCause, RunFailure};
pub use review_words::host_change::{HostChange, HostDecision, JoinedHost};
pub use review_words::key::{ReviewKey, TaskId};
pub use review_words::phase::{
    ATTEMPTS, Addressed, Approval, CloseReason, Closer, EscalationReason, Heads, Invocation, Phase,
    STARTS_MAX, SUPERSESSIONS, Side,
};
pub use review_words::pulls::Pull;
pub use review_words::reading::{
    ApprovalEvidence, Change, ObservedRun, ReadingState, ReadingStep, edited_tests,
};
pub use review_words::record::{
    Accepted, ContentDigest, DaemonMessage, DeclinedEvent, Duplicate, EventRecord, Generation,
    Happened, Judgement, Notice, RULES, RULES_BEFORE_VERSIONS, Record, RefusalCost, RefusedMessage,
    ReviewStep, Says,
};
pub use review_words::refusal::{Clause, Costs, Fault, Refusal};
pub use review_words::spend::{DayBudget, RunSpend, UsedUp};
pub use review_words::table::{RowKey, StoredRows, Table};
pub use review_words::task::{Handoff, Left, NoHandoff, Task, TaskFinding};
pub use review_words::thread::{
    Dialogue, HandoffState, Hold, NEW_FINDINGS_MAX, Origin, REPLIES_MAX, Reopening, Resolution,
    RoundKind, Routing, Thread, ThreadState,
};
