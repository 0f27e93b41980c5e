//! What a packet can say of one thread, and how that is written. It leaves the whole message to
//! `inputs` and knows no rule: every combination is written, legal or not.

use message_schema::packet::{Action, Severity, Stance, Status};

/// One thread's place in the walk: everything that tells it from its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// How bad its finding is.
    pub(crate) severity: Severity,
    /// What its finding says of blocking; only P2 has the choice.
    pub(crate) blocking: bool,
}

impl Slot {
    /// A finding that blocks by its severity.
    pub(crate) const P1: Self = Self {
        severity: Severity::P1,
        blocking: true,
    };
    /// The worst.
    pub(crate) const P0: Self = Self {
        severity: Severity::P0,
        blocking: true,
    };
    /// The reviewer's judgement, blocking.
    pub(crate) const P2: Self = Self {
        severity: Severity::P2,
        blocking: true,
    };
    /// A nit.
    pub(crate) const P3: Self = Self {
        severity: Severity::P3,
        blocking: false,
    };
}

/// What tells the threads apart: no two share a place or a word.
pub(crate) const NAMES: [(&str, &str, &str); 3] = [
    ("F-1", "alpha.rs", "alpha"),
    ("F-2", "beta.rs", "beta"),
    ("F-3", "gamma.rs", "gamma"),
];

/// What a packet says of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Say {
    /// Nothing.
    Silent,
    /// Its finding with a status and perhaps a stance, and no action.
    Status(Status, Option<Stance>),
    /// Its finding with an action.
    Act(Action, Option<Stance>),
    /// Its finding as a P0, open.
    Worse,
    /// Its finding as resolved, and the same finding under an id of its own, open.
    Both,
    /// The same finding under an id of its own.
    Again,
    /// The same finding under an id of its own, with `action: escalate`.
    AgainEscalated,
}

const SEEKS: Option<Stance> = Some(Stance::SeeksChange);
const ACCEPTS: Option<Stance> = Some(Stance::Accepts);

impl Say {
    /// Everything that can be said.
    pub(crate) const ALL: &[Self] = &[
        Self::Silent,
        Self::Status(Status::Open, None),
        Self::Status(Status::NotFixed, ACCEPTS),
        Self::Status(Status::Fixed, None),
        Self::Status(Status::WontFix, None),
        Self::Act(Action::Resolve, None),
        Self::Act(Action::Resolve, ACCEPTS),
        Self::Act(Action::Veto, SEEKS),
        Self::Act(Action::Veto, ACCEPTS),
        Self::Act(Action::Escalate, SEEKS),
        Self::Act(Action::Escalate, ACCEPTS),
        Self::Act(Action::Reply, SEEKS),
        Self::Act(Action::Reply, ACCEPTS),
        Self::Worse,
        Self::Both,
        Self::Again,
        Self::AgainEscalated,
    ];

    /// One of each kind: for walks in which several threads are combined.
    pub(crate) const SOME: &[Self] = &[
        Self::Silent,
        Self::Status(Status::Open, None),
        Self::Act(Action::Resolve, None),
        Self::Act(Action::Veto, SEEKS),
        Self::Act(Action::Reply, SEEKS),
        Self::Act(Action::Reply, ACCEPTS),
        Self::Again,
    ];

    /// Enough for walks that are about something else.
    pub(crate) const FEW: &[Self] = &[
        Self::Silent,
        Self::Status(Status::Open, None),
        Self::Act(Action::Resolve, None),
        Self::Act(Action::Veto, SEEKS),
        Self::Act(Action::Reply, ACCEPTS),
    ];

    /// The four actions, with the two stances a reply can flip between.
    pub(crate) const TALK: &[Self] = &[
        Self::Silent,
        Self::Status(Status::Open, None),
        Self::Act(Action::Resolve, None),
        Self::Act(Action::Veto, SEEKS),
        Self::Act(Action::Reply, SEEKS),
        Self::Act(Action::Reply, ACCEPTS),
    ];

    /// A new thread, nothing, and one more exchange.
    pub(crate) const MEANS: &[Self] = &[
        Self::Silent,
        Self::Status(Status::Open, None),
        Self::Act(Action::Reply, ACCEPTS),
    ];

    /// A finding that stays, one that goes, and silence: enough for what the merge leaves.
    pub(crate) const CHAIN: &[Self] = &[
        Self::Silent,
        Self::Status(Status::Open, None),
        Self::Act(Action::Resolve, None),
    ];

    /// What tells a carried thread, a deferred one and a new one apart.
    pub(crate) const FIX: &[Self] = &[
        Self::Silent,
        Self::Status(Status::Open, None),
        Self::Act(Action::Resolve, None),
        Self::Act(Action::Veto, SEEKS),
        Self::Act(Action::Reply, ACCEPTS),
        Self::Worse,
    ];

    /// The findings that say it of the thread in this place, each the YAML of one list entry, and
    /// how many of them the packet has to count as blocking.
    pub(crate) fn written(self, place: usize, slot: Slot) -> (Vec<String>, usize) {
        let (id, file, title) = NAMES[place];
        let write = |id: &str, severity: Severity, status: Status, more: &str| {
            let blocking = if severity == Severity::P2 {
                format!(", blocking: {}", slot.blocking)
            } else {
                String::new()
            };
            format!(
                "{{id: {id}, severity: {severity}, status: {status}{blocking}, file: {file}, title: {title}{more}}}"
            )
        };
        let stance_of =
            |stance: Option<Stance>| stance.map_or_else(String::new, |s| format!(", stance: {s}"));
        let one = |counts: bool, text: String| (vec![text], usize::from(counts && slot.blocking));
        match self {
            Self::Silent => (Vec::new(), 0),
            Self::Status(status, stance) => one(
                !status.is_settled(),
                write(id, slot.severity, status, &stance_of(stance)),
            ),
            Self::Act(action, stance) => {
                let more = format!(", action: {action}{}", stance_of(stance));
                one(
                    action != Action::Resolve,
                    write(id, slot.severity, Status::Open, &more),
                )
            }
            Self::Worse => (vec![write(id, Severity::P0, Status::Open, "")], 1),
            Self::Both => {
                let texts = vec![
                    write(id, slot.severity, Status::Open, ", action: resolve"),
                    write(&format!("D{place}"), slot.severity, Status::Open, ""),
                ];
                (texts, usize::from(slot.blocking))
            }
            Self::Again => one(
                true,
                write(&format!("D{place}"), slot.severity, Status::Open, ""),
            ),
            Self::AgainEscalated => one(
                true,
                write(
                    &format!("D{place}"),
                    slot.severity,
                    Status::Open,
                    ", action: escalate",
                ),
            ),
        }
    }

    /// Whether it makes sense only of a thread that is there: of another it would be a finding of
    /// its own, and the walk would have more threads than its bounds say.
    pub(crate) fn needs_thread(self) -> bool {
        match self {
            Self::Again | Self::AgainEscalated | Self::Both => true,
            Self::Silent | Self::Status(..) | Self::Act(..) | Self::Worse => false,
        }
    }
}
