//! Writes all that a packet can say about one thread. Leaves the whole message to `inputs` and knows no rule:
//! writes every combination, legal or not.

use message_schema::packet::{Action, Severity, Stance, Status};

/// The properties of one thread in a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// The severity of its finding.
    pub(crate) severity: Severity,
    /// True if its finding blocks; only a P2 can choose.
    pub(crate) blocking: bool,
}

impl Slot {
    /// A finding that blocks by its severity.
    pub(crate) const P1: Self = Self {
        severity: Severity::P1,
        blocking: true,
    };
    /// A finding of the highest severity.
    pub(crate) const P0: Self = Self {
        severity: Severity::P0,
        blocking: true,
    };
    /// A finding that the reviewer chose to make blocking.
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

/// Id, file and title of each thread; no two share a word.
pub(crate) const NAMES: [(&str, &str, &str); 3] = [
    ("F-1", "alpha.rs", "alpha"),
    ("F-2", "beta.rs", "beta"),
    ("F-3", "gamma.rs", "gamma"),
];

/// A packet's saying about one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Say {
    /// Nothing.
    Silent,
    /// Its finding with a status, perhaps with a stance, and no action.
    Status(Status, Option<Stance>),
    /// Its finding with an action.
    Act(Action, Option<Stance>),
    /// Its finding, raised to P0, open.
    Worse,
    /// Its finding as resolved, and the same finding under another id, open.
    Both,
    /// The same finding under another id.
    Again,
    /// The same finding under another id, with `action: escalate`.
    AgainEscalated,
}

const SEEKS: Option<Stance> = Some(Stance::SeeksChange);
const ACCEPTS: Option<Stance> = Some(Stance::Accepts);

impl Say {
    /// Everything that a packet can say.
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

    /// One saying of each kind, for walks that combine several threads.
    pub(crate) const SOME: &[Self] = &[
        Self::Silent,
        Self::Status(Status::Open, None),
        Self::Act(Action::Resolve, None),
        Self::Act(Action::Veto, SEEKS),
        Self::Act(Action::Reply, SEEKS),
        Self::Act(Action::Reply, ACCEPTS),
        Self::Again,
    ];

    /// Enough sayings for walks about something else.
    pub(crate) const FEW: &[Self] = &[
        Self::Silent,
        Self::Status(Status::Open, None),
        Self::Act(Action::Resolve, None),
        Self::Act(Action::Veto, SEEKS),
        Self::Act(Action::Reply, ACCEPTS),
    ];

    /// The four actions, with the two stances between which a reply can switch.
    pub(crate) const TALK: &[Self] = &[
        Self::Silent,
        Self::Status(Status::Open, None),
        Self::Act(Action::Resolve, None),
        Self::Act(Action::Veto, SEEKS),
        Self::Act(Action::Reply, SEEKS),
        Self::Act(Action::Reply, ACCEPTS),
    ];

    /// A new thread, nothing, and one further exchange.
    pub(crate) const MEANS: &[Self] = &[
        Self::Silent,
        Self::Status(Status::Open, None),
        Self::Act(Action::Reply, ACCEPTS),
    ];

    /// A finding that stays, one that is resolved, and silence: enough for walks about the merge.
    pub(crate) const CHAIN: &[Self] = &[
        Self::Silent,
        Self::Status(Status::Open, None),
        Self::Act(Action::Resolve, None),
    ];

    /// Sayings that distinguish a carried thread, a deferred one and a new one.
    pub(crate) const FIX: &[Self] = &[
        Self::Silent,
        Self::Status(Status::Open, None),
        Self::Act(Action::Resolve, None),
        Self::Act(Action::Veto, SEEKS),
        Self::Act(Action::Reply, ACCEPTS),
        Self::Worse,
    ];

    /// Returns the findings that say this about the thread of this slot, each as one YAML list entry, and the number of
    /// them that block.
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

    /// True if it makes sense only for an existing thread. Otherwise it would open a finding of its own, and the walk
    /// would have more threads than its bounds.
    pub(crate) fn needs_thread(self) -> bool {
        match self {
            Self::Again | Self::AgainEscalated | Self::Both => true,
            Self::Silent | Self::Status(..) | Self::Act(..) | Self::Worse => false,
        }
    }
}
