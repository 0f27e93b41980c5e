//! One review in detail.

use chrono::{DateTime, Utc};
use inspect::status::fix::Spell;
use inspect::status::row::ReviewRow;
use inspect::status::threads::Threads;
use inspect::status::why::Why;
use message_schema::id::CommitSha;
use review::{Review, ReviewKey};
use serde::Serialize;

use crate::follow::Follower;
use crate::gate::{self, GateView};
use crate::needs::WhoseMove;
use crate::supply::Supply;
use crate::timeline::RoundView;
use crate::words::{ReportedUsage, add_words, usage, words_in};

/// One review in detail. Fields are added, never changed.
#[derive(Debug, Serialize)]
pub struct ReviewDetail {
    /// The last record that was read.
    pub seq: u64,
    /// Its row in `settled status`.
    pub row: ReviewRow,
    /// The answer of `settled why`.
    pub why: Why,
    /// The role of the party that moves next; `None` if nobody has to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<WhoseMove>,
    /// The change, as the newest request describes it.
    pub change: ChangeView,
    /// Its rounds, oldest first.
    pub rounds: Vec<RoundView>,
    /// The answer of `settled threads`, with the words of both agents.
    pub threads: Threads,
    /// The budgets and deadlines of the review.
    pub budgets: Vec<Supply>,
    /// The tokens and costs that its messages report.
    pub usage: Vec<ReportedUsage>,
    /// The quality gate: everything that prevents an approval that holds.
    pub gate: GateView,
}

/// The change under review. Fields are added, never changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ChangeView {
    /// The head of the pull request, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// The commit it is based on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The purpose of the change, in the author's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The files that differ, according to the request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

impl ReviewDetail {
    /// Names who has to move, with the role: `claude (author)`; `None` if nobody has to.
    pub fn mover(&self) -> Option<String> {
        let actor = self.why.actor.as_ref()?;
        Some(self.part?.of_mover(actor))
    }

    pub(crate) fn of(
        follower: &Follower,
        key: &ReviewKey,
        review: &Review,
        now: DateTime<Utc>,
        spell: &Spell<'_>,
    ) -> Self {
        let (status, past) = (follower.status(), follower.past());
        let state = status.index.state();
        let row = ReviewRow::of(state, key, review);
        let why = status.why(key, review, follower.policy(), now, spell);
        let timeline = past.timelines.of(key);
        let messages = timeline.map_or(&[][..], |timeline| &timeline.said);
        let words = words_in(key, review.reviewer(key), messages);
        let mut threads = past
            .histories
            .threads(key, review, &status.name_of(key), spell);
        add_words(&mut threads, &words);
        let agents = (&key.author, review.reviewer(key));
        let actor = why.actor.as_ref();
        let part = actor.map(|actor| WhoseMove::of(actor, Some(agents), review.mover()));
        let request = words.request;
        // An escalated review has no open request any more, but the last request's commit is still the one in question.
        let said = request.as_ref().and_then(|request| request.head.as_deref());
        let head = gate::head(status, key, review).or_else(|| CommitSha::new(said?).ok());
        let gate = GateView::of(
            status,
            key,
            review,
            follower.policy(),
            head.as_ref(),
            why.gate.clone(),
        );
        let reading = &review.reading.change;
        let change = ChangeView {
            head: gate.head.clone(),
            base: reading
                .base
                .as_ref()
                .map(ToString::to_string)
                .or_else(|| request.as_ref()?.base.clone()),
            branch: request.as_ref().and_then(|request| request.branch.clone()),
            summary: request.and_then(|request| request.summary),
            files: reading.files.iter().map(ToString::to_string).collect(),
        };
        Self {
            seq: follower.seq(),
            budgets: Supply::all(review, &row, follower.policy()),
            rounds: timeline.map_or_else(Vec::new, |timeline| timeline.rounds(&review.phase)),
            usage: usage(messages),
            part,
            row,
            why,
            change,
            threads,
            gate,
        }
    }
}
